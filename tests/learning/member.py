"""A program that trains; its last line is what it has found, as JSON.

--pace SECONDS are spent for each sample, ten times as many for those of the first part of a batch: a member that the
system lets wait there would else be taken for one that can do nothing. From step 40 on, a part takes two seconds more
until the file --until is there: so what is to come amid the run does. --batch is that of each step, --sync says how
often members average, --stop after which step this member stops the run, and --break names what goes wrong. With
--placed the samples lie on nodes: each fourth one on each of node-a, node-b and node-c, and the rest on all three.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from nodewise.learning import LearningError, Run

SAMPLES, FEATURES, EPOCHS = 1000, 12, 4
FIRST_PACES = 10
SLOW_FROM, SLOW_SECONDS = 40, 2.0


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """Seeded samples, and which of two sorts each is."""
    chance = torch.Generator().manual_seed(7)
    x = torch.randn(SAMPLES, FEATURES, dtype=torch.float64, generator=chance)
    return x, (x[:, :4].sum(1) * x[:, 4] > 0).double()


class Placed:
    """The same samples, which lie on nodes and are read ahead."""

    reads_ahead = True

    def __init__(self) -> None:
        self._data = data()

    def __len__(self) -> int:
        return SAMPLES

    def batch_of(self, numbers: Sequence[int]) -> tuple[torch.Tensor, ...]:
        return tuple(one[list(numbers)] for one in self._data)

    def places_of(self, numbers: Sequence[int]) -> list[tuple[str, ...]]:
        nodes = "node-a", "node-b", "node-c"
        return [nodes if number % 4 == 3 else (nodes[number % 4],) for number in numbers]


def model(wide: int) -> torch.nn.Module:
    """Without anything that depends on who computes which samples."""
    torch.manual_seed(11)
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, wide), torch.nn.Tanh(), torch.nn.GroupNorm(4, wide), torch.nn.Linear(wide, 1)
    ).double()


def wait_for(file: Path) -> None:
    """For two seconds at most."""
    end = time.monotonic() + SLOW_SECONDS
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.01)


def train(given: argparse.Namespace) -> list[float]:
    net = model(32 if given.wrong == "another network" else 16)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    samples = Placed() if given.placed else data()
    with Run(
        net, optimizer, samples, batch=given.batch, epochs=EPOCHS, seed=3, checkpoint_seconds=0.5, sync=given.sync
    ) as run:
        for part, (x, y) in enumerate(run):
            time.sleep(given.pace * len(x) * (1 if part else FIRST_PACES))
            if given.until and run.steps >= SLOW_FROM:
                wait_for(Path(given.until))
            if given.wrong == "no step" and run.steps == 3:
                continue
            if run.steps + 1 == given.stop:
                run.stop()
            by = float("nan") if given.wrong == "nan" and run.steps == 3 else 1.0
            run.step(lambda: binary_cross_entropy_with_logits(net(x).squeeze(1), y) * by)  # noqa: B023 called at once
    if run.is_stopped:
        print(f"stopped after {run.steps} steps")
    found: list[float] = torch.cat([one.detach().reshape(-1) for one in net.parameters()]).tolist()
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--pace", type=float, default=0.0)
    parser.add_argument("--until", default="")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--sync", default="every")
    parser.add_argument("--break", dest="wrong", default="")
    parser.add_argument("--placed", action="store_true")
    parser.add_argument("--stop", type=int, default=0)
    given = parser.parse_args()
    try:
        print(json.dumps(train(given)))
    except LearningError as error:
        print(error)
        sys.exit(3)
