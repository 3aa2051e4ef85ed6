"""The faults of a local cluster, one function each, which returns whether there was anything to hit."""

from __future__ import annotations

import random
import signal
import time

import psutil

from bench.faults import service_faults
from bench.faults.local import Local
from bench.faults.place import Trial
from bench.stage import signal_all
from hadoop.local import daemons
from hadoop.local.daemons import Daemon
from hadoop.local.processes import family

LocalTrial = Trial[Local]

STUCK_SECONDS = 14.0
ZOMBIE_SECONDS = 6.0
"""How long an application master that was given up works on beside its successor."""

SUCCESSOR_SECONDS = 90.0
JUMP_SECONDS = 600.0


def worker(trial: LocalTrial) -> bool:
    """A worker is killed."""
    return _kill(trial.chance, trial.place.workers())


def process(trial: LocalTrial) -> bool:
    """A process that a worker has forked is killed."""
    return _kill(trial.chance, [child for one in trial.place.workers() for child in family(one)[1:]])


def frozen(trial: LocalTrial) -> bool:
    """A worker stands still until its leases have ended, in a pool until it counts as hung, then goes on."""
    chosen = _choose(trial.chance, trial.place.workers())
    for one in chosen:
        _freeze(family(one), trial.place.frozen_seconds)
    return bool(chosen)


def master(trial: LocalTrial) -> bool:
    """The application master is killed."""
    return _kill(trial.chance, trial.place.masters())


def zombie_master(trial: LocalTrial) -> bool:
    """The application master stands still with its NodeManager until its successor works, and goes on beside it."""
    chosen = _choose(trial.chance, trial.place.masters())
    if not chosen:
        return False
    name = _node_of(chosen[0])
    cluster = trial.place.stage.cluster
    manager = daemons.find_running(cluster).get(Daemon(cluster, "nodemanager", name))
    if manager is None:
        return False
    before = family(chosen[0])
    signal_all([manager, *before], signal.SIGSTOP)
    try:
        _wait_for_successor(trial, {one.pid for one in before})
        signal_all(before, signal.SIGCONT)
        time.sleep(ZOMBIE_SECONDS)  # its NodeManager would end it at once
    finally:
        signal_all([*before, manager], signal.SIGCONT)
    return True


def namenode(trial: LocalTrial) -> bool:
    """The NameNode is killed and started again."""
    _restart(trial, "namenode", trial.chance.choice([0.0, 5.0]))
    return True


def clock_jump(trial: LocalTrial) -> bool:
    """The clock of one machine jumps by ten minutes, forwards or back, and stays there until the job has ended."""
    if trial.place.stage.clocks is None:
        return False
    machine = trial.chance.choice([None, *trial.place.stage.cluster.nodes])
    trial.place.stage.clocks.put(machine, trial.chance.choice([JUMP_SECONDS, -JUMP_SECONDS]))
    return True


def nodemanager(trial: LocalTrial) -> bool:
    """A NodeManager is killed and started again, before or after it counts as lost."""
    _restart(trial, "nodemanager", trial.chance.choice([0.0, 2.0, 18.0]))
    return True


def node(trial: LocalTrial) -> bool:
    """Everything on one node is killed, but not the node of the application master."""
    cluster = trial.place.stage.cluster
    masters = {_node_of(one) for one in trial.place.masters()}
    name = trial.chance.choice([one for one in cluster.nodes if one not in masters])
    running = daemons.find_running(cluster)
    for kind in ("nodemanager", "datanode"):
        if found := running.get(Daemon(cluster, kind, name)):
            signal_all([found], signal.SIGKILL)
    signal_all([one for one in trial.place.stage.working() if _node_of(one) == name], signal.SIGKILL)
    return True


def datanode(trial: LocalTrial) -> bool:
    """A DataNode is killed."""
    signal_all([daemons.find_running(trial.place.stage.cluster)[_daemon(trial, "datanode")]], signal.SIGKILL)
    return True


def stuck(trial: LocalTrial) -> bool:
    """A DataNode stands still for a while: its connections stay open, and nothing comes."""
    _freeze([daemons.find_running(trial.place.stage.cluster)[_daemon(trial, "datanode")]], STUCK_SECONDS)
    return True


def resourcemanager(trial: LocalTrial) -> bool:
    """The ResourceManager is killed and started again."""
    _restart(trial, "resourcemanager", trial.chance.choice([0.0, 5.0]))
    return True


def service(trial: LocalTrial) -> bool:
    """The information service is killed, killed and started, restored from a backup, or kept from its database."""
    if not trial.place.stage.is_serving:  # an earlier fault has ended it
        trial.place.stage.serve()
    trial.chance.choice(service_faults.WAYS)(trial)
    return True


def client(trial: LocalTrial) -> bool:
    """Who submitted the job and follows it is killed."""
    if trial.client is None or trial.client.poll() is not None:
        return False
    trial.client.kill()
    return True


def job(trial: LocalTrial) -> bool:
    """The job is killed by its owner."""
    trial.place.stage.nodewise("job", "kill", trial.job_id)
    return True


def _daemon(trial: LocalTrial, kind: str) -> Daemon:
    """The daemon of a kind, on any node if there are several."""
    return trial.chance.choice([one for one in daemons.find_running(trial.place.stage.cluster) if one.kind == kind])


def _restart(trial: LocalTrial, kind: str, seconds: float) -> None:
    chosen = _daemon(trial, kind)
    process = daemons.find_running(trial.place.stage.cluster)[chosen]
    signal_all([process], signal.SIGKILL)
    process.wait()  # until then it has the ports
    time.sleep(seconds)
    daemons.start(chosen)


def _wait_for_successor(trial: LocalTrial, before: set[int]) -> None:
    """Return when another application master runs; at most when the job could have begun one."""
    deadline = time.monotonic() + SUCCESSOR_SECONDS
    while time.monotonic() < deadline and all(one.pid in before for one in trial.place.masters()):
        time.sleep(0.2)


def _node_of(one: psutil.Process) -> str:
    try:
        return one.environ().get("NM_HOST", "")
    except psutil.Error:
        return ""


def _choose(chance: random.Random, found: list[psutil.Process]) -> list[psutil.Process]:
    return [chance.choice(sorted(found, key=lambda one: one.pid))] if found else []


def _kill(chance: random.Random, found: list[psutil.Process]) -> bool:
    chosen = _choose(chance, found)
    signal_all(chosen, signal.SIGKILL)
    return bool(chosen)


def _freeze(found: list[psutil.Process], seconds: float) -> None:
    signal_all(found, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        signal_all(found, signal.SIGCONT)
