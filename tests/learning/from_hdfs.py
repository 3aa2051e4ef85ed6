"""A program that trains from HDFS; its last line is what it has found, as JSON.

The first word says how the data lies there (parquet, folder or packs), the second one where.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import torch

from learning.member.surroundings import NODE
from nodewise.learning import Run, hdfs_images, hdfs_parquet

SIDE, CLASSES, FEATURES = 16, 4, 6


def data(kind: str, path: str) -> Any:
    if kind == "parquet":
        return hdfs_parquet(path, [f"x{number}" for number in range(FEATURES)], "y", dtype="float64")
    return hdfs_images(path, SIDE)


def train(kind: str, path: str) -> list[float]:
    torch.manual_seed(11)
    net = torch.nn.Linear(FEATURES if kind == "parquet" else 3 * SIDE * SIDE, CLASSES).double()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    with Run(net, optimizer, data(kind, path), batch=24, epochs=3, seed=3) as run:
        for x, y in run:
            if NODE in os.environ:
                time.sleep(0.02 * len(x))  # as long on each node, so that their shares stay alike
            run.step(lambda: torch.nn.functional.cross_entropy(net(x.double().flatten(1)), y))  # noqa: B023 at once
    found: list[float] = torch.cat([one.detach().reshape(-1) for one in net.parameters()]).tolist()
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(train(*sys.argv[1:])))
