"""What leads a run is killed, or where members meet, or the member of rank 0, or everything."""

from __future__ import annotations

import re
import time

import psutil

from bench.info.errors import BenchError
from bench.training.pieces.losses import BATCH, MEMBERS, STEPS_AFTER, STEPS_BEFORE, more
from bench.training.pieces.place import Found, Place
from bench.training.pieces.speed import EQUAL
from bench.training.progress import advances, longest_gap, pause_seconds, usual_seconds
from bench.training.runs import Run, begin_lead, begin_ours, hit, led, ours

ROUNDS = 4
WATCH_SECONDS = 4.0
"""Before and after the master's death."""
ALL_AFTER_SECONDS, QUICK_SECONDS = 75.0, 5.0
"""Longer than from one checkpoint to the next."""


def master(place: Place) -> Found:
    """The master dies and comes again; then the stores die, and a member at once, so that a new group needs another."""
    found: Found = {"master_lost": [], "store_pause": []}
    for number in range(place.rounds or ROUNDS):
        with place.nodes(EQUAL) as made, led(place.settings(made, BATCH), MEMBERS) as run:
            run.wait_for_step(STEPS_BEFORE)
            time.sleep(WATCH_SECONDS)
            at = hit(run.processes[0].pid)
            time.sleep(WATCH_SECONDS)
            rows, now = run.rows(), time.monotonic()
            before, after = longest_gap(rows, at - WATCH_SECONDS, at), longest_gap(rows, at, now)
            found["master_lost"].append(max(0.0, after - before))
            begin_lead(run, MEMBERS)
            more(run, STEPS_AFTER)
            time.sleep(WATCH_SECONDS)
            pids = run.pids()
            for pid in pids.values():
                hit(_store_of(pid))
            at = hit(pids[place.chance.choice(sorted(pids))])
            found["store_pause"].append(pause_seconds(more(run, STEPS_AFTER), at))
        place.say(f"master {found['master_lost'][-1]:.2f} s, store {found['store_pause'][-1]:.2f} s, run {number + 1}")
    return found


def rank_0(place: Place) -> Found:
    """The member of rank 0 dies, again and again."""
    found: Found = {"rank_0_pause": []}
    for _ in range(place.rounds or ROUNDS):
        with place.nodes(EQUAL) as made, ours(place.settings(made, BATCH), MEMBERS) as run:
            run.wait_for_step(STEPS_BEFORE)
            for _ in range(MEMBERS - 1):
                at = hit(run.pids()[_rank_0_of(run)])
                found["rank_0_pause"].append(pause_seconds(more(run, STEPS_AFTER), at))
        place.say(f"rank 0: pauses {found['rank_0_pause'][-3:]}")
    return found


def everything(place: Place) -> Found:
    """All processes die, and the run is started again in the same folder: how much work is done again."""
    found: Found = {"all_lost": []}
    for _ in range(place.rounds or 1):
        with place.nodes(EQUAL) as made, ours(place.settings(made, BATCH), MEMBERS) as run:
            run.wait_for_step(1)
            time.sleep((QUICK_SECONDS if place.quick else ALL_AFTER_SECONDS) + place.chance.uniform(0, 15))
            run.end()
            had = run.rows()
            begin_ours(run, MEMBERS)
            lost = max(row.steps for row in had) - _first_step(run, len(had))
            found["all_lost"].append(lost * usual_seconds(advances(had), had[-1].at))
        place.say(f"all: {lost} steps are done again")
    return found


def _first_step(run: Run, rows: int) -> int:
    """Of what is started again, after so many rows."""
    more_rows = run.wait(lambda found: len(found) > rows, "a second start")
    return more_rows[rows].steps


def _store_of(pid: int) -> int:
    """The process of a member's store."""
    for child in psutil.Process(pid).children():
        if any("store_server" in word for word in child.cmdline()):
            return child.pid
    raise BenchError(f"the member with process {pid} has no store")


def _rank_0_of(run: Run) -> int:
    """The node of the newest generation's first member."""
    said = (run.out / "lead.log").read_text()
    return int(re.findall(r"computes from step .*: member-(\d+)", said)[-1])


PIECES = {"master": master, "rank-0": rank_0, "all": everything}
