"""Capability by configuration: perf_even.py WEIGHT [NODE=WEIGHT ...]

    C_i = the weight given for node i, else the first argument

Weights are positive numbers without unit; only their ratios matter. Identical machines all get the same. Beside it:
.confidence, which is 1: that is what was configured.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from collectors.run import answer, node_name


def capability(node: str, arguments: Sequence[str]) -> float:
    """The weight of a node; ValueError names the argument that is not a weight."""
    if not arguments:
        raise ValueError("give a weight for all nodes, for example: perf_even.py 1 worker3=0.5")
    weights = {"": weight(arguments[0])}
    for argument in arguments[1:]:
        name, separator, text = argument.rpartition("=")
        if not (separator and name):
            raise ValueError(f"{argument!r} is not NODE=WEIGHT")
        weights[name] = weight(text)
    return weights.get(node, weights[""])


def weight(text: str) -> float:
    """A positive finite number; ValueError otherwise."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{text!r} is not a weight: give a positive number")
    return number


if __name__ == "__main__":
    try:
        print(answer(f"{capability(node_name(), sys.argv[1:]):g}", confidence=1.0))
    except ValueError as error:
        sys.exit(f"perf_even: {error}")
