"""Starts on each node what keeps the mounts of environments; it ends with the cluster, as it bears its marker.

The cluster works without it, where this machine has no FUSE for example: then each program mounts for itself.
"""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path

from hadoop.local import daemons, site
from hadoop.local.state import Cluster

_ROOT = Path(__file__).resolve().parents[2]
_MODULE = "boxes.mounts"  # by its name, as neither room knows the other


def start_missing(cluster: Cluster) -> None:
    """Start those that do not run; their logs say which cannot, and why."""
    for node in cluster.nodes:
        folder = site.mounts(cluster, node)
        if not _is_served(folder):
            words = [sys.executable, "-m", _MODULE, str(folder)]
            daemons.spawn(cluster, node, words, cluster.logs / f"mounts-{node}.log", {"PYTHONPATH": str(_ROOT)})


def _is_served(folder: Path) -> bool:
    try:
        with (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False
