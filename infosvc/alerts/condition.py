"""What an alert is about, read from a text: a comparison of data names and numbers, or one of three happenings.

disk_free_bytes / disk_total_bytes < 0.05
memory_available_bytes < 1e9 and memory_pressure_full_ratio > 0.2
node lost
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from infosvc.wire.errors import InvalidInput

View = Callable[[str], float | None]
"""The number under a data name on a node; None when it is not known now."""

MOST_COMPARISONS = 10
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)(?![\w.])|(?P<name>[A-Za-z_][A-Za-z0-9_.:-]*)"
    r"|(?P<sign><=|>=|==|!=|<|>)|(?P<times>[*/]))",
    re.ASCII,
)
_REMEDY = (
    "write a comparison such as 'disk_free_bytes / disk_total_bytes < 0.05', several with 'and' between them, or "
    "'node lost', 'queue stuck' or 'job failed'"
)


class Happening(StrEnum):
    """What an alert can be about that no data name tells."""

    NODE_LOST = "node lost"
    QUEUE_STUCK = "queue stuck"
    JOB_FAILED = "job failed"


class Quantity(NamedTuple):
    """Numbers and data names that are multiplied with or divided by each other, from left to right."""

    first: float | str
    rest: tuple[tuple[str, float | str], ...] = ()

    def value(self, view: View) -> float | None:
        """The number that comes out; None when one is not known, or when it is divided by 0."""
        found = _number(self.first, view)
        for sign, factor in self.rest:
            other = _number(factor, view)
            if found is None or other is None or (sign == "/" and other == 0):
                return None
            found = found * other if sign == "*" else found / other
        return found if found is not None and math.isfinite(found) else None

    @property
    def names(self) -> set[str]:
        """The data names in it."""
        return {part for part in (self.first, *(factor for _, factor in self.rest)) if isinstance(part, str)}


class Comparison(NamedTuple):
    """Two quantities with a sign between them."""

    left: Quantity
    sign: str
    right: Quantity

    def holds(self, view: View) -> bool | None:
        """Whether it holds; None when that is not known."""
        left, right = self.left.value(view), self.right.value(view)
        return None if left is None or right is None else _SIGNS[self.sign](left, right)


class Comparisons(NamedTuple):
    """Comparisons that must all hold, on one node."""

    all: tuple[Comparison, ...]

    def holds(self, view: View) -> bool | None:
        """Whether all hold; None when that is not known."""
        found = [one.holds(view) for one in self.all]
        return False if False in found else None if None in found else True

    @property
    def names(self) -> list[str]:
        """The data names that they compare."""
        return sorted(set[str]().union(*(one.left.names | one.right.names for one in self.all)))


Condition = Happening | Comparisons


def parse(text: str) -> Condition:
    """Read a condition; InvalidInput says where it goes wrong."""
    words = " ".join(text.split())
    if words in list(Happening):
        return Happening(words)
    tokens = _Tokens(text)
    found = [_comparison(tokens)]
    while tokens.left:
        tokens.take_and()
        found.append(_comparison(tokens))
    if len(found) > MOST_COMPARISONS:
        raise tokens.refuse(f"it has {len(found)} comparisons, and may have {MOST_COMPARISONS}")
    made = Comparisons(tuple(found))
    if not made.names:
        raise tokens.refuse("it names no data name")
    return made


class _Tokens:
    """The tokens of one text, taken from its beginning."""

    def __init__(self, text: str) -> None:
        self._text = text.rstrip()
        self._place = 0

    @property
    def left(self) -> bool:
        """Whether there are more."""
        return self._place < len(self._text)

    @property
    def kind(self) -> str:
        """Which sort the next one is of; empty at the end."""
        match = _TOKEN.match(self._text, self._place)
        return (match.lastgroup or "") if match else ""

    def take(self, *kinds: str) -> str:
        """The next one, which must be of one of these sorts."""
        match = _TOKEN.match(self._text, self._place)
        if match is None or match.lastgroup not in kinds:
            wanted = {"number": "a number", "name": "a data name", "sign": "one of < <= > >= == !="}
            raise self.refuse(f"{' or '.join(wanted[kind] for kind in kinds)} must stand here")
        self._place = match.end()
        return match[match.lastgroup]

    def take_and(self) -> None:
        """The word that stands between two comparisons."""
        match = _TOKEN.match(self._text, self._place)
        if match is None or match["name"] != "and":
            raise self.refuse("'and' must stand between two comparisons")
        self._place = match.end()

    def refuse(self, why: str) -> InvalidInput:
        """What is wrong, and where."""
        here = self._text[self._place :].strip()[:40]
        where = f"before {here!r}" if here else "at its end"
        return InvalidInput(f"the condition {self._text[:80]!r} is wrong {where}: {why}", "condition", remedy=_REMEDY)


def _comparison(tokens: _Tokens) -> Comparison:
    return Comparison(_quantity(tokens), tokens.take("sign"), _quantity(tokens))


def _quantity(tokens: _Tokens) -> Quantity:
    first, rest = _factor(tokens), list[tuple[str, float | str]]()
    while tokens.kind == "times":
        rest.append((tokens.take("times"), _factor(tokens)))
    return Quantity(first, tuple(rest))


def _factor(tokens: _Tokens) -> float | str:
    kind = tokens.kind
    part = tokens.take("number", "name")
    if kind == "number":
        return float(part)
    if part == "and":
        raise tokens.refuse("a data name or a number must stand before 'and'")
    return part


def _number(part: float | str, view: View) -> float | None:
    return view(part) if isinstance(part, str) else part


def describe_values(names: Sequence[str], view: View) -> str:
    """What was found under some names, as people read it."""
    known = ((name, view(name)) for name in names)
    return ", ".join(f"{name} {'is not known' if number is None else f'{number:.4g}'}" for name, number in known)
