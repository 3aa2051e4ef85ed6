"""A worker that is killed, or hangs: how long nobody computes, what work is lost, beside torchrun's elastic runs."""

from __future__ import annotations

import signal
import time

from bench.training.pieces.place import Found, Place
from bench.training.pieces.speed import EQUAL
from bench.training.progress import (
    Row,
    count_wrong_samples,
    lost_seconds,
    pause_seconds,
    read_pieces,
    steps_again,
)
from bench.training.runs import Run, hit, ours, torchrun
from locality.training.sample_order import SampleOrder

BATCH = 256
MEMBERS = len(EQUAL)
LOSSES = MEMBERS - 1
"""In a run: one member is left."""
STEPS_BEFORE, STEPS_AFTER = 30, 15
PAUSE_SECONDS = (0.3, 2.0)
"""Between a loss and the next one at least, drawn."""
KILL_ROUNDS, FREEZE_ROUNDS, PEER_ROUNDS = 10, 4, 3
FEW_STEPS = 50
PATIENCE_SECONDS = 240.0


def killed(place: Place) -> Found:
    """Members die one after the other; beside it, torchrun with a checkpoint each epoch and every 50 steps."""
    found: Found = {"killed_pause": [], "killed_lost": [], "killed_wrong_samples": []}
    for number in range(place.rounds or KILL_ROUNDS):
        _lose(place, signal.SIGKILL, found, "killed")
        place.say(f"killed, run {number + 1}: pauses {_text(found['killed_pause'][-LOSSES:])}")
    for name, steps in (("epoch", place.epoch(BATCH)), (str(FEW_STEPS), FEW_STEPS)):
        for _ in range(place.rounds or PEER_ROUNDS):
            lost, again = _lose_of_torchrun(place, steps, signal.SIGKILL)
            place.say(f"killed, torchrun, checkpoint {name}: {lost:.1f} s lost, {again} steps done again")
            found.setdefault(f"killed_torchrun_{name}", []).append(lost)
            found.setdefault(f"killed_torchrun_{name}_samples", []).append(again * BATCH)
    return found


def frozen(place: Place) -> Found:
    """Members hang one after the other; beside it a node of torchrun, agent and worker."""
    found: Found = {"frozen_pause": [], "frozen_wrong_samples": []}
    for number in range(place.rounds or FREEZE_ROUNDS):
        _lose(place, signal.SIGSTOP, found, "frozen")
        place.say(f"frozen, run {number + 1}: pauses {_text(found['frozen_pause'][-LOSSES:])}")
    lost, _ = _lose_of_torchrun(place, FEW_STEPS, signal.SIGSTOP)
    place.say(f"frozen, torchrun: {lost:.1f} s lost")
    return found | {"frozen_torchrun": [lost]}


def _lose(place: Place, number: signal.Signals, found: Found, key: str) -> None:
    """All members but one, of one run."""
    with place.nodes(EQUAL) as made, ours(place.settings(made, BATCH, keeps_numbers=True), MEMBERS) as run:
        run.wait_for_step(STEPS_BEFORE)
        left = run.pids()
        for _ in range(LOSSES):
            time.sleep(place.chance.uniform(*PAUSE_SECONDS))
            at = hit(left.pop(place.chance.choice(sorted(left))), number)
            rows = more(run, STEPS_AFTER)
            found[f"{key}_pause"].append(pause_seconds(rows, at))
            if f"{key}_lost" in found:
                found[f"{key}_lost"].append(lost_seconds(rows, at))
        found[f"{key}_wrong_samples"].append(wrong_samples(run, place.samples))


def more(run: Run, steps: int) -> list[Row]:
    """The rows once so many more steps are done than now."""
    had = max(row.steps for row in run.rows())
    run.wait_for_step(had + steps, PATIENCE_SECONDS)
    return run.rows()


def wrong_samples(run: Run, samples: int) -> int:
    """Missed, or used twice, so far."""
    pieces, rows = read_pieces(run.out), run.rows()  # in this order: what is known as done was written before
    known = {row.pid: row.steps for row in rows}
    until = max(known.values()) - STEPS_AFTER // 2
    return count_wrong_samples(pieces, known, SampleOrder(samples, BATCH, run.settings.seed), until)


def _lose_of_torchrun(place: Place, checkpoint_steps: int, number: signal.Signals) -> tuple[float, int]:
    """Seconds of work that a loss costs, and how many steps are done again."""
    with (
        place.nodes(EQUAL) as made,
        torchrun(place.settings(made, BATCH, checkpoint_steps=checkpoint_steps), MEMBERS) as run,
    ):
        run.wait_for_step(round(place.epoch(BATCH) * place.chance.uniform(1.1, 1.9)))
        node = place.chance.randrange(1, MEMBERS)  # the agent of node 0 holds the store of all, and must live
        if number == signal.SIGSTOP:
            hit(run.processes[node].pid, number)
        at = hit(run.pids()[node], number)
        rows = more(run, STEPS_AFTER)
        return lost_seconds(rows, at), steps_again(rows, at)


def _text(seconds: list[float]) -> str:
    return ", ".join(f"{one:.2f}" for one in seconds) + " s"


PIECES = {"killed": killed, "frozen": frozen}
