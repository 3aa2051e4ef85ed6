"""What is thought of nodes before their first step: by the speeds that they had, else by any value that all have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from locality.capability import guess, middle
from locality.training.step_model import StepModel


def first_models(
    nodes: Iterable[str], speeds: Mapping[str, float], measures: Mapping[str, float]
) -> dict[str, StepModel]:
    """A model for each node. `speeds`, in samples per second, are of the program; `measures` are in any unit.

    A node without a speed is judged by its measure on the scale of the nodes that have both, one without either by
    the middle of the others. Without any speed the measures are taken as speeds: shares depend on their ratios alone,
    and each member's first step gives the scale. ValueError if a speed is not above 0, or a measure is below 0.

    >>> models = first_models("abc", {"a": 50.0}, {"a": 2, "b": 1})
    >>> {node: 1 / model.line.sample_seconds for node, model in models.items()}
    {'a': 50.0, 'b': 25.0, 'c': 50.0}
    """
    names = list(nodes)
    speeds = dict(speeds) or {node: measure for node, measure in measures.items() if measure > 0}
    return {node: StepModel.guess(_speed(node, speeds, measures)) for node in names}


def _speed(node: str, speeds: Mapping[str, float], measures: Mapping[str, float]) -> float:
    if node in speeds:
        return speeds[node]
    estimate = guess(node, speeds, measures)
    if estimate is not None and estimate.value > 0:
        return estimate.value
    return middle(speeds.values()).value if speeds else 1.0
