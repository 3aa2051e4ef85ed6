"""The filters and orders of MLflow's searches, as much of them as is answered here.

A filter is comparisons with AND between them: `metrics.loss < 0.1 AND params.net LIKE 'res%'`. A name with blanks or
other signs stands in backticks or double quotes: tags.`a name`. Whatever else is asked for is refused in words.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from infosvc.tracking.like import matches
from infosvc.wire.errors import InvalidInput

LONGEST = 4_000  # characters of a filter
MOST_COMPARISONS = 50
MOST_KEYS = 10  # of an order
LONGEST_PATTERN = 100

T = TypeVar("T")
Found = str | float | None
View = Callable[["Key"], Found]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>'[^']*'|"[^"]*") | (?P<quoted>`[^`]*`)
      | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
      | (?P<sign>!=|>=|<=|=|>|<) | (?P<word>[\w./:-]+)
    )""",
    re.VERBOSE,
)
_KINDS = {
    kind: names[0]
    for names in (("metric", "metrics"), ("param", "params", "parameter", "parameters"), ("tag", "tags"))
    for kind in names
} | dict.fromkeys(("attribute", "attributes", "attr", "run"), "attribute")
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_REMEDY = "write comparisons with AND between them, such as metrics.loss < 0.1 AND params.net LIKE 'res%'"


class Key(NamedTuple):
    """What is compared: a metric, a param, a tag or an attribute of a name."""

    kind: str
    name: str


class Comparison(NamedTuple):
    """One comparison with a text or a number; what has no such key is left out, whatever the sign."""

    key: Key
    sign: str
    value: str | float

    def holds(self, view: View) -> bool:
        """Whether it holds for what `view` finds under keys."""
        found = view(self.key)
        if found is None:
            return False
        if self.sign in ("=", "!="):
            return (found == self.value) is (self.sign == "=")
        if isinstance(found, str) or isinstance(self.value, str):
            return self._is_like(str(found), str(self.value))
        return _ORDERS[self.sign](found, self.value)

    def _is_like(self, text: str, pattern: str) -> bool:
        return matches(text.lower(), pattern.lower()) if self.sign == "ILIKE" else matches(text, pattern)


class Attributes(NamedTuple):
    """The names of attributes that hold text, and of those that hold numbers."""

    texts: frozenset[str]
    numbers: frozenset[str]


class Order(NamedTuple):
    """One key to sort by; what has no such key, or NaN, comes last."""

    key: Key
    down: bool


class _Tokens:
    """The tokens of one text, taken from its beginning."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise InvalidInput(f"the filter has {len(text)} characters, and may have {LONGEST}", "filter")
        self._text = text.rstrip()
        self._place = 0

    def __bool__(self) -> bool:
        return self._place < len(self._text)

    def take(self) -> tuple[str, str]:
        """The next one: of which sort it is, and itself without its quotes."""
        found = _TOKEN.match(self._text, self._place)
        if found is None or found.lastgroup is None:
            raise self.refuse()
        self._place = found.end()
        token = found[found.lastgroup]
        return found.lastgroup, token[1:-1] if found.lastgroup in ("text", "quoted") else token

    def skip(self, word: str) -> bool:
        """Take the next one; whether it is this word, in letters of any size."""
        sort, token = self.take()
        return sort == "word" and token.upper() == word

    def refuse(self, what: str = "cannot be read here") -> InvalidInput:
        """The error that tells where it is wrong, and nothing of the text: refusals are noted, values secret."""
        where = f"at character {self._place + 1}" if self else "at its end"
        return InvalidInput(f"the filter {what}, {where}", "filter", remedy=_REMEDY)


def parse(text: str, attributes: Attributes) -> list[Comparison]:
    """The comparisons of a filter, all of which must hold; InvalidInput says what cannot be read."""
    tokens = _Tokens(text)
    found: list[Comparison] = []
    while tokens:
        if found and not tokens.skip("AND"):
            raise tokens.refuse("has something other than AND between comparisons")
        found.append(_comparison(tokens, attributes))
        if len(found) > MOST_COMPARISONS:
            raise InvalidInput(
                f"the filter has more than {MOST_COMPARISONS} comparisons", "filter", remedy="ask for less"
            )
    return found


def parse_order(texts: Sequence[str], attributes: Attributes) -> list[Order]:
    """The keys to sort by, the first first; InvalidInput says what cannot be read."""
    if len(texts) > MOST_KEYS:
        raise InvalidInput(f"order_by has {len(texts)} keys, and may have {MOST_KEYS}", "order_by")
    return [_order(_Tokens(text), attributes) for text in texts]


def sort(rows: Sequence[T], orders: Sequence[Order], view_of: Callable[[T], View]) -> list[T]:
    """Rows in an order; those that are the same to it stay as they stand."""
    left = list(rows)
    for order in reversed(orders):
        keyed: list[tuple[Any, T]] = [(view_of(row)(order.key), row) for row in left]
        have = [one for one in keyed if one[0] is not None and one[0] == one[0]]  # NaN is not itself
        lack = [one for one in keyed if one[0] is None or one[0] != one[0]]
        left = [row for _, row in [*sorted(have, key=lambda one: one[0], reverse=order.down), *lack]]
    return left


def _order(tokens: _Tokens, attributes: Attributes) -> Order:
    key = _key(tokens, attributes)
    way = tokens.take()[1].upper() if tokens else "ASC"
    if way not in ("ASC", "DESC") or tokens:
        raise tokens.refuse("has something other than ASC or DESC after what it sorts by")
    return Order(key, way == "DESC")


def _key(tokens: _Tokens, attributes: Attributes) -> Key:
    """`metrics.loss`, `tags.`a name``, or an attribute alone."""
    sort, text = tokens.take()
    kind, dot, name = text.partition(".")
    if sort != "word" or (dot and kind not in _KINDS):
        raise tokens.refuse("lacks a name such as metrics.loss")
    if not dot:
        kind, name = "attribute", kind
    elif not name:
        sort, name = tokens.take()
        if sort not in ("text", "quoted"):
            raise tokens.refuse("has no name after the point")
    key = Key(_KINDS[kind], name)
    if key.kind == "attribute" and name not in attributes.texts | attributes.numbers:
        known = ", ".join(sorted(attributes.texts | attributes.numbers))
        raise InvalidInput("the filter names an attribute that there is not", "filter", remedy=f"there are {known}")
    return key


def _comparison(tokens: _Tokens, attributes: Attributes) -> Comparison:
    key = _key(tokens, attributes)
    sign = tokens.take()[1].upper()
    is_number = key.kind == "metric" or (key.kind == "attribute" and key.name in attributes.numbers)
    allowed = ("=", "!=", *_ORDERS) if is_number else ("=", "!=", "LIKE", "ILIKE")
    if sign not in allowed:
        raise tokens.refuse(f"compares a {key.kind} otherwise than by {' '.join(allowed)}")
    sort, text = tokens.take()
    if sort != ("number" if is_number else "text"):
        wanted = "a number" if is_number else "a text in quotes"
        raise tokens.refuse(f"compares a {key.kind} with something other than {wanted}")
    if not is_number and "LIKE" in sign and len(text) > LONGEST_PATTERN:
        raise InvalidInput(f"a pattern of LIKE has {len(text)} characters, and may have {LONGEST_PATTERN}", "filter")
    return Comparison(key, sign, float(text) if is_number else text)
