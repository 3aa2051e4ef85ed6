"""`ddp.py SETTINGS`: plain DistributedDataParallel over gloo, started by itself or by torchrun.

A share is computed in pieces of at most 128 samples, as by nodewise: larger ones are slower here for everybody.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from bench.training.programs.network import RATE, load, network
from bench.training.programs.step_log import StepLog
from bench.training.settings import NODE, Settings, split_evenly
from locality.training.micro_batches import MOST, split
from locality.training.sample_order import SampleOrder

TIMEOUT = timedelta(seconds=30)
"""Of gloo, whose own are 30 minutes."""


def main(settings: Settings) -> None:
    """Train until it is ended, or all epochs are done."""
    images, labels = load(settings, "train")
    net = network(settings.seed)
    distributed.init_process_group("gloo", timeout=TIMEOUT)
    rank, world = distributed.get_rank(), distributed.get_world_size()
    node = int(os.environ.get(NODE, rank))
    order = SampleOrder(len(images), settings.batch, settings.seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)
    steps = _load(settings, net, optimizer)
    model = DistributedDataParallel(net)
    settings.enter(node)
    log = StepLog(settings, node)
    log.begin(steps)
    while steps < settings.epochs * order.steps:
        numbers = order.of_step(*order.locate(steps)).tolist()
        optimizer.zero_grad()
        pieces = list(_pieces(numbers, settings.shares or split_evenly(len(numbers), world), rank))
        for place, piece in enumerate(pieces):
            log.compute(steps, 0, piece)
            chosen = torch.as_tensor(piece)
            with contextlib.nullcontext() if place == len(pieces) - 1 else model.no_sync():
                loss = cross_entropy(model(images[chosen]), labels[chosen])
                (loss * (len(piece) * world / len(numbers))).backward()  # DDP takes the mean over ranks
        optimizer.step()
        steps += 1
        log.reach(steps)
        if settings.checkpoint_steps and not rank and steps % settings.checkpoint_steps == 0:
            _store(settings, net, optimizer, steps)


def _pieces(numbers: list[int], shares: Any, rank: int) -> Iterator[list[int]]:
    begin = sum(shares[:rank])
    for size in split(shares[rank], MOST):
        yield numbers[begin : begin + size]
        begin += size


def _store(settings: Settings, net: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    file = Path(settings.out) / "checkpoint"
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "steps": steps}, f"{file}.new")
    Path(f"{file}.new").replace(file)


def _load(settings: Settings, net: torch.nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Steps of the checkpoint, 0 without one."""
    file = Path(settings.out) / "checkpoint"
    if not file.exists():
        return 0
    kept = torch.load(file)
    net.load_state_dict(kept["net"])
    optimizer.load_state_dict(kept["optimizer"])
    return int(kept["steps"])


if __name__ == "__main__":
    main(Settings.read(sys.argv[1]))
