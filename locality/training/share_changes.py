"""When shares change: only if that pays by more than what noise would promise, and not at every step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from locality.training.shares import StepTime, divide, step_seconds
from locality.training.step_model import StepModel

EVERY_STEPS = 5
FEW = 4
"""With fewer readings a node is new, or has become another: then shares need not wait."""
LEAST_GAIN = 0.03
NOISES = 2.0


@dataclass(frozen=True)
class Shares:
    """Who computes how many samples of each global batch, from `first_step` on; a guess if one made no step yet.

    They are bounded if one has as many as its line is to be trusted for, so that it may be able to do more.
    `gain` is T_before / T, both as predicted when these shares took the place of others; None where they did not.
    """

    first_step: int
    samples: Mapping[str, int]
    is_guess: bool = False
    is_bounded: bool = False
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
    is_guess = any(not models[member].readings for member, share in samples.items() if share)
    is_bounded = any(samples[member] == reach for member, reach in reaches.items())
    return Shares(step, samples, is_guess, is_bounded)


def reconsider(now: Shares, step: int, models: Mapping[str, StepModel], most: Mapping[str, int]) -> Shares:
    """The shares for `step`: those of `now`, or better ones.

    They change when T_now / T_best > 1 + max(3 %, 2 sigma / sqrt(n)), both as predicted, sigma being the noise of the
    member that ends last now, and n how many of its readings count. At the earliest that is 5 steps after the last
    change, but one step after a guess, after bounded shares, or where a node is new or has become another. `models`
    are of the same members; when these change, take `best_shares`.
    """
    has_changed = any(0 < len(model.readings) < FEW for model in models.values())
    if step < now.first_step + (1 if now.is_guess or now.is_bounded or has_changed else EVERY_STEPS):
        return now
    times = _times(models)
    best = best_shares(step, sum(now.samples.values()), models, most)
    last = max(now.samples, key=lambda member: times[member](now.samples[member]))
    threshold = 1 + max(LEAST_GAIN, NOISES * models[last].uncertainty())
    seconds, best_seconds = step_seconds(now.samples, times), step_seconds(best.samples, times)
    return replace(best, gain=seconds / best_seconds) if seconds > threshold * best_seconds else now


def _times(models: Mapping[str, StepModel]) -> dict[str, StepTime]:
    return {member: model.seconds for member, model in models.items()}
