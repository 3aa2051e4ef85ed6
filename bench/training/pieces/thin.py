"""Two members joined by 20 Mbit/s and 50 ms: how soon the training loss is as low, by how often they average."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from bench.info.errors import BenchError
from bench.training.linked import count_generations, linked_ddp, linked_ours
from bench.training.pieces.place import Found, Place
from bench.training.runs import Run

BATCH = 256
WAYS = {"every": "every", "local_16": "local:16", "auto": "auto", "ddp": None}
"""How members average; None is DDP."""
LOSS, QUICK_LOSS = 0.8, 1.9
"""It begins with 2.3."""
MOST_SECONDS, QUICK_MOST_SECONDS = 90.0, 30.0
"""A way that has not come to the loss by then counts as so long."""
ROUNDS = 3
START_SECONDS = 120.0

Looks = Sequence[tuple[float, float]]
"""Seconds since the first step, and the loss then."""


def seconds_until(looks: Looks, least: float, most_seconds: float) -> float:
    """When the loss came to `least`, on the line between two looks; `most_seconds` if it did not by then.

    >>> seconds_until([(0.0, 2.0), (10.0, 1.0)], 1.25, 90.0)
    7.5
    """
    before: tuple[float, float] | None = None
    for seconds, loss in looks:
        if loss <= least:
            if before is None:
                return min(seconds, most_seconds)
            part = (before[1] - least) / (before[1] - loss)
            return min(before[0] + part * (seconds - before[0]), most_seconds)
        before = seconds, loss
    return most_seconds


def thin(place: Place) -> Found:
    """Seconds of each way, in turns, and how many times longer it takes to average after every step."""
    found: Found = {}
    for number in range(place.rounds or ROUNDS):
        order = list(WAYS)
        place.chance.shuffle(order)
        took = {name: _seconds(place, name) for name in order}
        told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in took.items())
        place.say(f"thin, round {number + 1}: {told}")
        for name, seconds in took.items():
            found.setdefault(f"thin_{name}", []).append(seconds)
        for name in ("local_16", "auto", "ddp"):
            found.setdefault(f"thin_every_of_{name}", []).append(took["every"] / took[name])
    return found


def _seconds(place: Place, name: str) -> float:
    """Until the loss is reached by this way."""
    least, most = (QUICK_LOSS, QUICK_MOST_SECONDS) if place.quick else (LOSS, MOST_SECONDS)
    with _begin(place, name, [str(least), str(most)]) as run:
        run.wait(lambda _: (run.out / "seen").exists(), f"a loss of {least}", START_SECONDS + 2 * most)
        if WAYS[name] is not None and count_generations(run) != 1:
            raise BenchError(f"thin: a member was lost while they averaged by {WAYS[name]}: {run.out / 'run/journal'}")
        return seconds_until(_read(run.out / "losses.jsonl"), least, most)


def _begin(place: Place, name: str, words: Sequence[str]) -> AbstractContextManager[Run]:
    settings, sync = place.settings(None, BATCH, seed=place.seed), WAYS[name]
    return linked_ddp(settings, words) if sync is None else linked_ours(settings, sync, words)


def _read(file: Path) -> list[tuple[float, float]]:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [(seconds, loss) for _, seconds, loss in rows]


PIECES = {"thin": thin}
