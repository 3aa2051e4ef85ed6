"""How fast: on steady uneven nodes beside the bound, on equal nodes beside DDP, and with more and more members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from statistics import median

from bench.training.bound import epoch_seconds, mean_speeds
from bench.training.nodes import Nodes
from bench.training.pieces.place import Found, Place
from bench.training.progress import advances, steps_per_second
from bench.training.runs import Run, ddp, mxnet, ours
from bench.training.settings import Settings

UNEVEN = (0.2, 0.2, 0.3, 0.8)
"""CPUs; they leave half a core for what else runs."""
EQUAL = (0.35,) * 4
SMALL = 0.2
COUNTS = (1, 2, 4, 8)
EPOCHS = 2
"""That count, after one in which shares are found."""
ROUNDS = 3
FIRST_STEPS, SCALING_STEPS, QUICK_STEPS = 4, 40, 5
"""Of a run before time counts, and then."""

Start = Callable[[Settings, int], AbstractContextManager[Run]]
WAYS: Mapping[str, Start] = {"ours": ours, "equal": ddp, "equal again": ddp, "mxnet": mxnet}


def steady(place: Place, batch: int) -> Found:
    """An epoch of each way in turns, beside the bound and equal shares; the speeds are measured before and after."""
    steps, key = place.epoch(batch), f"steady_{batch}"
    found: Found = {f"{key}_{name}": [] for name in ("of_bound", "equal_of_ours", "noise", "mxnet_of_ours", "bound")}
    with place.nodes(UNEVEN) as made:
        for number in range(place.rounds or ROUNDS):
            before = place.speeds(made)
            took = _turns(place, made, batch, steps)
            bound = epoch_seconds(mean_speeds([before, place.speeds(made)]), place.samples, batch)
            place.say(f"steady {batch}, round {number + 1}: bound {bound:.2f} s, {_text(took)}")
            found[f"{key}_bound"].append(bound)
            found[f"{key}_of_bound"].append(took["ours"] / bound)
            equal = (took["equal"] + took["equal again"]) / 2
            found[f"{key}_equal_of_ours"].append(equal / took["ours"])
            found[f"{key}_noise"].append(took["equal again"] / took["equal"])
            found[f"{key}_mxnet_of_ours"].append(took["mxnet"] / took["ours"])
    return found


def _turns(place: Place, made: Nodes, batch: int, steps: int) -> dict[str, float]:
    """Seconds of an epoch of each way, in an order that is drawn."""
    order = list(WAYS)
    place.chance.shuffle(order)
    return {name: _epoch(WAYS[name], place.settings(made, batch), len(made.names), steps) for name in order}


def _epoch(start: Start, settings: Settings, members: int, steps: int) -> float:
    with start(settings, members) as run:
        done = run.wait_for_step((1 + EPOCHS) * steps)
    return median(steps / steps_per_second(done, epoch * steps, (epoch + 1) * steps) for epoch in range(1, 1 + EPOCHS))


def equal_nodes(place: Place) -> Found:
    """Steps a second on nodes that are equal, beside DDP: what it costs to be adaptive where that is of no use."""
    found: Found = {"equal_nodes": [], "equal_nodes_noise": []}
    with place.nodes(EQUAL, must_limit=True) as made:
        for number in range(place.rounds or ROUNDS):
            took = _turns_of_equal(place, made)
            place.say(f"equal nodes, round {number + 1}: {_text(took)}")
            found["equal_nodes"].append((took["equal"] + took["equal again"]) / 2 / took["ours"])
            found["equal_nodes_noise"].append(took["equal again"] / took["equal"])
    return found


def _turns_of_equal(place: Place, made: Nodes) -> dict[str, float]:
    order = ["ours", "equal", "equal again"]
    place.chance.shuffle(order)
    steps = place.epoch(1024)
    return {name: _epoch(WAYS[name], place.settings(made, 1024), len(made.names), steps) for name in order}


def scaling(place: Place) -> Found:
    """Samples a second of 1, 2, 4 and 8 members of 0.2 CPU, as a share of so many times one alone, beside DDP."""
    found: Found = {}
    steps = QUICK_STEPS if place.quick else SCALING_STEPS
    for number in range(place.rounds or ROUNDS):
        rates: dict[tuple[str, int], float] = {}
        runs = [(name, count) for name in ("ours", "equal") for count in COUNTS]
        place.chance.shuffle(runs)
        for name, count in runs:
            with place.nodes([SMALL] * count, must_limit=True) as made:
                rates[name, count] = _rate(WAYS[name], place.settings(made, 1024), count, steps)
        place.say(f"scaling, round {number + 1}: {_text({f'{name} {n}': rate for (name, n), rate in rates.items()})}")
        for count in COUNTS[1:]:
            found.setdefault(f"scaling_{count}", []).append(rates["ours", count] / (count * rates["ours", 1]))
        for count in COUNTS:
            found.setdefault(f"scaling_{count}_of_ddp", []).append(rates["ours", count] / rates["equal", count])
    return found


def _rate(start: Start, settings: Settings, members: int, steps: int) -> float:
    """Samples a second."""
    last = FIRST_STEPS + steps
    with start(settings, members) as run:
        run.wait_for_step(last)
        return settings.batch * steps_per_second(advances(run.rows()), FIRST_STEPS, last)


def _text(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


PIECES: dict[str, Callable[[Place], Found]] = {
    "steady-1024": partial(steady, batch=1024),
    "steady-256": partial(steady, batch=256),
}
PIECES |= {"equal-nodes": equal_nodes, "scaling": scaling}
