"""`python -m tests.worker.learning.hand_over RANK STORE MIB`: one of two members; the first hands its state on.

It prints by how many MiB its memory grew meanwhile at most.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from learning.learners.torch_module import TorchModule
from learning.member.group import Group, Place
from learning.member.own_state import OwnState
from learning.member.rounds import Rounds
from learning.member.share_plan import SharePlan
from locality.training.sample_order import SampleOrder

COLUMNS = 1024


def main(rank: int, store: str, mebibytes: int) -> None:
    """Adam keeps two moments of each parameter."""
    model = torch.nn.Linear(COLUMNS, mebibytes * (1 << 20) // 4 // 3 // COLUMNS, bias=False)
    optimizer = torch.optim.Adam(model.parameters())
    learner, order = TorchModule(model, optimizer, None, None), SampleOrder(8, 4)
    state = OwnState(learner, SharePlan(4), Rounds("every", learner, order), order, 10)
    if not rank:
        learner.apply(torch.ones(learner.size))
        model.weight.grad = None
    group = Group(Place(1, rank, 2, store, "127.0.0.1"), lambda: False)
    group.form()

    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak
    given = group.spread(None if rank else state.pack())
    if rank:
        state.take_over(given, is_behind=True)
    print(_memory("VmHWM") - before, flush=True)
    group.abandon().join(10)
    os._exit(0)


def _memory(name: str) -> int:
    (line,) = [one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith(f"{name}:")]
    return int(line.split()[1]) >> 10


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
