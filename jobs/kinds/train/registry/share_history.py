"""How the shares of a run changed, as its members tell it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from learning.lead.calls import Done, Share
from learning.lead.leader import Member
from locality.training.explaining import ShareChange, find_node

MOST_CHANGES = 1000
"""The newest ones are kept."""
TOLD_GAIN = 1.1


class ShareHistory:
    """By any thread; `nodes` are those of the run's containers, and grow with them."""

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self._nodes = nodes
        self._all: deque[ShareChange] = deque(maxlen=MOST_CHANGES)
        self._seconds: deque[Mapping[str, float]] = deque(maxlen=MOST_CHANGES)
        self._marks: Mapping[str, Done] = {}
        self._lock = threading.Lock()

    @property
    def last(self) -> ShareChange | None:
        """The newest change."""
        return self._all[-1] if self._all else None

    def find_change(self, members: Collection[str], told: Mapping[str, Member], at: float) -> ShareChange | None:
        """What the members of a generation compute now; None unless all of them have told the same shares."""
        shares = {name: told[name].done.share for name in members if name in told}
        if not shares or len(shares) < len(members) or not _is_whole(list(shares.values())):
            return None
        one = next(iter(shares.values()))
        by_node = {self._nodes.get(name, name): share.samples for name, share in sorted(shares.items())}
        return ShareChange(one.since, round(at, 3), by_node, one.gain, one.is_guess)

    def add(self, change: ShareChange) -> None:
        """After all before it."""
        with self._lock:
            self._all.append(change)
            self._seconds.append({})

    def measure(self, told: Mapping[str, Member]) -> None:
        """Note how long each node has computed for a step since the newest change; called again, since then."""
        done = {name: member.done for name, member in told.items()}
        with self._lock:
            if self._seconds:
                self._seconds[-1] = {
                    self._nodes.get(name, name): round((one.compute_seconds - mark.compute_seconds) / steps, 6)
                    for name, one in sorted(done.items())
                    if (mark := self._marks.get(name)) and (steps := one.steps - mark.steps) > 0
                }

    def mark(self, told: Mapping[str, Member]) -> None:
        """What is measured from now on belongs to the newest change."""
        self._marks = {name: member.done for name, member in told.items()}

    def explain(self, change: ShareChange, why: str) -> ShareChange:
        """Note why; the change with its reason."""
        told = replace(change, why=why)
        with self._lock:
            for place, one in enumerate(self._all):
                if one is change:
                    self._all[place] = told
        return told

    def report(self, most: int = MOST_CHANGES) -> list[dict[str, Any]]:
        """The newest ones, the oldest first; `step_seconds` are those of computing at these shares, a mean by node."""
        with self._lock:
            pairs = list(zip(self._all, self._seconds, strict=True))[-most:]
        return [to_body(one) | {"step_seconds": dict(seconds)} for one, seconds in pairs]

    def news(self, most: int) -> list[tuple[float, str]]:
        """The last sentences, each with its second of the run; small changes are in the report alone."""
        kept = list(self._all)
        pairs = [(before, now) for before, now in zip([None, *kept], kept, strict=False) if not is_small(now)]
        return [(now.at_seconds, sentence(before, now)) for before, now in pairs[-most:]]


def is_small(change: ShareChange) -> bool:
    """Whether it makes a step hardly shorter.

    >>> is_small(ShareChange(9, 1.0, {"a": 4}, gain=1.05)), is_small(ShareChange(0, 0.0, {"a": 4}))
    (True, False)
    """
    return change.gain is not None and change.gain < TOLD_GAIN


def to_body(change: ShareChange) -> dict[str, Any]:
    """As the journal and the report have it."""
    return {name: value for name, value in vars(change).items() if name != "is_guess"}


def from_body(body: Mapping[str, Any]) -> ShareChange:
    """Inverse of it."""
    return ShareChange(**body)


def sentence(before: ShareChange | None, now: ShareChange) -> str:
    """For people: of many nodes, the one whose share moved the most.

    >>> first = ShareChange(0, 0.1, {"a": 64, "b": 64}, why="the first shares, all nodes alike")
    >>> sentence(None, first)
    'from step 0 on, 2 nodes share 128 samples: the first shares, all nodes alike'
    >>> sentence(first, ShareChange(1200, 9.0, {"a": 26, "b": 102}, 1.5, why="free of a fell from 0.98 to 0.21"))
    'from step 1,200 on, a computes 26 samples of 128 in place of 64: free of a fell from 0.98 to 0.21'
    """
    batch = sum(now.shares.values())
    why = f": {now.why}" if now.why else ""
    if before is None or before.shares.keys() != now.shares.keys():
        return f"from step {now.step:,} on, {len(now.shares)} nodes share {batch:,} samples{why}"
    node = find_node(before.shares, now.shares)
    return (
        f"from step {now.step:,} on, {node} computes {now.shares[node]:,} samples of {batch:,} "
        f"in place of {before.shares[node]:,}{why}"
    )


def _is_whole(shares: Sequence[Share]) -> bool:
    """Whether they are those of one moment, and of all who computed then."""
    moments = {(one.since, one.batch) for one in shares}
    return len(moments) == 1 and sum(one.samples for one in shares) == shares[0].batch > 0
