"""One long run: AlexNet on pictures, on two uneven nodes, at each step and in rounds, beside MXNet's dist_sync."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial

from bench.info.processes import ROOT, clean_environment
from bench.programs import output
from bench.training.nodes import Nodes
from bench.training.pieces.place import Found, Place, result
from bench.training.pieces.speed import Start
from bench.training.runs import PROGRAMS, mxnet, ours
from jobs.application.package import WORKER_PYTHON

UNEVEN = (0.4, 1.2)
"""CPUs."""
COUNT, QUICK_COUNT = 400, 100
"""Pictures."""
BATCH = 32
EPOCHS, QUICK_EPOCHS = 24, 2
SECONDS, QUICK_SECONDS = 120.0, 1.0
"""In which steps of one way are counted, after those of a first round."""
ROUND, QUICK_ROUND = 16, 2
"""Steps between two averages, of the way that trains in rounds."""
END_SECONDS = 1800.0


def pictures(place: Place) -> Found:
    """Pictures a second of each way in turns, then a whole run in rounds: its minutes, and how much it has learned."""
    _make(place)
    found: Found = {}
    ways = _ways(place)
    with place.nodes(UNEVEN) as made:
        for _ in range(place.rounds or 1):
            order = list(ways)
            place.chance.shuffle(order)
            rates = {name: _rate(place, made, ways[name]) for name in order}
            place.say("pictures a second: " + ", ".join(f"{name} {rate:.1f}" for name, rate in rates.items()))
            for name, rate in rates.items():
                found.setdefault(f"pictures_{name}", []).append(rate)
            for name in ("every", "local_16"):
                found.setdefault(f"pictures_{name}_of_mxnet", []).append(rates[name] / rates["mxnet"])
        begun = time.monotonic()
        settings = place.settings(made, BATCH, epochs=QUICK_EPOCHS if place.quick else EPOCHS)
        with ways["local_16"](settings, len(UNEVEN)) as run:
            run.wait_for_end(END_SECONDS)
            found["pictures_accuracy"] = [result(run, 0)["accuracy"]]
        found["pictures_seconds"] = [time.monotonic() - begun]
    place.say(f"pictures, the whole run: {found['pictures_seconds']} s, accuracy {found['pictures_accuracy']}")
    return found


def _ways(place: Place) -> Mapping[str, Start]:
    return {
        "every": partial(ours, program="alexnet_ours.py"),
        "local_16": partial(ours, program="alexnet_ours.py", sync=f"local:{_round(place)}"),
        "mxnet": partial(mxnet, program="alexnet_sync.py"),
    }


def _round(place: Place) -> int:
    return QUICK_ROUND if place.quick else ROUND


def _make(place: Place) -> None:
    """JPEGs, and arrays of them, which all programs read."""
    folder, count = place.folder / "pictures", QUICK_COUNT if place.quick else COUNT
    make = ["images", "make", folder, "-n", count, "--seed", place.seed]
    output([sys.executable, "-m", "nodewise", *map(str, make)], "the pictures")
    around = {**clean_environment(), "PYTHONPATH": str(ROOT)}
    argv = [WORKER_PYTHON, PROGRAMS / "pictures.py", folder, place.folder, place.seed, BATCH]
    output(list(map(str, argv)), "the arrays", env=around)


def _rate(place: Place, made: Nodes, start: Start) -> float:
    seconds = QUICK_SECONDS if place.quick else SECONDS
    with start(place.settings(made, BATCH), len(made.names)) as run:
        begin = run.wait_for_step(_round(place))[-1]
        time.sleep(seconds)
        end = run.wait_for_step(begin.steps + 1)[-1]
    return BATCH * (end.steps - begin.steps) / (end.at - begin.at)


PIECES: dict[str, Callable[[Place], Found]] = {"pictures": pictures}
