"""The list of all faults, with the places where each can be done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.faults import disk_faults, failover_faults, lab_faults, local_faults
from bench.faults.place import Place, Way
from bench.faults.volumes import find_obstacle
from bench.info.errors import BenchError

DISKS: tuple[Way[Any], ...] = (disk_faults.full_disk, disk_faults.slow_disk)
OF_NODES: tuple[Way[Any], ...] = (
    local_faults.worker,
    local_faults.process,
    local_faults.frozen,
    local_faults.master,
    local_faults.zombie_master,
    local_faults.nodemanager,
    local_faults.node,
    local_faults.datanode,
    local_faults.stuck,
    local_faults.client,
    local_faults.job,
    *DISKS,
)
"""Those of every cluster on this machine."""
WAYS: Mapping[str, tuple[Way[Any], ...]] = {
    "local": (
        *OF_NODES,
        local_faults.namenode,
        local_faults.clock_jump,
        local_faults.resourcemanager,
        local_faults.service,
    ),
    "ha": (
        *OF_NODES,
        failover_faults.namenode_failover,
        failover_faults.resourcemanager_failover,
        failover_faults.service_failover,
    ),
    "pool": (
        local_faults.worker,
        local_faults.frozen,
        local_faults.master,
        local_faults.nodemanager,
        local_faults.node,
    ),
    "lab": (lab_faults.partition, lab_faults.machine, *DISKS),
}
"""By the name of the place."""

FAULTS = {way.__name__: str(way.__doc__) for ways in WAYS.values() for way in ways}
"""Every kind, and what becomes of whom."""


def find_kinds(place: str) -> list[str]:
    """The kinds that can be done in a place, by name."""
    return sorted(way.__name__ for way in WAYS[place])


def do(kind: str, trial: Any) -> bool:
    """Do a fault where the trial is; whether there was anything to hit."""
    return next(way for way in WAYS[trial.place.name] if way.__name__ == kind)(trial)


def check(kinds: set[str], place: Place) -> None:
    """BenchError when one of them cannot be done here and now."""
    if "slow_disk" in kinds and (obstacle := find_obstacle()):
        raise BenchError(f"slow_disk cannot be done: {obstacle}")
    disks = sorted(kinds & {way.__name__ for way in DISKS})
    if disks and not place.volumes:
        raise BenchError(f"{' and '.join(disks)} cannot be done: this user can mount no volume; run it as root")
