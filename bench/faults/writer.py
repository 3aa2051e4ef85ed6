"""Who writes to the information service all the time, and knows what was acknowledged."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Kind, Producer

NAME, NODE = "bench_written", "writer"
PAUSE_SECONDS = 0.05
KEPT_SECONDS = 7200.0
END_SECONDS = 120.0


class Writer:
    """Numbers under one data name, each written once, until `stop`; `connect` makes a client."""

    def __init__(self, connect: Callable[[], InfoClient]) -> None:
        self.count = 0
        self._connect = connect
        self._acknowledged: set[int] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)

    def register(self) -> None:
        """Make the name anew."""
        with self._connect() as client:
            with suppress(InfoError):  # there is none yet
                client.delete_producer(NAME)
            client.put_producer(Producer(NAME, cmd="", time_max=86400, kind=Kind.PROGRAM, keep=KEPT_SECONDS))

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more; returns when the last call has its answer."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(END_SECONDS)

    def forget(self) -> None:
        """The service is given an older database, while it is down: what it had acknowledged is not asked for."""
        with self._lock:
            self._acknowledged.clear()

    def find_lost(self) -> list[str]:
        """What is wrong: writes that were acknowledged and are not there."""
        now = time.time()
        with self._connect() as client:
            # The service's clock may have jumped: values are asked for from before and after all that it can show.
            span = {"since": now - KEPT_SECONDS, "until": now + KEPT_SECONDS}
            points = client.history(NAME, NODE, **span).points if self._acknowledged else []
            lost = self._acknowledged - {int(float(value)) for _, value in points}
            client.delete_producer(NAME)
        return [f"{len(lost)} of {self.count} acknowledged writes were lost: {sorted(lost)[:5]}"] if lost else []

    def _write(self) -> None:
        number = 0
        with self._connect() as client:
            while not self._ended.wait(PAUSE_SECONDS):
                number += 1
                with suppress(InfoError):  # what is not acknowledged may be there or not
                    client.put_value(NAME, NODE, number)
                    with self._lock:
                        self._acknowledged.add(number)
                        self.count += 1
