"""Whether members should stop for processes that wait, by what members have told of their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median

from learning.lead.calls import Done
from locality.training.first_guess import first_models
from locality.training.generation_events import Generation
from locality.training.joining import Work, find_wanted
from locality.training.shares import StepTime
from locality.training.step_model import Line

REGROUP_SECONDS = 1.0
"""What a change of members costs a run, about."""
ENOUGH_STEPS = 2
"""That all members make, from when somebody waits, before others are judged by them."""


class Worth:
    """Of the processes of a run that may have `most` members."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._number = 0
        self._first: Mapping[str, Done] = {}

    def find_wanted(
        self, made: Generation, waiting: Sequence[str], told: Mapping[str, Done], measures: Mapping[str, float]
    ) -> frozenset[str]:
        """All members of a generation that computes, and those that wait and would save the run more than they cost.

        `told` and `measures` are by process: what it has done, and what its node is judged by. A process without a
        measure counts as like the middle of the members. Nobody joins as long as members have made too few steps.
        """
        if len(made.members) >= self._most:
            return frozenset(made.members)
        done = {name: told[name] for name in made.members if name in told}
        if made.number != self._number or not self._first:
            self._number, self._first = made.number, done if len(done) == len(made.members) else {}
        is_known = self._first and all(_is_known(self._first[name], one) for name, one in done.items())
        if not is_known or not any(one.share.sample_seconds for one in done.values()):
            return frozenset(made.members)
        newest = max(done.values(), key=lambda one: one.steps)
        batch, times = newest.share.batch, _times(done, waiting, measures)
        work = Work(
            batch=batch,
            times=times,
            most=dict.fromkeys(times, batch),
            comm_seconds=partial(_exchange_seconds, len(done), self._waited(done)),
            steps_left=newest.steps_in_all - newest.steps,
            regroup_seconds=REGROUP_SECONDS,
        )
        return find_wanted(made.members, waiting, work, least=len(made.members), most=self._most)

    def _waited(self, done: Mapping[str, Done]) -> float:
        """Seconds of a step that the exchange takes: what the member waits that comes last."""
        pairs = [(self._first[name], one) for name, one in done.items()]
        return min((one.wait_seconds - first.wait_seconds) / (one.steps - first.steps) for first, one in pairs)


def _is_known(first: Done, now: Done) -> bool:
    return now.steps - first.steps >= ENOUGH_STEPS and (now.share.sample_seconds > 0 or not now.share.samples)


def _times(done: Mapping[str, Done], waiting: Sequence[str], measures: Mapping[str, float]) -> dict[str, StepTime]:
    """Of members as they have told; of others by their measure, with the fixed part that members have."""
    shares = {name: one.share for name, one in done.items() if one.share.sample_seconds > 0}
    fixed = median(share.fixed_seconds for share in shares.values())
    speeds = {name: 1 / share.sample_seconds for name, share in shares.items()}
    guessed = first_models([name for name in (*done, *waiting) if name not in shares], speeds, measures)
    lines = {name: Line(share.fixed_seconds, share.sample_seconds) for name, share in shares.items()}
    lines |= {name: Line(fixed, model.line.sample_seconds) for name, model in guessed.items()}
    return {name: line.seconds for name, line in lines.items()}


def _exchange_seconds(now: int, seconds: float, members: int) -> float:
    """Of one of so many members, when it takes so long with `now` members: by the bytes that each of them sends.

    Each sends 2 (n - 1) / n of what is exchanged: Patarasuk and Yuan, Bandwidth optimal all-reduce, 2009.

    >>> _exchange_seconds(2, 0.3, 2), round(_exchange_seconds(2, 0.3, 4), 6), _exchange_seconds(1, 0.0, 2)
    (0.3, 0.45, 0.0)
    """
    return seconds * (members - 1) * now / (members * (now - 1)) if now > 1 else 0.0
