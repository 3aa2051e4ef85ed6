"""How YARN's plug-in scores nodes: its settings file, read as the plug-in reads it, and the same arithmetic.

A node's score is sum(weight * part) / sum(weight). A part is how far the value lies in its range, cut off at the ends,
and counted from the other end where lower is better. A product is the same mean of logarithms.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.fields import PROGRAM_NAME
from infosvc.wire.records import NAME, Datum, State

POLICIES = ("first", "second")
WORDS = ("score", "combine", "filter", "near", "herd", "room.memory-mb", "room.vcores")
KEYS = frozenset(
    [f"service.{key}" for key in ("url", "token-file", "poll-interval-ms", "timeout-ms")]
    + [f"{name}.{key}" for name in (*POLICIES, "program") for key in WORDS]
)

_OF_PROGRAM = re.compile(rf"program\.(.+)\.({'|'.join(map(re.escape, WORDS))})")

_NAME = f"({NAME.pattern.strip('^$')})"
_TERM = re.compile(
    rf"{_NAME}\s+(higher|lower)\s+(\S+?)\.\.(\S+)(?:\s+weight\s+(\S+))?(?:\s+missing\s+(exclude-last|neutral|last-known))?"
)
_LINE = re.compile(r"([^=:\s]*)\s*[=:]?\s*(.*?)\s*")
_CONDITION = re.compile(rf"{_NAME}\s*(>=|<=|>|<)\s*(\S+)")
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}

Values = Mapping[str, Mapping[str, Datum]]
"""By data name and node."""


@dataclass(frozen=True)
class Term:
    """One value's part of the score; `missing` is what becomes of a node that has none, or none that is fresh."""

    data_name: str
    higher: bool
    low: float
    high: float
    weight: float
    missing: str

    def part(self, value: float) -> float:
        """Between 0 and 1."""
        part = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return part if self.higher else 1 - part


@dataclass(frozen=True)
class Condition:
    """Nodes for which this does not hold go last; it does not hold where there is no fresh value."""

    data_name: str
    comparison: str
    bound: float

    def __str__(self) -> str:
        return f"{self.data_name} {self.comparison} {self.bound:g}"

    def holds(self, datum: Datum | None) -> bool:
        """Of a node's value."""
        value = _fresh(datum)
        return value is not None and _COMPARISONS[self.comparison](value, self.bound)


@dataclass(frozen=True)
class Scored:
    """A node's score, its parts in the order of the terms, and which conditions hold; `last` is behind all others."""

    node_name: str
    score: float
    last: bool
    parts: tuple[float, ...]
    holds: tuple[bool, ...]


@dataclass(frozen=True)
class ScoringPolicy:
    """How one policy of the plug-in scores nodes."""

    name: str
    terms: tuple[Term, ...]
    conditions: tuple[Condition, ...]
    combine: str = "mean"

    @property
    def data_names(self) -> list[str]:
        """All that it needs."""
        return list(dict.fromkeys([term.data_name for term in self.terms] + [one.data_name for one in self.conditions]))

    def order(self, nodes: Sequence[str], values: Values) -> list[Scored]:
        """From best to worst, before what was placed since the values were measured."""
        neutral = [_neutral(term, nodes, values.get(term.data_name, {})) for term in self.terms]
        scored = [self._score(node, values, neutral) for node in nodes]
        return sorted(scored, key=lambda one: (one.last, -one.score, one.node_name))

    def _score(self, node: str, values: Values, neutral: Sequence[float]) -> Scored:
        parts, last = [], False
        for term, otherwise in zip(self.terms, neutral, strict=True):
            datum = values.get(term.data_name, {}).get(node)
            value = _number(datum) if term.missing == "last-known" else _fresh(datum)
            parts.append(otherwise if value is None else term.part(value))
            last = last or (value is None and term.missing == "exclude-last")
        holds = tuple(one.holds(values.get(one.data_name, {}).get(node)) for one in self.conditions)
        weights = [term.weight for term in self.terms]
        return Scored(node, COMBINATIONS[self.combine](weights, parts), last or not all(holds), tuple(parts), holds)


def _mean(weights: Sequence[float], parts: Sequence[float]) -> float:
    return math.fsum(map(operator.mul, weights, parts)) / math.fsum(weights)


def _product(weights: Sequence[float], parts: Sequence[float]) -> float:
    return math.exp(_mean(weights, [math.log(part) for part in parts])) if all(parts) else 0.0


COMBINATIONS: Mapping[str, Callable[[Sequence[float], Sequence[float]], float]] = {"mean": _mean, "product": _product}


