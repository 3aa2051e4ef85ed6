"""Capability by configuration: perf_even.py WEIGHT [NODE=WEIGHT ...]

    C_i = the weight given for node i, else the first argument

Weights are positive numbers without unit; only their ratios matter. Identical machines all get the same.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence


def capability(node_name: str, arguments: Sequence[str]) -> float:
    """The weight of a node; ValueError names the argument that is none."""
    if not arguments:
        raise ValueError("give a weight for all nodes, for example: perf_even.py 1 worker3=0.5")
    weights = {"": weight(arguments[0])}
    for argument in arguments[1:]:
        node, separator, text = argument.rpartition("=")
        if not (separator and node):
            raise ValueError(f"{argument!r} is not NODE=WEIGHT")
        weights[node] = weight(text)
    return weights.get(node_name, weights[""])


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
        print(f"{capability(os.environ['NODE_NAME'], sys.argv[1:]):g}")
    except ValueError as error:
        sys.exit(f"perf_even: {error}")
