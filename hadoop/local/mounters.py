"""Starts on each node what keeps the mounts of environments; it ends with the cluster, as it bears its marker.

The cluster works without it, where this machine has no FUSE for example: then each program mounts for itself.
"""

from __future__ import annotations

import fcntl
import sys
from contextlib import suppress

import psutil

from hadoop.installation import ROOT
from hadoop.local import daemons, processes, site
from hadoop.local.state import Cluster

_MODULE = "boxes.mounts"  # by its name, as neither room knows the other


def start_missing(cluster: Cluster) -> None:
    """Start those that do not run; their logs say which cannot, and why."""
    for node in cluster.nodes:
        if not is_serving(cluster, node):
            words = [sys.executable, *_words(cluster, node)]
            daemons.spawn(cluster, node, words, cluster.logs / f"mounts-{node}.log", {"PYTHONPATH": str(ROOT)})


def find_running(cluster: Cluster) -> dict[str, int]:
    """The process ids of those that run now, by node; of those that one has started, its own."""
    found: dict[str, int] = {}
    for process in sorted(processes.of_cluster(cluster.home, cluster.subnet), key=lambda one: one.pid):
        with suppress(psutil.Error):
            last = process.cmdline()[-3:]
            for node in cluster.nodes:
                if last == _words(cluster, node):
                    found.setdefault(node, process.pid)
    return found


def is_serving(cluster: Cluster, node: str) -> bool:
    """Whether one serves the programs of a node now."""
    try:
        with (site.mounts(cluster, node) / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def _words(cluster: Cluster, node: str) -> list[str]:
    """The last words of its command line, which no other process has."""
    return ["-m", _MODULE, str(site.mounts(cluster, node))]
