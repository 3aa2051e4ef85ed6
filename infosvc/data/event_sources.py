"""Events of which others know, and for which somebody must look: nobody looks while nobody watches them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from infosvc.data.events import Broker

LOOK_SECONDS = 2.0  # between two looks

Tell = Callable[[Mapping[str, Any]], None]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EventSource:
    """Events of one type that belong to no data name and to no node.

    `look` tells what has happened since it looked last. One thread calls it, for all who watch.
    """

    type: str
    look: Callable[[Tell], None]


class SourceReader:
    """Looks at each source, in a thread of its own, while somebody watches events of its type."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._ended = threading.Event()

    def start(self, source: EventSource) -> None:
        """Look at a source from now on."""
        threading.Thread(target=self._run, args=(source,), name=f"{source.type}-events", daemon=True).start()

    def close(self) -> None:
        """End the threads; one that waits for its source ends when that has answered."""
        self._ended.set()

    def _run(self, source: EventSource) -> None:
        tell = partial(self._broker.publish, source.type)
        while self._broker.wait_until_watched(source.type):
            try:
                source.look(tell)
            except Exception:  # the next look may go better
                _log.exception("events of type %s could not be looked for", source.type)
            if self._ended.wait(LOOK_SECONDS):
                return
