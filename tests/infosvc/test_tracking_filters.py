"""The filters of MLflow's searches: what they find, and that whatever else is asked for is refused in words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infosvc.tracking import filters
from infosvc.tracking.filters import Attributes, Comparison, Found, Key, Order
from infosvc.tracking.like import matches
from infosvc.wire.errors import InvalidInput

KNOWN = Attributes(frozenset({"status", "run_name"}), frozenset({"start_time"}))
VALUES: dict[Key, Found] = {
    Key("metric", "loss"): 0.5,
    Key("metric", "lost"): float("nan"),
    Key("param", "net"): "resnet-50",
    Key("tag", "a name"): "it is",
    Key("tag", "mlflow.user"): "maria",
    Key("attribute", "status"): "FINISHED",
    Key("attribute", "start_time"): 1000.0,
}


def holds(text: str) -> bool:
    """Whether all of a filter holds for these values."""
    return all(comparison.holds(VALUES.get) for comparison in filters.parse(text, KNOWN))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "metrics.loss < 1",
        "metric.loss<=.5 and metrics.loss >= 5e-1",
        "metrics.loss = 0.5 AND metrics.loss != 0.25 AND metrics.loss > -1",
        "params.net = 'resnet-50'",
        'parameters.net = "resnet-50"',
        "params.net LIKE 'res%' AND params.net like '%50' AND params.net ILIKE 'RES_ET%'",
        "tags.`a name` = 'it is' AND tags.\"a name\" != 'AND'",
        "tags.mlflow.user = 'maria'",
        "status = 'FINISHED' AND attributes.start_time >= 1000 AND attribute.status != 'FAILED'",
        "metrics.lost != 1",
    ],
)
def test_what_a_filter_finds(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "metrics.loss < 0.5",
        "metrics.unknown < 1",
        "metrics.unknown != 1",
        "metrics.lost < 1",
        "params.net LIKE 'RES%'",
        "params.net = 'resnet'",
        "params.net LIKE 'resnet'",
        "status = 'FINISHED' AND tags.unknown = 'x'",
    ],
)
def test_what_a_filter_leaves_out(text: str) -> None:
    assert not holds(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("metrics.loss < 1 OR metrics.loss > 2", "something other than AND"),
        ("metrics.loss < 'x'", "something other than a number"),
        ("params.net = 5", "something other than a text in quotes"),
        ("params.net < 'x'", "otherwise than by = != LIKE ILIKE"),
        ("metrics.loss LIKE 'x'", "otherwise than by = != < <= > >="),
        ("params.net IN ('a')", "otherwise than by"),
        ("color = 'red'", "there are run_name, start_time, status"),
        ("colors.red = 'x'", "lacks a name such as metrics.loss, at character 11"),
        ("metrics.loss < 1 'AND' metrics.loss < 1", "something other than AND"),
        ("metrics.loss", "at its end"),
        ("params. = 'x'", "no name after the point"),
        ("params.net = 'x", "cannot be read"),
        ("(metrics.loss < 1)", "cannot be read"),
        ("x" * 4_001, "4001 characters"),
        (" AND ".join(["metrics.loss < 1"] * 51), "more than 50 comparisons"),
        ("params.net LIKE '" + "%" * 101 + "'", "101 characters"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)):
        filters.parse(text, KNOWN)


@pytest.mark.parametrize(
    "text", ["params.key = 'secret' OR 1", "params.key IN ('secret')", "params.key = secret", "params.key < 'secret'"]
)
def test_a_refusal_tells_no_value_because_refusals_are_noted(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        filters.parse(text, KNOWN)
    assert "secret" not in str(refused.value)


WORDS = [
    "metrics.loss",
    "params.`a b`",
    "status",
    "AND",
    "OR",
    "LIKE",
    "<",
    "=",
    "!=",
    "'x'",
    '"',
    "`",
    "5",
    "1e999",
    "(",
    ".",
]


@given(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join) | st.text(max_size=50))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (lambda: filters.parse(text, KNOWN), lambda: filters.parse_order([text], KNOWN)):
        try:
            parse()
        except InvalidInput as refused:
            assert "filter" in str(refused)


def test_a_filter_that_was_read_says_what_it_said() -> None:
    assert filters.parse("params.net LIKE 'a%' AND metrics.`a b` >= -1.5e3", KNOWN) == [
        Comparison(Key("param", "net"), "LIKE", "a%"),
        Comparison(Key("metric", "a b"), ">=", -1500.0),
    ]
    assert filters.parse_order(["metrics.`a b` DESC", "status"], KNOWN) == [
        Order(Key("metric", "a b"), True),
        Order(Key("attribute", "status"), False),
    ]
    with pytest.raises(InvalidInput, match="ASC or DESC"):
        filters.parse_order(["status UP"], KNOWN)
    with pytest.raises(InvalidInput, match="11 keys"):
        filters.parse_order(["status"] * 11, KNOWN)


def test_what_has_no_such_key_and_what_is_no_number_comes_last() -> None:
    numbers = {"a": 1.0, "b": float("nan"), "c": None, "d": 3.0, "e": 2.0}
    for down, expected in ((False, ["a", "e", "d", "b", "c"]), (True, ["d", "e", "a", "b", "c"])):
        order = [Order(Key("metric", "loss"), down)]
        assert filters.sort(list(numbers), order, lambda name: lambda _key: numbers[name]) == expected


@given(st.text("ab_%\n", max_size=12), st.text("ab_%\n", max_size=6))
def test_like_means_what_it_means_in_sql(text: str, pattern: str) -> None:
    signs = {"%": ".*", "_": "."}
    expression = "".join(signs.get(one, re.escape(one)) for one in pattern)
    assert matches(text, pattern) == (re.fullmatch(expression, text, re.DOTALL) is not None)
