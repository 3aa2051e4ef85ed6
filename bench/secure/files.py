"""The many files of a listing: made once, and copied into the other clusters before they start for the first time."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import psutil

from bench.programs import output, with_jvm
from bench.secure.figures import PLAIN, WAYS
from bench.secure.scene import Place
from bench.stage import Stage
from hadoop.local import state

MAKING_SECONDS, LOOKING_SECONDS = 3600.0, 600.0
SETTLING_SECONDS, LOOK_SECONDS = 120.0, 2.0
BUSY_PERCENT = 25.0
"""Of all cores: three idle clusters take less."""
NAMES, DATA = "namenode", "nodes/*/data"
"""Below the folder of a cluster: what its NameNode and its DataNodes keep."""


def folder_of(number: int) -> str:
    """Where in HDFS so many files are."""
    return f"/bench/{number}"


def spread(place: Place) -> None:
    """Make the files on the cluster without Kerberos, and give the others, if they are new, a copy of its HDFS.

    Each file costs connections, with Kerberos handshakes too: on each cluster anew they take most of an hour.
    """
    others = [place.home_of(way) for way in WAYS if way != PLAIN]
    if all(map(_has_hdfs, others)):
        return
    with place.cluster(PLAIN, 0) as made:
        make(place, PLAIN, made)
    for home in others:
        begun = time.monotonic()
        if copy_hdfs(place.home_of(PLAIN), home):
            place.say(f"the files were copied to {home} in {time.monotonic() - begun:.0f} s")


def make(place: Place, way: str, made: Stage) -> None:
    """Files with blocks, unless the cluster has them."""
    folder, number = folder_of(place.size.files), place.size.files
    found = json.loads(with_jvm(made.cluster, "bench.secure.listed", folder, seconds=LOOKING_SECONDS))
    if int(found["files"]) == number:
        return
    begun = time.monotonic()
    with_jvm(made.cluster, "bench.listing.files", folder, str(number), seconds=MAKING_SECONDS)
    place.say(f"{way}: {number} files were made in {time.monotonic() - begun:.0f} s")


def copy_hdfs(home: Path, other: Path) -> bool:
    """Whether a cluster that has no HDFS yet got that of another one; neither of them may run.

    BenchError when it cannot be copied. The names come last: who has them has the blocks, too.
    """
    source, target = state.state_dir(home), state.state_dir(other)
    if _has_hdfs(other):
        return False
    for folder in (*sorted(source.glob(DATA)), source / NAMES):
        there = target / folder.relative_to(source)
        shutil.rmtree(there, ignore_errors=True)  # of a copy that was broken off
        there.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        output(["cp", "--archive", str(folder), str(there)], f"a copy of {folder}")
    return True


def settle(place: Place) -> None:
    """Wait until all is on the disk and DataNodes have looked at their new blocks; two minutes at most, if others work.

    They read each block once after their start, as fast as they can, which is most of this machine's CPU.
    """
    begun = time.monotonic()
    os.sync()
    while psutil.cpu_percent(LOOK_SECONDS) > BUSY_PERCENT and time.monotonic() - begun < SETTLING_SECONDS:
        pass
    place.say(f"the clusters settled for {time.monotonic() - begun:.0f} s")


def _has_hdfs(home: Path) -> bool:
    return (state.state_dir(home) / NAMES).exists()
