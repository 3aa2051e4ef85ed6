"""How well the network knows digits that it has never seen, after runs that lost members, beside one process alone."""

from __future__ import annotations

from bench.training.pieces.place import Found, Place, result
from bench.training.runs import Run, alone, hit, ours

BATCH = 256
EPOCHS = 2
MEMBERS = 4
ALONE_SEEDS, SEEDS = range(1, 11), range(1, 6)
END_SECONDS = 300.0


def accuracy(place: Place) -> Found:
    """Runs with other seeds, each of which loses three of its four members; `rounds` are fewer seeds of both."""
    most = place.rounds
    found: Found = {"accuracy_alone": [], "accuracy": []}
    for seed in ALONE_SEEDS[: most and 2 * most]:
        with alone(place.settings(None, BATCH, epochs=EPOCHS, seed=seed)) as run:
            run.wait_for_end(END_SECONDS)
            found["accuracy_alone"].append(result(run, 0)["accuracy"])
    place.say(f"accuracy, one process: {found['accuracy_alone']}")
    for seed in SEEDS[:most]:
        with ours(place.settings(None, BATCH, epochs=EPOCHS, seed=seed), MEMBERS) as run:
            left = _lose_most(place, run)
            found["accuracy"].append(result(run, left)["accuracy"])
    place.say(f"accuracy after three losses: {found['accuracy']}")
    return found


def _lose_most(place: Place, run: Run) -> int:
    """Kill members in the middle, and wait for the end; the node that is left."""
    steps = EPOCHS * place.epoch(BATCH)
    left = list(range(MEMBERS))
    for step in sorted(place.chance.sample(range(steps // 10, steps * 9 // 10, steps // 24), MEMBERS - 1)):
        run.wait_for_step(step)
        lost = place.chance.choice(left)
        left.remove(lost)
        hit(run.pids()[lost])
    run.wait_for_end(END_SECONDS)
    return left[0]


PIECES = {"accuracy": accuracy}
