"""When shares change: only if that pays by more than what noise would promise, and not at every step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from locality.training.shares import StepTime, divide, step_seconds
from locality.training.step_model import StepModel

EVERY_STEPS = 5
LEAST_GAIN = 0.03
NOISES = 2.0


@dataclass(frozen=True)
class Shares:
    """Who computes how many samples of each global batch, from `first_step` on; a guess if one made no step yet.

    `gain` is T_before / T, both as predicted when these shares took the place of others; None where they did not.
    """

    first_step: int
    samples: Mapping[str, int]
    is_guess: bool = False
    gain: float | None = None


def best_shares(step: int, batch: int, models: Mapping[str, StepModel], most: Mapping[str, int]) -> Shares:
    """The best shares from `step` on, each within what its member's line is to be trusted for where that is possible.

    PlanError as of `divide`.
    """
    reaches = {member: model.reach() for member, model in models.items()}
    near = {
        member: count if (reach := reaches.get(member)) is None else min(count, reach) for member, count in most.items()
    }
    room = sum(near.get(member, 0) for member in models)
    samples = divide(batch, _times(models), near if room >= batch else most)
    return Shares(step, samples, any(not models[member].readings for member, share in samples.items() if share))


def reconsider(now: Shares, step: int, models: Mapping[str, StepModel], most: Mapping[str, int]) -> Shares:
    """The shares for `step`: those of `now`, or better ones.

    They change when T_now / T_best > 1 + max(3 %, 2 sigma), both as predicted, sigma being the noise of the member
    that ends last now, and at the earliest 5 steps after the last change, or one step after a guess. `models` are of
    the same members; when these change, take `best_shares`.
    """
    if step < now.first_step + (1 if now.is_guess else EVERY_STEPS):
        return now
    times = _times(models)
    best = best_shares(step, sum(now.samples.values()), models, most)
    last = max(now.samples, key=lambda member: times[member](now.samples[member]))
    threshold = 1 + max(LEAST_GAIN, NOISES * models[last].noise)
    seconds, best_seconds = step_seconds(now.samples, times), step_seconds(best.samples, times)
    return replace(best, gain=seconds / best_seconds) if seconds > threshold * best_seconds else now


def _times(models: Mapping[str, StepModel]) -> dict[str, StepTime]:
    return {member: model.seconds for member, model in models.items()}
