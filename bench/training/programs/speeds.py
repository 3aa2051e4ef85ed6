"""`speeds.py SETTINGS`: what the bound needs: samples a second while all compute and none waits, and the fixed cost.

The fixed cost is that of a step without samples: the vector is filled, summed over all, and applied by Adam.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
from torch import distributed
from torch.nn.functional import cross_entropy

from bench.training.programs.network import RATE, load, network
from bench.training.settings import Settings
from locality.training.micro_batches import MOST

SECONDS = 4.0
FIXED_STEPS = 30


def main(settings: Settings) -> None:
    """Write both into result-RANK.json."""
    images, labels = load(settings, "train")
    net = network(settings.seed)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    settings.enter(rank)
    distributed.barrier()
    found = {"samples_per_second": _speed(net, images, labels)}
    distributed.barrier()
    found["fixed_seconds"] = _fixed(net)
    (Path(settings.out) / f"result-{rank}.json").write_text(json.dumps(found))
    distributed.barrier()
    os._exit(0)  # gloo's destructors may abort a program that ends


def _speed(net: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """Of gradients, over so many seconds; the first one is a warm-up."""
    pieces, began = -1, 0.0
    while pieces < 0 or time.perf_counter() - began < SECONDS:
        chosen = torch.randint(len(images), (MOST,))
        cross_entropy(net(images[chosen]), labels[chosen]).backward()
        pieces += 1
        began = began or time.perf_counter()
    return pieces * MOST / (time.perf_counter() - began)


def _fixed(net: torch.nn.Module) -> float:
    parameters = list(net.parameters())
    optimizer = torch.optim.Adam(parameters, lr=RATE)
    for step in range(FIXED_STEPS + 1):
        if step == 1:
            began = time.perf_counter()
        flat = torch.cat([torch.zeros_like(one).reshape(-1) for one in parameters])
        distributed.all_reduce(flat)
        begin = 0
        for one in parameters:
            one.grad = flat[begin : begin + one.numel()].view_as(one)
            begin += one.numel()
        optimizer.step()
    return (time.perf_counter() - began) / FIXED_STEPS


if __name__ == "__main__":
    main(Settings.read(sys.argv[1]))
