"""`ours.py SETTINGS`: the loop of the manual, alone or as a member that `nodewise train local` has started."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from bench.training.programs.network import RATE, accuracy, load, network
from bench.training.programs.step_log import StepLog
from bench.training.settings import NODE, Settings
from nodewise.learning import Run

MEMBER = "NODEWISE_TRAINING"
"""The variable whose file is named after the member: member-2.json."""


def main(settings: Settings) -> None:
    """Train, and write the accuracy at the end."""
    told = os.environ.get(MEMBER)
    node = int(Path(told).stem.rpartition("-")[2]) if told else int(os.environ.get(NODE, "0"))
    images, labels = load(settings, "train")
    data = images, labels, torch.arange(len(images))
    net = network(settings.seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)
    run = Run(net, optimizer, data, batch=settings.batch, epochs=settings.epochs, seed=settings.seed)
    teach(settings, node, run, lambda x, y: cross_entropy(net(x), y), lambda: accuracy(net, settings))


def teach(
    settings: Settings, node: int, run: Run, loss: Callable[..., Any], accuracy_then: Callable[[], float]
) -> None:
    """Train to the end on a node, with its steps written down; the data gives the numbers of samples last."""
    settings.enter(node)
    log = StepLog(settings, node)
    with run:
        for *part, numbers in run:
            # Only the bench needs to know which generation a piece is computed for.
            log.compute(run.steps, run._membership.number, numbers.tolist())
            run.step(lambda: loss(*part))  # noqa: B023 called at once
            log.computed()
    log.reach(run.steps)
    found = {"accuracy": accuracy_then(), "loss": run.loss, "steps": run.steps}
    (Path(settings.out) / f"result-{node}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Settings.read(sys.argv[1]))
