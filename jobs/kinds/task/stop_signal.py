"""Hears that the container is to end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable


def on_stop(do: Callable[[], None]) -> None:
    """Have a thread call `do` at each SIGTERM; to be called by the main thread.

    A handler of Python's would wait until the main thread comes back from Java, and YARN does not wait so long.
    """
    heard, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)

    def listen() -> None:
        while numbers := os.read(heard, 64):
            if signal.SIGTERM in numbers:
                do()

    threading.Thread(target=listen, name="stop", daemon=True).start()
