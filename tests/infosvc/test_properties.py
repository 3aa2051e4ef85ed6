"""Rules that hold for every input, found by search."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infosvc.registration import producers
from infosvc.state.configuration import Configuration, SlotRequest
from infosvc.state.current_values import CurrentValues
from infosvc.state.transaction import Transaction
from infosvc.wire.errors import Conflict
from infosvc.wire.records import Kind, Outcome, Producer, Report, Run, State

if TYPE_CHECKING:
    from tests.infosvc.conftest import MariaDB, Served, Serving

SHARED = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


# Any text that UTF-8 can hold, as far as values go.
def _may_be_kept(text: str) -> bool:
    """Numbers that are none are refused."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return True


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200).filter(_may_be_kept)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", fullmatch=True)
NODES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}", fullmatch=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted(set(Producer("a", "a", 1).to_json()) - {"data_name", "version"})


@pytest.fixture(scope="module", params=["sqlite", "mariadb"])
def lasting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a database that all examples of a test share."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('service') / 'infosvc.db'}"
    server: MariaDB = request.getfixturevalue("mariadb")
    return server.new_database()


@pytest.fixture
def service(lasting: str, serve: Serving) -> Iterator[Served]:
    """A service that all examples of a test share."""
    with serve(lasting) as served:
        yield served


@SHARED
@given(name=NAMES, node=NODES, value=TEXT)
def test_every_name_and_value_comes_back_as_it_was_written(service: Served, name: str, node: str, value: str) -> None:
    service.client.put_producer(Producer(name, "x", 1, unit="é"))
    service.client.put_value(name, node, value)
    assert [datum.data_value for datum in service.reader.data(name, node=node)] == [value]
    service.client.delete_producer(name)


@SHARED
@given(body=st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON)
def test_no_body_makes_the_service_fail(service: Served, body: object) -> None:
    answer = service.ask("PUT", "/api/v1/producers/a", body)
    assert answer.status in (200, 201, 400, 422)
    if answer.status < 300:
        assert service.reader.producer("a").to_json() == answer.json
    else:
        assert answer.error["message"]


@SHARED
@given(path=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_no_path_makes_the_service_fail(service: Served, path: str) -> None:
    answer = service.ask("GET", "/api/v1/data/" + quote(path, safe="/"))
    assert answer.status in (200, 404, 405, 308)


RUNS = st.tuples(st.sampled_from(Outcome), st.integers(0, 99).map(str), st.integers(0, 5))


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.tuples(st.integers(0, 6), st.lists(RUNS, max_size=4)), max_size=8))
def test_reports_leave_what_a_plain_reading_of_the_rules_leaves(
    service: Served, batches: list[tuple[int, list[tuple[Outcome, str, int]]]]
) -> None:
    service.client.put_producer(Producer("cpu", "x", 1e6))
    service.client.put_node("n1", "127.0.0.1:1")
    value: str | None = None
    last: Outcome | None = None
    taken = -1
    for sequence, runs in batches:
        sent = tuple(Run("cpu", outcome, 0.1, text, None, age) for outcome, text, age in runs)
        service.client.report("n1", Report("boot", sequence, "", sent))
        if sequence > taken and (runs or taken < 0):  # a heartbeat of a known agent says only that it lives
            taken = sequence
            for outcome, text, _ in runs:
                last, value = outcome, text if outcome is Outcome.OK else value
    found = [(datum.data_value, datum.outcome, datum.state) for datum in service.reader.data("cpu")]
    bad = last not in (None, Outcome.OK, Outcome.NO_DATA)
    state = State.FAILED if bad else State.STALE if value is None else State.FRESH
    assert found == ([] if last is None else [(value, last, state)])
    service.client.delete_node("n1")


KEYS = st.sampled_from("abc")
STEPS = st.lists(st.tuples(KEYS, KEYS, st.none() | st.booleans()))


@given(before=STEPS, after=STEPS)
def test_a_draft_changes_its_copy_and_never_what_readers_see(
    before: list[tuple[str, str, bool | None]], after: list[tuple[str, str, bool | None]]
) -> None:
    def apply(base: Configuration, steps: list[tuple[str, str, bool | None]]) -> Configuration:
        transaction = Transaction(base, CurrentValues())
        for outer, inner, running in steps:
            transaction.put("slots", (outer, inner), None if running is None else SlotRequest(running))
        return transaction.configuration

    def plain(configuration: Configuration) -> dict[tuple[str, str], SlotRequest]:
        return {
            (outer, inner): slot_request
            for outer, rows in configuration.slots.items()
            for inner, slot_request in rows.items()
        }

    seen = apply(Configuration(), before)
    kept = copy.deepcopy(seen)
    changed = apply(seen, after)
    assert seen == kept
    expected = plain(kept)
    for outer, inner, running in after:
        expected.pop((outer, inner), None)
        if running is not None:
            expected[outer, inner] = SlotRequest(running)
    assert plain(changed) == expected


LETTERS = "abcdef"
# What one producer reads: names of producers, and of what they emit.
READ = st.lists(st.sampled_from([*LETTERS, *(f"{letter}_out" for letter in LETTERS)]), max_size=3, unique=True)


def _is_circular(inputs: Mapping[str, tuple[str, ...]]) -> bool:
    """The judgement of Python's own sorter: producer -> the producers that make its inputs."""
    try:
        list(TopologicalSorter({reader: [name[0] for name in read] for reader, read in inputs.items()}).static_order())
    except CycleError:
        return True
    return False


@given(puts=st.lists(st.tuples(st.sampled_from(LETTERS), READ), max_size=25))
def test_an_update_is_refused_as_a_circle_exactly_when_it_closes_one(puts: list[tuple[str, list[str]]]) -> None:
    current_values, configuration = CurrentValues(), Configuration()

    def put(name: str, read: tuple[str, ...]) -> Configuration:
        transaction = Transaction(configuration, current_values)
        made = Producer(name, "x", 1, Kind.PROCESSOR, emits=(f"{name}_out",), inputs=read)
        producers.put_producer(transaction, made, None)
        return transaction.configuration

    inputs: dict[str, tuple[str, ...]] = dict.fromkeys(LETTERS, ())
    for name in LETTERS:
        configuration = put(name, ())
    for name, read in puts:
        wanted = inputs | {name: tuple(read)}
        try:
            configuration = put(name, tuple(read))
        except Conflict as refused:
            assert "cycle" in str(refused)
            assert _is_circular(wanted)
        else:
            assert not _is_circular(wanted)
            inputs = wanted
    assert {name: configuration.producers[name].inputs for name in LETTERS} == inputs