def parse(text: str) -> list[ScoringPolicy]:
    """The policies that a settings file describes; InvalidInput names the key that is wrong.

    What has no part in the scores is not looked into, beyond its key.
    """
    keys = _keys(text)
    policies = [_policy(name, keys) for name in POLICIES if any(key.startswith(f"{name}.") for key in keys)]
    return policies or [_policy(POLICIES[0], keys)]


def parse_program(text: str, name: str) -> ScoringPolicy:
    """How the settings file has nodes judged for a program; NotFound when it says nothing of it."""
    keys = _keys(text)
    own = {word: keys[f"program.{name}.{word}"] for word in WORDS if f"program.{name}.{word}" in keys}
    if not PROGRAM_NAME.fullmatch(name) or not (own or "program.score" in keys):
        raise NotFound(f"the settings file has no order for the program {name!r}", remedy="write program.score into it")
    said = {word: keys[f"program.{word}"] for word in WORDS if f"program.{word}" in keys} | own
    filled = {f"program.{name}.{word}": one.replace("{program}", name) for word, one in said.items()}
    return _policy(f"program.{name}", filled)


def _keys(text: str) -> dict[str, str]:
    keys = dict(_lines(text))
    for key in sorted(keys.keys() - KEYS):
        program = _OF_PROGRAM.fullmatch(key)
        if not program:
            raise InvalidInput(f"{key!r} is not known: is it misspelled?", key)
        if not PROGRAM_NAME.fullmatch(program[1]):
            raise InvalidInput(
                f"{key} names no program", key, remedy="a name has at most 64 small letters, digits, dots, _ and -"
            )
    return keys


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Key and value as java.util.Properties finds them, less its escapes, which nothing here needs."""
    held = ""
    for line in map(str.lstrip, (text + "\n").split("\n")):
        if not held and line[:1] in ("", "#", "!"):
            continue
        held += line
        if held.endswith("\\"):  # goes on in the next line
            held = held[:-1]
        elif match := _LINE.fullmatch(held):
            held = ""
            yield match[1], match[2]


def _policy(name: str, keys: Mapping[str, str]) -> ScoringPolicy:
    score, conditions = f"{name}.score", f"{name}.filter"
    if not keys.get(score):
        raise InvalidInput(f"{score} is missing", score)
    return ScoringPolicy(
        name,
        tuple(_term(score, match) for match in _each(score, keys[score], _TERM)),
        tuple(
            Condition(match[1], match[2], _parse_number(conditions, match[3]))
            for match in _each(conditions, keys.get(conditions, ""), _CONDITION)
        ),
        _combination(f"{name}.combine", keys),
    )


def _combination(key: str, keys: Mapping[str, str]) -> str:
    found = keys.get(key, "mean")
    if found not in COMBINATIONS:
        raise InvalidInput(f"{key} is {found}, and must be {' or '.join(COMBINATIONS)}", key)
    return found


def _term(key: str, match: re.Match[str]) -> Term:
    low, high = _parse_number(key, match[3]), _parse_number(key, match[4])
    weight = _parse_number(key, match[5] or "1")
    if low >= high or weight <= 0:
        raise InvalidInput(
            f"{key} says {match[0]}", key, remedy="a range begins with the lower number, a weight is above 0"
        )
    return Term(match[1], match[2] == "higher", low, high, weight, match[6] or "exclude-last")


def _each(key: str, text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    for one in map(str.strip, text.removesuffix(";").split(";") if text else ()):
        match = pattern.fullmatch(one)
        if not match:
            raise InvalidInput(f"{key} says {one!r}, which the plug-in does not understand either", key)
        yield match


def _parse_number(key: str, text: str) -> float:
    if not re.fullmatch(r"[-+]?([0-9]{1,99}\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,2})?", text):
        raise InvalidInput(f"{key} says {text} where a number belongs", key)
    return float(text)


def _neutral(term: Term, nodes: Sequence[str], values: Mapping[str, Datum]) -> float:
    """What the others have on average; the middle when nobody has a value."""
    numbers = [value for node in nodes if (value := _fresh(values.get(node))) is not None]
    return fmean(map(term.part, numbers)) if numbers else 0.5


def _fresh(datum: Datum | None) -> float | None:
    return _number(datum) if datum and datum.state == State.FRESH else None


def _number(datum: Datum | None) -> float | None:
    if datum is None or datum.data_value is None:
        return None
    try:
        return datum.number()
    except InvalidInput:
        return None
