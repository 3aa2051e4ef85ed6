"""How fast nodes run programs, learned from what has run: also a program on a node where it never ran.

In logarithms a speed is what the node is good for plus what the program does per second on a usual node:

    ln V(n, p) = s_n + u_p + e

This is a table of two ways without interaction (Fisher 1925; of rank one, before the logarithm), fitted by least
squares over the pairs that have run, in turns over nodes and programs. A small penalty on s_n pulls a node of which
little is known to the usual node. A pair that has run keeps its own speed; the fit speaks for the others.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

Pair = tuple[str, str]
"""A node and a program."""

NEWEST = 0.3
"""What the newest run of a pair counts against those before, in logarithms."""
PENALTY = 0.2
"""How many runs of a usual node every node begins with."""
ROUNDS = 100
CLOSE = 1e-9
LEAST, MOST = 1e-12, 1e12
"""Speeds beyond these are mistakes."""
MOST_HELD_OUT = 200
"""Pairs that are left out in turn to see how far the fit is off."""


@dataclass(frozen=True)
class LearnedSpeeds:
    """What has run, and what the fit makes of it; speeds in whatever unit each program counts by."""

    seen: Mapping[Pair, float]
    nodes: Mapping[str, float] = field(default_factory=dict)
    programs: Mapping[str, float] = field(default_factory=dict)

    def speed(self, node: str, program: str) -> float | None:
        """Of a program on a node; None if the program never ran anywhere."""
        if program not in self.programs:
            return None
        return self.seen.get((node, program)) or self.fitted(node, program)

    def fitted(self, node: str, program: str) -> float:
        """By the fit alone; a node on which nothing ran is a usual one."""
        return math.exp(self.nodes.get(node, 0.0) + self.programs[program])

    def shares(self, program: str, nodes: Iterable[str]) -> dict[str, float]:
        """The speed on each node as a share of that on the fastest of them, 0 to 1; empty if it never ran."""
        found = {node: speed for node in nodes if (speed := self.speed(node, program)) is not None}
        best = max(found.values(), default=1.0)
        return {node: speed / best for node, speed in found.items()}


def learn(seen: Mapping[Pair, float]) -> LearnedSpeeds:
    """Fit speeds from LEAST to MOST; others are left out."""
    known = {pair: speed for pair, speed in seen.items() if LEAST <= speed <= MOST}
    logs = {pair: math.log(speed) for pair, speed in known.items()}
    nodes: dict[str, float] = dict.fromkeys((node for node, _ in logs), 0.0)
    programs: dict[str, float] = dict.fromkeys((program for _, program in logs), 0.0)
    for _ in range(ROUNDS):
        programs = _means({(program, node): log - nodes[node] for (node, program), log in logs.items()}, 0.0)
        before = nodes
        nodes = _means({(node, program): log - programs[program] for (node, program), log in logs.items()}, PENALTY)
        if all(abs(nodes[node] - before[node]) < CLOSE for node in nodes):
            break
    return LearnedSpeeds(known, nodes, programs)


def held_out_error(seen: Mapping[Pair, float]) -> float | None:
    """How far the fit is off for a pair that it was not told of: the median ratio minus 1, so 0.1 for a tenth.

    Each of at most MOST_HELD_OUT pairs is left out in turn whose node and program have run otherwise; None without any.
    """
    whole = learn(seen).seen
    of_node, of_program = Counter(node for node, _ in whole), Counter(program for _, program in whole)
    able = [pair for pair in sorted(whole) if of_node[pair[0]] > 1 and of_program[pair[1]] > 1]
    step = max(1, -(-len(able) // MOST_HELD_OUT))
    errors = []
    for pair in able[::step]:
        others = learn({other: speed for other, speed in whole.items() if other != pair})
        errors.append(abs(math.log(others.fitted(*pair) / whole[pair])))
    return math.expm1(median(errors)) if errors else None


def with_newest(known: float | None, speed: float) -> float:
    """The moving average of a pair with one more run, in logarithms."""
    if known is None or not LEAST <= known <= MOST:
        return speed
    return math.exp((1 - NEWEST) * math.log(known) + NEWEST * math.log(speed))


def _means(parts: Mapping[Pair, float], penalty: float) -> dict[str, float]:
    """By the first of each pair: the mean over the second, as if there were `penalty` further ones of 0."""
    sums: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for (one, _), part in parts.items():
        sums[one] += part
        counts[one] += 1
    return {one: total / (counts[one] + penalty) for one, total in sums.items()}
