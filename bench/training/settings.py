"""What a program of this bench is told, in a file of JSON; the standard library is all that this needs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

NODE = "NODEWISE_BENCH_NODE"
"""The variable with the number of the node that a program stands for."""
PINNED = "cpu:"
"""How a node begins that is one CPU, which it may share with others, in place of a control group."""


@dataclass(frozen=True)
class Settings:
    """`data` and `out` are folders; `nodes` are control groups, or `cpu:0`, or empty for no limit.

    shares            samples of each rank in a step; None for equal ones
    checkpoint_steps  after which torchrun's program stores its state; 0 for never
    keeps_numbers     whether the numbers of all samples are written down
    """

    data: str
    out: str
    nodes: Sequence[str]
    batch: int
    epochs: int = 1000
    seed: int = 1
    shares: Sequence[int] | None = None
    checkpoint_steps: int = 0
    keeps_numbers: bool = False

    def write(self) -> Path:
        """Into its folder, which is made; the file."""
        file = Path(self.out) / "settings.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(asdict(self)))
        return file

    @staticmethod
    def read(file: str) -> Settings:
        """What was written."""
        return Settings(**json.loads(Path(file).read_text()))

    def enter(self, number: int) -> None:
        """Be on a node from now on, with all threads."""
        node = self.nodes[number]
        if node.startswith(PINNED):
            os.sched_setaffinity(0, {int(node.removeprefix(PINNED))})
        elif node:
            (Path(node) / "cgroup.procs").write_text(str(os.getpid()))


def split_evenly(batch: int, members: int) -> list[int]:
    """The shares of members that are thought equal.

    >>> split_evenly(10, 4)
    [3, 3, 2, 2]
    """
    return [batch // members + (number < batch % members) for number in range(members)]
