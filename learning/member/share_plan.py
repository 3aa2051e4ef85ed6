"""The shares of each step. Rank 0 of a generation begins them; then every member works them out for itself.

All see the same times, so all find the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from learning.lead.calls import Share
from locality.training.first_guess import first_models
from locality.training.share_changes import Shares, best_shares, reconsider
from locality.training.shares import shrink
from locality.training.step_model import Line, Reading, StepModel

UNKNOWN = Line(0.0, 0.0)
"""What is told of a member that has made no step yet."""


class SharePlan:
    """Of a run with global batches of `batch` samples."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._models: dict[str, StepModel] = {}
        self._shares = Shares(0, {})

    def begin(self, members: Sequence[str], step: int, measures: Mapping[str, float]) -> None:
        """A generation begins with `step`. Who made no step yet is judged by its measure, in any unit.

        The scale is that of members that have both a measure and steps; without a measure, one is like the middle of
        the others.
        """
        known = {member: model for member, model in self._models.items() if member in members and model.readings}
        speeds = {member: _samples_per_second(model) for member, model in known.items()}
        judged = {member: value for member, value in measures.items() if member in members}
        self._models = {**first_models(members, speeds, judged), **known}
        self._shares = best_shares(step, self._batch, self._models, dict.fromkeys(members, self._batch))

    def of(self, samples: int) -> dict[str, int]:
        """The shares of a batch of so many samples."""
        shares = dict(self._shares.samples)
        return shares if samples == self._batch else shrink(shares, samples)

    def share_of(self, member: str) -> Share:
        """What a member computes of each batch now."""
        now, model = self._shares, self._models[member]
        line = model.line if model.readings else UNKNOWN
        return Share(
            samples=now.samples.get(member, 0),
            batch=self._batch,
            since=now.first_step,
            is_guess=now.is_guess,
            gain=now.gain,
            fixed_seconds=line.fixed_seconds,
            sample_seconds=line.sample_seconds,
        )

    def see(self, step: int, samples: Mapping[str, int], seconds: Mapping[str, float]) -> None:
        """Learn from a step that all have ended."""
        for member, share in samples.items():
            if not share or seconds[member] > 0:
                self._models[member] = self._models[member].see(share, seconds[member])
        self._shares = reconsider(self._shares, step + 1, self._models, dict.fromkeys(self._models, self._batch))

    def to_json(self) -> dict[str, Any]:
        """All of it, exactly."""
        return {
            "models": {member: asdict(model) for member, model in self._models.items()},
            "shares": asdict(self._shares),
        }

    def load(self, body: Mapping[str, Any]) -> None:
        """Continue from what another member has."""
        self._models = {member: _model(one) for member, one in body["models"].items()}
        self._shares = Shares(**body["shares"])


def _samples_per_second(model: StepModel) -> float:
    """At the size of its last step."""
    samples = model.readings[-1].samples
    return samples / model.seconds(samples)


def _model(body: Mapping[str, Any]) -> StepModel:
    return StepModel(
        line=Line(**body["line"]),
        noise=body["noise"],
        readings=tuple(Reading(*one) for one in body["readings"]),
        off=Reading(*body["off"]) if body["off"] else None,
        off_side=body["off_side"],
    )
