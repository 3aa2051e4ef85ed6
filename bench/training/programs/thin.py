"""`thin.py SETTINGS ours|ddp LOSS SECONDS`: train until rank 0 finds this loss over all samples, or for so long.

242,490 parameters, which are a megabyte in each step; a sample costs little. Rank 0 writes losses.jsonl: steps, seconds
since its first step, and the loss of all samples then. What this takes is no part of the time that shares depend on,
but it is part of the time that is written.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import distributed
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from bench.training.programs.network import RATE
from bench.training.settings import Settings, split_evenly
from locality.training.sample_order import SampleOrder
from nodewise.learning import Run

SAMPLES, INPUTS, CLASSES = 4096, 64, 10
LOOK_STEPS = 8
"""From one loss of all samples to the next, at least."""


def network(seed: int) -> torch.nn.Module:
    """Fully connected."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(INPUTS, 512),
        torch.nn.ReLU(),
        torch.nn.Linear(512, 400),
        torch.nn.ReLU(),
        torch.nn.Linear(400, CLASSES),
    )


def data(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Seeded, and labelled by another network that is drawn."""
    drawn = torch.Generator().manual_seed(seed)
    x = torch.randn(SAMPLES, INPUTS, generator=drawn)
    first, second = torch.randn(INPUTS, 32, generator=drawn) / 8, torch.randn(32, CLASSES, generator=drawn)
    return x, (torch.tanh(3 * x @ first) @ second).argmax(1)


class Watch:
    """Writes the losses that rank 0 finds; once it has seen enough it waits for its end: others need its sockets."""

    def __init__(self, settings: Settings, least: float, most_seconds: float, loss: Callable[[], float]) -> None:
        self._out = Path(settings.out)
        self._file = (self._out / "losses.jsonl").open("w", buffering=1)
        self._least, self._most_seconds, self._loss = least, most_seconds, loss
        self._began = time.monotonic()
        self._next = 0

    def look(self, steps: int) -> None:
        """So many are done."""
        if steps < self._next:
            return
        self._next = steps + LOOK_STEPS
        seconds = time.monotonic() - self._began
        loss = self._loss()
        self._file.write(json.dumps([steps, seconds, loss]) + "\n")
        if loss <= self._least or seconds > self._most_seconds:
            (self._out / "seen").touch()
            time.sleep(self._most_seconds)


def main(settings: Settings, way: str, least: float, most_seconds: float) -> None:
    """Until it is ended."""
    x, y = data(settings.seed)
    net = network(settings.seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)

    def loss() -> float:
        with torch.no_grad():
            return float(cross_entropy(net(x), y))

    def watch() -> Watch:
        return Watch(settings, least, most_seconds, loss)

    (_ours if way == "ours" else _ddp)(settings, net, optimizer, (x, y), watch)


Data = tuple[torch.Tensor, torch.Tensor]


def _ours(
    settings: Settings, net: torch.nn.Module, optimizer: torch.optim.Optimizer, told: Data, start: Callable[[], Watch]
) -> None:
    """As the manual says; the loss is looked at once a part is computed, which changes no parameter."""
    watch: Watch | None = None
    with Run(net, optimizer, told, batch=settings.batch, epochs=settings.epochs, seed=settings.seed) as run:
        for x, y in run:
            if watch is None and run._membership.rank == 0:  # only the bench needs to know the rank
                watch = start()
            run.step(lambda: cross_entropy(net(x), y))  # noqa: B023 called at once
            if watch is not None:
                watch.look(run.steps)


def _ddp(
    settings: Settings, net: torch.nn.Module, optimizer: torch.optim.Optimizer, told: Data, start: Callable[[], Watch]
) -> None:
    """Plain DistributedDataParallel over gloo, with equal shares."""
    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    order = SampleOrder(SAMPLES, settings.batch, settings.seed)
    model = DistributedDataParallel(net)
    watch = None if rank else start()
    for steps in range(settings.epochs * order.steps):
        if watch is not None:
            watch.look(steps)
        numbers = order.of_step(*order.locate(steps))
        shares = split_evenly(len(numbers), world)
        own = torch.as_tensor(numbers[sum(shares[:rank]) :][: shares[rank]])
        optimizer.zero_grad()
        loss = cross_entropy(model(told[0][own]), told[1][own])
        (loss * (len(own) * world / len(numbers))).backward()  # DDP takes the mean over ranks
        optimizer.step()


if __name__ == "__main__":
    main(Settings.read(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
