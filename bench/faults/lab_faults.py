"""The faults that only machines of their own can have, one function each, as those of a local cluster are."""

from __future__ import annotations

import time

from bench.faults.lab import Lab
from bench.faults.partitions import Cut, cut
from bench.faults.place import Trial
from bench.lab import MASTER, WORKERS
from infosvc.wire.client import DEFAULT_PORT

LabTrial = Trial[Lab]

RESOURCEMANAGER_PORTS = (8030, 8031, 8032, 8033)
DATANODE_PORTS = (9864, 9866, 9867)
CUT_SECONDS = (5.0, 30.0)
"""Shorter and longer than the time after which a lease ends, a node is lost, or a DataNode is dead."""
OFF_SECONDS = (0.0, 20.0)


def partition(trial: LabTrial) -> bool:
    """Master and ResourceManager, worker and DataNode, or agent and service lose each other, one way or both."""
    way = trial.chance.choice((_from_resourcemanager, _from_datanode, _from_service))
    found = way(trial)
    if found is None:
        return False
    there, back = trial.chance.choice(((True, True), (True, False), (False, True)))
    with cut(found.rules(there, back)):
        time.sleep(trial.chance.uniform(*CUT_SECONDS))
    return True


def machine(trial: LabTrial) -> bool:
    """A whole machine is without power for a while: a worker, or the master."""
    name = trial.chance.choice((MASTER, *WORKERS))
    trial.place.machines.kill(name)
    time.sleep(trial.chance.uniform(*OFF_SECONDS))
    trial.place.switch_on(name)
    return True


def _from_resourcemanager(trial: LabTrial) -> Cut | None:
    """The machine of the application master loses the ResourceManager, or all of the master."""
    host = trial.place.find_master(trial.job_id)
    return _cut(trial, host, MASTER, RESOURCEMANAGER_PORTS) if host else None


def _from_datanode(trial: LabTrial) -> Cut:
    """A worker loses the DataNode of another machine, or all of that machine."""
    one, other = trial.chance.sample(WORKERS, 2)
    return _cut(trial, one, other, DATANODE_PORTS)


def _from_service(trial: LabTrial) -> Cut:
    """An agent loses the service, or all of the master."""
    return _cut(trial, trial.chance.choice(WORKERS), MASTER, (DEFAULT_PORT,))


def _cut(trial: LabTrial, one: str, other: str, ports: tuple[int, ...]) -> Cut:
    addresses = trial.place.machines.addresses
    return Cut(addresses[one], addresses[other], trial.chance.choice((ports, ())))
