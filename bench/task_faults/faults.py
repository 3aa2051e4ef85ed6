"""The faults, one function each: it hits something, and tells whose programs have to end of that."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psutil

from bench.stage import module_of, signal_all
from bench.task_faults.watched import application_of, find_programs
from bench.tasks.scene import Scene
from hadoop.local import daemons, lifecycle
from hadoop.local.daemons import Daemon


@dataclass(frozen=True)
class Hit:
    """What a fault has hit: tasks whose programs end of it, and whether those may fail for good."""

    tasks: frozenset[str] = frozenset()
    may_fail: bool = False


Fault = Callable[[Scene, random.Random], Hit | None]
"""None when there was nothing to hit."""


def runner(scene: Scene, chance: random.Random) -> Hit | None:
    """The runner of a task is killed."""
    runners = _runners(scene)
    if not runners:
        return None
    chosen = chance.choice(sorted(runners))
    _kill([runners[chosen]])
    return Hit(frozenset([chosen]))


def box(scene: Scene, chance: random.Random) -> Hit | None:  # noqa: ARG001 its process is one of this machine
    """The program of a task is killed, and with it its box."""
    programs = find_programs()
    if not programs:
        return None
    pid = chance.choice(sorted(programs))
    _kill([psutil.Process(pid)])
    return Hit(frozenset([programs[pid]]), may_fail=True)


def dockerd(scene: Scene, chance: random.Random) -> Hit | None:
    """Docker is killed, and started again after a while."""
    scene.docker.kill_docker()
    time.sleep(chance.choice([0.0, 3.0]))
    scene.docker.start_docker()
    return Hit()


def broker(scene: Scene, chance: random.Random) -> Hit | None:
    """The broker's process for one of the boxes is killed."""
    serving = psutil.Process(scene.docker.broker.pid).children()
    if not serving:
        return None
    _kill([chance.choice(serving)])
    return Hit()


def nodemanager(scene: Scene, chance: random.Random) -> Hit | None:
    """A NodeManager is killed and started again."""
    _restart(scene, Daemon(scene.made.cluster, "nodemanager", chance.choice(scene.made.cluster.nodes)), chance)
    return Hit()


def resourcemanager(scene: Scene, chance: random.Random) -> Hit | None:
    """The ResourceManager is killed and started again."""
    _restart(scene, Daemon(scene.made.cluster, "resourcemanager"), chance)
    return Hit()


def service(scene: Scene, chance: random.Random) -> Hit | None:
    """The information service is killed with its submitter, and started again."""
    running = scene.made.service
    if running is None:
        return None
    running.kill()
    running.wait()
    time.sleep(chance.choice([0.0, 3.0]))
    scene.made.serve("--submit")
    return Hit()


def node(scene: Scene, chance: random.Random) -> Hit | None:
    """All of a node is killed: NodeManager, DataNode, runners and boxes."""
    name = chance.choice(scene.made.cluster.nodes)
    running = daemons.find_running(scene.made.cluster)
    lost = {one.task_id for one in scene.client.tasks() if one.node_name == name and not one.state.is_final}
    victims = [running[one] for one in running if one.node == name and one.kind in ("nodemanager", "datanode")]
    victims += [one for task_id, one in _runners(scene).items() if task_id in lost]
    victims += [psutil.Process(pid) for pid, task_id in find_programs().items() if task_id in lost]
    _kill(victims)
    return Hit(frozenset(lost), may_fail=True)


FAULTS: Mapping[str, Fault] = {
    one.__name__: one for one in (runner, box, dockerd, broker, nodemanager, resourcemanager, service, node)
}


def mend(scene: Scene) -> None:
    """Start again whatever is missing."""
    lifecycle.up(scene.made.cluster.home)


def _runners(scene: Scene) -> dict[str, psutil.Process]:
    """The runners of tasks by their tasks."""
    by_application = {one.application_id: one.task_id for one in scene.client.tasks() if not one.state.is_final}
    found = {}
    for one in scene.made.working():
        if module_of(one) == "jobs.kinds" and (task_id := by_application.get(application_of(one))):
            found[task_id] = one
    return found


def _restart(scene: Scene, daemon: Daemon, chance: random.Random) -> None:
    if found := daemons.find_running(scene.made.cluster).get(daemon):
        _kill([found])
        found.wait()  # until then it has the ports
    time.sleep(chance.choice([0.0, 2.0, 15.0]))
    daemons.start(daemon)


def _kill(victims: list[psutil.Process]) -> None:
    """As one as can be: each stands still before the first is gone."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        signal_all(victims, number)
