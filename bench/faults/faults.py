"""The faults, one function each, which returns whether there was anything to hit; and what mends them."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from subprocess import Popen

import psutil

from bench.faults import service_faults
from bench.stage import Stage, module_of
from hadoop.local import daemons, lifecycle
from hadoop.local.daemons import Daemon
from hadoop.local.processes import family

FROZEN_SECONDS = 14.0
"""Longer than a lease, so that what the worker brings afterwards comes too late."""

ZOMBIE_SECONDS = 6.0
"""How long an application master that was given up works on beside its successor."""

SUCCESSOR_SECONDS = 90.0
JUMP_SECONDS = 600.0


@dataclass
class Trial:
    """A job under way: its client, its id, the dice, and what faults themselves found wrong."""

    stage: Stage
    client: Popen[str]
    job_id: str
    chance: random.Random
    wrong: list[str] = field(default_factory=list)

    def workers(self) -> list[psutil.Process]:
        """The first process of each worker."""
        mine = [one for one in self.stage.working() if module_of(one) == "jobs.worker"]
        pids = {one.pid for one in mine}
        return [one for one in mine if _parent_of(one) not in pids]

    def masters(self) -> list[psutil.Process]:
        """The processes of application masters."""
        return [one for one in self.stage.working() if module_of(one) == "jobs.kinds"]

    def daemon(self, kind: str) -> Daemon:
        """The daemon of a kind, on any node if there are several."""
        return self.chance.choice([one for one in daemons.find_running(self.stage.cluster) if one.kind == kind])


def worker(trial: Trial) -> bool:
    """A worker is killed."""
    return _kill(trial.chance, trial.workers())


def process(trial: Trial) -> bool:
    """A process that a worker has forked is killed."""
    return _kill(trial.chance, [child for one in trial.workers() for child in family(one)[1:]])


def frozen(trial: Trial) -> bool:
    """A worker stands still until its leases have ended, then goes on."""
    chosen = _choose(trial.chance, trial.workers())
    for one in chosen:
        _freeze(family(one))
    return bool(chosen)


def master(trial: Trial) -> bool:
    """The application master is killed."""
    return _kill(trial.chance, trial.masters())


def zombie_master(trial: Trial) -> bool:
    """The application master stands still with its NodeManager until its successor works, and goes on beside it."""
    chosen = _choose(trial.chance, trial.masters())
    if not chosen:
        return False
    name = _node_of(chosen[0])
    manager = daemons.find_running(trial.stage.cluster)[Daemon(trial.stage.cluster, "nodemanager", name)]
    before = family(chosen[0])
    _signal([manager, *before], signal.SIGSTOP)
    try:
        _wait_for_successor(trial, {one.pid for one in before})
        _signal(before, signal.SIGCONT)
        time.sleep(ZOMBIE_SECONDS)  # its NodeManager would end it at once
    finally:
        _signal([*before, manager], signal.SIGCONT)
    return True


def namenode(trial: Trial) -> bool:
    """The NameNode is killed and started again."""
    _restart(trial, "namenode", trial.chance.choice([0.0, 5.0]))
    return True


def clock_jump(trial: Trial) -> bool:
    """The clock of one machine jumps by ten minutes, forwards or back, and stays there until the job has ended."""
    if trial.stage.clocks is None:
        return False
    machine = trial.chance.choice([None, *trial.stage.cluster.nodes])
    trial.stage.clocks.put(machine, trial.chance.choice([JUMP_SECONDS, -JUMP_SECONDS]))
    return True


def nodemanager(trial: Trial) -> bool:
    """A NodeManager is killed and started again, before or after it counts as lost."""
    _restart(trial, "nodemanager", trial.chance.choice([0.0, 2.0, 18.0]))
    return True


def node(trial: Trial) -> bool:
    """Everything on one node is killed, but not the node of the application master."""
    cluster = trial.stage.cluster
    masters = {_node_of(one) for one in trial.masters()}
    name = trial.chance.choice([one for one in cluster.nodes if one not in masters])
    running = daemons.find_running(cluster)
    for kind in ("nodemanager", "datanode"):
        if found := running.get(Daemon(cluster, kind, name)):
            _signal([found], signal.SIGKILL)
    _signal([one for one in trial.stage.working() if _node_of(one) == name], signal.SIGKILL)
    return True


def datanode(trial: Trial) -> bool:
    """A DataNode is killed."""
    _signal([daemons.find_running(trial.stage.cluster)[trial.daemon("datanode")]], signal.SIGKILL)
    return True


def stuck(trial: Trial) -> bool:
    """A DataNode stands still for a while: its connections stay open, and nothing comes."""
    _freeze([daemons.find_running(trial.stage.cluster)[trial.daemon("datanode")]])
    return True


def resourcemanager(trial: Trial) -> bool:
    """The ResourceManager is killed and started again."""
    _restart(trial, "resourcemanager", trial.chance.choice([0.0, 5.0]))
    return True


def service(trial: Trial) -> bool:
    """The information service is killed, killed and started, restored from a backup, or kept from its database."""
    if trial.stage.service is None or trial.stage.service.poll() is not None:
        return False
    trial.wrong += trial.chance.choice(service_faults.WAYS)(trial.stage)
    return True


def client(trial: Trial) -> bool:
    """Who submitted the job and follows it is killed."""
    if trial.client.poll() is not None:
        return False
    trial.client.kill()
    return True


def job(trial: Trial) -> bool:
    """The job is killed by its owner."""
    trial.stage.nodewise("job", "kill", trial.job_id)
    return True


FAULTS: dict[str, Callable[[Trial], bool]] = {
    function.__name__: function
    for function in (
        worker,
        process,
        frozen,
        master,
        zombie_master,
        namenode,
        clock_jump,
        nodemanager,
        node,
        datanode,
        stuck,
        resourcemanager,
        service,
        client,
        job,
    )
}


def datanodes_away(stage: Stage) -> bool:
    """Whether a DataNode was killed and not started again."""
    running = daemons.find_running(stage.cluster)
    return any(one.kind == "datanode" and one not in running for one in daemons.of(stage.cluster))


def mend(stage: Stage) -> None:
    """Start again whatever is missing, and set all clocks right."""
    if stage.clocks:
        stage.clocks.put_right()
    lifecycle.up(stage.cluster.home)
    if stage.service is None or stage.service.poll() is not None:
        stage.serve()


def _restart(trial: Trial, kind: str, seconds: float) -> None:
    chosen = trial.daemon(kind)
    _signal([daemons.find_running(trial.stage.cluster)[chosen]], signal.SIGKILL)
    time.sleep(seconds)
    daemons.start(chosen)


def _wait_for_successor(trial: Trial, before: set[int]) -> None:
    """Return when another application master runs; at most when the job could have begun one."""
    deadline = time.monotonic() + SUCCESSOR_SECONDS
    while time.monotonic() < deadline and all(one.pid in before for one in trial.masters()):
        time.sleep(0.2)


def _parent_of(one: psutil.Process) -> int | None:
    """None of a process that has ended since it was found."""
    try:
        return one.ppid()
    except psutil.Error:
        return None


def _node_of(one: psutil.Process) -> str:
    try:
        return one.environ().get("NM_HOST", "")
    except psutil.Error:
        return ""


def _choose(chance: random.Random, found: list[psutil.Process]) -> list[psutil.Process]:
    return [chance.choice(sorted(found, key=lambda one: one.pid))] if found else []


def _kill(chance: random.Random, found: list[psutil.Process]) -> bool:
    chosen = _choose(chance, found)
    _signal(chosen, signal.SIGKILL)
    return bool(chosen)


def _freeze(found: list[psutil.Process]) -> None:
    _signal(found, signal.SIGSTOP)
    try:
        time.sleep(FROZEN_SECONDS)
    finally:
        _signal(found, signal.SIGCONT)


def _signal(found: list[psutil.Process], number: int) -> None:
    for one in found:
        try:
            one.send_signal(number)
        except psutil.NoSuchProcess:
            continue
