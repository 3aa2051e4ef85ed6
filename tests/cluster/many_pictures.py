"""Many pictures in HDFS for little: most are copies under other names, by which alone jobs tell them apart."""

from __future__ import annotations

import os
from pathlib import Path

from hdfs import InsecureClient

from bench.stage import PICTURES
from hadoop.local.lifecycle import Cluster
from jobs.images.datasets import load, make

FOLDER = PICTURES
"""All modules use this one, one after another, so that most pictures are there already."""
DIFFERENT = 20


def load_pictures(cluster: Cluster, folder: Path, count: int) -> None:
    """Make so many in a new folder, and have FOLDER hold these and no others; they are the same each time."""
    make(folder, DIFFERENT)
    made = sorted(folder.glob("*.jpg"))
    for number in range(DIFFERENT, count):
        os.link(made[number % DIFFERENT], folder / f"copy_{number:03}.jpg")
    hdfs = InsecureClient(cluster.namenode_http, user=cluster.user)
    wanted = {one.name: one.stat().st_size for one in folder.glob("*.jpg")}
    there = _sizes(hdfs)
    for name, size in there.items():
        if wanted.get(name) == size:
            (folder / name).unlink()
        else:
            hdfs.delete(f"{FOLDER}/{name}")
    if any(folder.glob("*.jpg")):
        load(folder, FOLDER, cluster.namenode_http, cluster.user)
    assert _sizes(hdfs) == wanted
    assert len(wanted) == count


def _sizes(hdfs: InsecureClient) -> dict[str, int]:
    """The bytes of each file that is there."""
    if not hdfs.status(FOLDER, strict=False):
        return {}
    return {name: about["length"] for name, about in hdfs.list(FOLDER, status=True)}
