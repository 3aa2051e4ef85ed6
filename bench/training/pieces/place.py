"""What every piece is given: folders, seeded chances, and how often to measure."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from bench.training.bound import Speeds
from bench.training.nodes import CannotLimit, Nodes, nodes
from bench.training.runs import Run, ddp
from bench.training.settings import Settings

Found = dict[str, list[float]]
SPEEDS_SECONDS = 180.0


@dataclass
class Place:
    """`folder` has the data, and gets a folder for each run. `rounds` replaces how often a piece usually measures,
    and `quick` says that its figures mean nothing: times of a minute are seconds then.

    `samples` are those of an epoch.

    `throttled` are the shares of periods in which nodes had used up their CPU.
    """

    folder: Path
    seed: int
    samples: int
    chance: random.Random
    rounds: int | None
    quick: bool
    say: Callable[[str], None]
    throttled: list[float] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def epoch(self, batch: int) -> int:
        """Its steps."""
        return self.samples // batch

    def settings(self, on: Nodes | None, batch: int, **more: Any) -> Settings:
        """Of a new run; without nodes, no program is limited."""
        names = on.names if on else [""] * 8
        return Settings(str(self.folder), str(self.folder / f"run-{next(self._numbers)}"), names, batch, **more)

    @contextmanager
    def nodes(self, cpus: Sequence[float], *, must_limit: bool = False) -> Iterator[Nodes]:
        """Nodes for a while; how often they were throttled is kept. CannotLimit where that is a must and cannot be."""
        with nodes(cpus) as made:
            if must_limit and not made.is_limited:
                raise CannotLimit
            yield made
            if (share := made.throttled()) is not None:
                self.throttled.append(share)

    def speeds(self, on: Nodes, batch: int = 1024) -> Speeds:
        """As they are now."""
        members = len(on.names)
        with ddp(self.settings(on, batch), members, "speeds.py") as run:
            run.wait_for_end(SPEEDS_SECONDS)
            found = [result(run, rank) for rank in range(members)]
        return Speeds(tuple(one["samples_per_second"] for one in found), max(one["fixed_seconds"] for one in found))


def result(run: Run, node: int) -> dict[str, float]:
    """What a program has written at its end."""
    told: dict[str, float] = json.loads((run.out / f"result-{node}.json").read_text())
    return told
