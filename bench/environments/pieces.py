"""What is measured: each piece is a table, in whose rounds all ways take turns."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bench.environments.asking import MAKE_AGAIN, REFUSAL, make_again, refuse, serve_old_drivers
from bench.environments.content import MXNET, TORCH, Content
from bench.environments.limits import limited
from bench.environments.memory import measure
from bench.environments.run import Phases, run
from bench.environments.scene import Say, Scene
from bench.environments.ways import CACHED, COLD, LOAD, OURS, SHARED, SYSTEM, TAR, UV, UV_WARM, Way

BANDWIDTHS = (1000, 100)
"""Megabits a second."""

LEAST_QUESTIONS = 3
"""How often the two questions are asked at least, which take seconds: others may keep the machine busy once."""

Found = dict[str, dict[str, list[float]]]
"""Readings by way and phase."""


@dataclass(frozen=True)
class Place:
    """Where to measure; `rounds` are None for what each piece thinks right."""

    scene: Scene
    chance: random.Random
    rounds: int | None
    say: Say


Piece = Callable[[Place], Found]


def measure_cold(place: Place, megabits: int, everywhere: bool, rounds: int, ways: Sequence[Way] = COLD) -> Found:
    """Nodes that have nothing fetch everything through cards of such a bandwidth: one of them, or all at once."""
    nodes = place.scene.nodes if everywhere else place.scene.nodes[:1]

    def once(way: Way) -> Phases:
        with limited(megabits, place.scene.senders):
            return max(run(place.scene, way, nodes, True), key=lambda one: one["ready"])

    return _take_turns(place, ways, rounds, once)


def measure_cached(place: Place, rounds: int) -> Found:
    """A second program on a node that has all that it keeps; another Python follows in the same container."""
    _lay_out(place.scene)

    def once(way: Way) -> Phases:
        return run(place.scene, way, place.scene.nodes[:1], way is UV_WARM, "again")[0]

    return _take_turns(place, CACHED, rounds, once)


def measure_memory(place: Place, rounds: int) -> Found:
    """Bytes of a program on a node, and of one more there, while both run."""
    _lay_out(place.scene)
    return _take_turns(place, SHARED, rounds, partial(measure, place.scene))


def measure_asking(place: Place, rounds: int) -> Found:
    """Two questions that no node has to work for, in turns; one that is not measured goes first."""
    found: Found = {MAKE_AGAIN: {"ready": []}, REFUSAL: {"ready": []}}
    with serve_old_drivers(place.scene) as stage:
        refuse(place.scene, stage, 0)
        for number in range(1, max(LEAST_QUESTIONS, place.rounds or rounds) + 1):
            for question, told in (
                (MAKE_AGAIN, make_again(place.scene)),
                (REFUSAL, refuse(place.scene, stage, number)),
            ):
                place.say(f"round {number}, {question}: {told['ready']:.4g} s")
                found[question]["ready"].append(told["ready"])
    return found


def _lay_out(scene: Scene) -> None:
    """Have one node keep what each way keeps."""
    for way in (OURS, TAR, LOAD, UV):
        run(scene, way, scene.nodes[:1], True)


def _take_turns(place: Place, ways: Sequence[Way], rounds: int, once: Callable[[Way], Phases]) -> Found:
    """All ways that are here, in an order that is drawn for each round."""
    found: Found = {}
    order = [way for way in ways if way.is_here()]
    for number in range(1, (place.rounds or rounds) + 1):
        place.chance.shuffle(order)
        for way in order:
            told = once(way)
            place.say(f"round {number}, {way.name}: " + ", ".join(f"{name} {told[name]:.4g}" for name in sorted(told)))
            for name, value in told.items():
                found.setdefault(way.name, {}).setdefault(name, []).append(value)
    return found


PIECES: Mapping[str, Piece] = {
    "cold-1000": partial(measure_cold, megabits=1000, everywhere=False, rounds=5),
    "cold-100": partial(measure_cold, megabits=100, everywhere=False, rounds=3),
    "four-1000": partial(measure_cold, megabits=1000, everywhere=True, rounds=3),
    "four-100": partial(measure_cold, megabits=100, everywhere=True, rounds=2),
    "cached": partial(measure_cached, rounds=10),
    "memory": partial(measure_memory, rounds=3),
    "asking": partial(measure_asking, rounds=10),
    "torch": partial(measure_cold, megabits=1000, everywhere=False, rounds=3, ways=SYSTEM),
}


def content_of(piece: str) -> Content:
    """What all ways of a piece bring."""
    return TORCH if piece == "torch" else MXNET


def tell_size(piece: str, way: str) -> str:
    """The name of the bytes that a way fetches: those of pieces that bring MXNet are named by the way alone."""
    return way if content_of(piece) is MXNET else f"{piece}: {way}"
