"""Forked processes as their parent sees them."""

from __future__ import annotations

import threading
import time
from typing import Any

from jobs.itemwork.messages import Item
from jobs.worker.child import Chunk
from jobs.worker.children import Children, Died

MUCH = 8 << 20
"""Bytes that no connection takes on its way."""


def test_a_process_that_reads_nothing_does_not_hold_up_its_parent() -> None:
    children = Children(1, lambda connection, pulse: time.sleep(600), 1.0, lambda: None)
    child, chunk = children.free(), Chunk(1, (Item("a", "", None, MUCH, bytes(MUCH)),))
    assert child
    giving = threading.Thread(target=child.give, args=(chunk, time.monotonic()), daemon=True)

    giving.start()
    giving.join(60)

    assert not giving.is_alive()
    events: list[Any] = []
    while not events:
        events = children.wait(0.1)
    assert events == [Died(chunk, (), "its process did not come further for 1 s")]
    children.close()
