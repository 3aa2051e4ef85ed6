"""Many pictures in HDFS for little: most are copies under other names, by which alone jobs tell them apart."""

from __future__ import annotations

import os
from pathlib import Path

from hdfs import InsecureClient

from hadoop.local.lifecycle import Cluster
from jobs.images.datasets import load, make

DIFFERENT = 20


def load_pictures(cluster: Cluster, folder: Path, target: str, count: int) -> None:
    """Make so many in a new folder, and load them in place of what is there."""
    make(folder, DIFFERENT)
    made = sorted(folder.glob("*.jpg"))
    for number in range(DIFFERENT, count):
        os.link(made[number % DIFFERENT], folder / f"copy_{number:03}.jpg")
    InsecureClient(cluster.namenode_http, user=cluster.user).delete(target, recursive=True)
    loaded = load(folder, target, cluster.namenode_http, cluster.user).loaded
    assert loaded == count
