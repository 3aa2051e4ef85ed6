"""The faults, one function each, which tells whether there was anything to hit."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence

import psutil

from bench.stage import signal_all
from bench.training_faults.place import LAUNCHER, MASTER, ON_NODES, STORE, Place, kill, node_of, with_all_below

Fault = Callable[[Place, random.Random], bool]

FROZEN_SECONDS = (1.0, 20.0)
"""Shorter and longer than the silence after which a member is lost, and the time that its container is left."""
CUT_SECONDS = (1.0, 20.0)
AWAY_SECONDS = (0.0, 2.0, 18.0)
"""A NodeManager counts as lost after about fifteen seconds."""
OFF_SECONDS = (0.0, 10.0)


def member(place: Place, chance: random.Random) -> bool:
    """A member is killed, or its launcher with it."""
    return _kill_one(chance, place.members() if chance.choice([True, False]) else place.find(LAUNCHER))


def members(place: Place, chance: random.Random) -> bool:  # noqa: ARG001 nothing is chosen
    """All members are killed at once."""
    found = place.members()
    kill(found)
    return bool(found)


def frozen(place: Place, chance: random.Random) -> bool:
    """A member stands still for a while, alone or with its launcher."""
    alone = chance.choice([True, False])
    chosen = _choose(chance, place.members() if alone else place.find(LAUNCHER))
    victims = chosen if alone else with_all_below(chosen)
    signal_all(victims, signal.SIGSTOP)
    try:
        time.sleep(chance.uniform(*FROZEN_SECONDS))
    finally:
        signal_all(victims, signal.SIGCONT)
    return bool(chosen)


def store(place: Place, chance: random.Random) -> bool:
    """The stores of all members are killed, that beside rank 0 among them, and in half of all cases a member."""
    found = place.find(STORE)
    kill(found + (_choose(chance, place.members()) if chance.choice([True, False]) else []))
    return bool(found)


def master(place: Place, chance: random.Random) -> bool:
    """The application master is killed."""
    return _kill_one(chance, place.find(MASTER))


def master_and_member(place: Place, chance: random.Random) -> bool:
    """The application master and a member are killed at once."""
    masters, trained = place.find(MASTER), place.members()
    if not (masters and trained):
        return False
    kill(masters + _choose(chance, trained))
    return True


def nodemanager(place: Place, chance: random.Random) -> bool:
    """A NodeManager is killed and started again, before or after it counts as lost."""
    found = place.daemon("nodemanager", chance.choice(place.nodes))
    place.kill(found)
    time.sleep(chance.choice(AWAY_SECONDS))
    place.start(found)
    return True


def node(place: Place, chance: random.Random) -> bool:
    """All of a node is killed, a member or the application master among it, and its daemons start again later."""
    name = chance.choice(place.nodes)
    found = [one for one in [*place.find(MASTER), *place.find(LAUNCHER)] if node_of(one) == name]
    kill(with_all_below(found))
    place.kill(*(place.daemon(kind, name) for kind in ON_NODES))
    time.sleep(chance.uniform(*OFF_SECONDS))
    for kind in ON_NODES:
        place.start(place.daemon(kind, name))
    return True


def partition(place: Place, chance: random.Random) -> bool:
    """A node loses all others and the cluster's master, both ways."""
    name = chance.choice(place.nodes)
    with place.network.cut((name, "*"), ("*", name)):
        time.sleep(chance.uniform(*CUT_SECONDS))
    return True


def half_open(place: Place, chance: random.Random) -> bool:
    """What a node sends is lost, or what it is sent."""
    name = chance.choice(place.nodes)
    with place.network.cut(chance.choice([(name, "*"), ("*", name)])):
        time.sleep(chance.uniform(*CUT_SECONDS))
    return True


def peers(place: Place, chance: random.Random) -> bool:
    """Two members lose each other, both ways or one, while both reach the application master."""
    masters = set(map(node_of, place.find(MASTER)))
    found = sorted(set(map(node_of, place.members())) - masters - {""})
    if len(found) < 2:
        return False
    one, other = chance.sample(found, 2)
    with place.network.cut(*chance.choice([[(one, other), (other, one)], [(one, other)]])):
        time.sleep(chance.uniform(*CUT_SECONDS))
    return True


FAULTS: Mapping[str, Fault] = {
    one.__name__: one
    for one in (
        member,
        members,
        frozen,
        store,
        master,
        master_and_member,
        nodemanager,
        node,
        partition,
        half_open,
        peers,
    )
}


def _choose(chance: random.Random, found: Sequence[psutil.Process]) -> list[psutil.Process]:
    return [chance.choice(sorted(found, key=lambda one: one.pid))] if found else []


def _kill_one(chance: random.Random, found: Sequence[psutil.Process]) -> bool:
    chosen = _choose(chance, found)
    kill(chosen)
    return bool(chosen)
