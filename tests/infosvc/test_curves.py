"""The last hour of every number: in steps, with gaps, in bounded memory, and gone with what it is about."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from infosvc.data.curves import STEPS, Curves
from infosvc.state.configuration import Configuration
from infosvc.state.current_values import STEP, Cell, CurrentValues
from infosvc.state.transaction import Commit
from infosvc.state.value import Value
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Kind, Outcome, Producer, Report, Run

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

DAY = 86_400.0
HOUR = STEP * STEPS
MOST_BYTES = 60_000_000  # of 1,000 nodes with 50 values each


@pytest.fixture
def served(sqlite_url: str, serve: Serving, hands: Hands) -> Iterator[Served]:
    """A service with two names that keep no history, and one node."""
    with serve(sqlite_url, hands) as service:
        for name in ("cpu", "model"):
            service.client.put_producer(Producer(name, "", 60, Kind.PROGRAM, unit="ratio"))
        service.client.put_node("n1", "127.0.0.1:9")
        yield service


def _put(served: Served, hands: Hands, *numbers: float | str) -> None:
    """One number a step, and the clock into the next; a text is a gap."""
    for number in numbers:
        served.client.put_value("cpu", "n1", number)
        hands.turn(STEP)


def _last(served: Served, count: int) -> list[float | None]:
    """The newest numbers of cpu on n1, oldest first."""
    return list(served.reader.hour("cpu", "n1").numbers[-count:])


def test_the_last_number_of_each_step_is_kept_and_a_step_without_any_is_a_gap(served: Served, hands: Hands) -> None:
    begun = hands.now - hands.now % STEP
    _put(served, hands, 0.1, 5.3e10)
    hands.turn(2 * STEP)
    served.client.put_value("cpu", "n1", 0.25)
    runs = (Run("cpu", Outcome.OK, 0.1, "0.5"), Run("cpu", Outcome.FAILED, 0.1, reason="no file"))
    served.client.report("n1", Report("b", 1, "1", runs))
    served.client.put_value("model", "n1", "Xeon")

    said = served.reader.hour("cpu", "n1")
    assert (said.unit, said.step, len(said.numbers), said.full) == ("ratio", STEP, STEPS, False)
    assert said.numbers == (None,) * (STEPS - 5) + (0.1, 5.3e10, None, None, 0.5)
    assert said.since == hands.epoch + begun + 4 * STEP - (STEPS - 1) * STEP
    assert served.reader.hour("model", "n1").numbers == ()
    whole = served.reader.node_hour("n1")
    assert (whole.since, [(curve.data_name, curve.numbers) for curve in whole.curves]) == (
        said.since,
        [("cpu", said.numbers)],
    )
    with pytest.raises(NotFound):
        served.reader.hour("cpu", "n2")


def test_what_an_agent_measured_before_it_reports_stands_where_it_was_measured(served: Served, hands: Hands) -> None:
    for sequence, age in enumerate((0.0, 3 * STEP, HOUR), start=1):
        run = Run("cpu", Outcome.OK, 0.1, str(sequence), age=age)
        served.client.report("n1", Report("b", sequence, "1", (run,)))
    assert _last(served, 4) == [2, None, None, 1]


def test_a_clock_that_is_set_moves_no_number_and_one_that_leaps_leaves_a_gap(served: Served, hands: Hands) -> None:
    _put(served, hands, 1, 2)
    before = served.reader.hour("cpu", "n1")
    hands.epoch -= DAY
    after = served.reader.hour("cpu", "n1")
    assert (after.numbers, after.since) == (before.numbers, before.since - DAY)
    hands.turn(HOUR + 7)
    assert set(served.reader.hour("cpu", "n1").numbers) == {None}
    served.client.put_value("cpu", "n1", 3)
    assert _last(served, STEPS) == [None] * (STEPS - 1) + [3]
    hands.turn(STEP)
    assert _last(served, 3) == [None, 3, None]


def _tell(curves: Curves, current_values: CurrentValues, hands: Hands, cells: list[Cell], text: str) -> int:
    """A commit that brings these cells the same value; of how many of them curves hear."""
    values: dict[Cell, Value | None] = {cell: Value(text, hands.now, Outcome.OK, None, hands.now) for cell in cells}
    stepped = current_values.apply(values.items(), hands.now // STEP * STEP)
    curves.hear(Commit(Configuration(), Configuration(), set(), values, stepped))
    return len(stepped)


def test_a_clock_that_goes_back_begins_the_curve_anew(hands: Hands) -> None:
    current_values = CurrentValues()
    curves = Curves(hands.clock(), 1, current_values)
    for text, passes in (("1", STEP), ("2", -HOUR / 2), ("3", 0)):
        _tell(curves, current_values, hands, [("cpu", "n1")], text)
        hands.turn(passes)
    assert curves.last_hour("n1").curves["cpu"] == (None,) * (STEPS - 1) + (3,)
    hands.turn(HOUR / 2)
    half = STEPS // 2
    assert curves.last_hour("n1").curves["cpu"] == (None,) * (half - 1) + (3,) + (None,) * half


def _metric(served: Served, name: str) -> float:
    lines = served.ask("GET", "/metrics", token=None).text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def test_a_curve_goes_with_its_value_its_name_and_its_node(served: Served, hands: Hands) -> None:
    forget: list[Callable[[], None]] = [
        lambda: served.client.delete_value("cpu", "n1"),
        lambda: served.client.delete_node("n1"),
        lambda: served.client.delete_producer("cpu"),
    ]
    for forgotten in forget:
        _put(served, hands, 1)
        assert _metric(served, "nodewise_curves") == 1
        forgotten()
        assert _metric(served, "nodewise_curves") == 0
        assert served.reader.node_hour("n1").curves == ()


def test_of_many_values_in_a_step_the_curves_hear_once(hands: Hands) -> None:
    cells: list[Cell] = [("cpu", "n1"), ("cpu", "n2")]
    current_values = CurrentValues()
    curves = Curves(hands.clock(), len(cells), current_values)
    hands.turn(STEP - hands.now % STEP)
    heard = []
    for text in map(str, range(6)):
        heard.append(_tell(curves, current_values, hands, cells, text))
        hands.turn(STEP / 3)
    assert heard == [2, 0, 0, 2, 0, 0]
    assert curves.last_hour("n2").curves["cpu"][-3:] == (2, 5, None)


def test_numbers_beyond_the_limit_have_no_curve_until_there_is_room(
    sqlite_url: str, serve: Serving, hands: Hands
) -> None:
    with serve(sqlite_url, hands, curves=1) as service:
        service.client.put_producer(Producer("cpu", "", 60, Kind.PROGRAM))
        service.client.put_value("cpu", "n1", 1)
        service.client.put_value("cpu", "n2", 2)
        said = service.client.hour("cpu", "n2")
        assert (said.numbers, said.full) == ((), True)
        assert service.client.node_hour("n2").full
        assert (_metric(service, "nodewise_curves"), _metric(service, "nodewise_curves_most")) == (1, 1)
        service.client.delete_value("cpu", "n1")
        hands.turn(STEP)
        service.client.put_value("cpu", "n2", 3)
        assert service.client.hour("cpu", "n2").numbers[-2:] == (2, 3)
    with serve(sqlite_url) as service:
        assert service.client.data("cpu")[0].data_value == "3"
        assert service.client.hour("cpu", "n2").numbers == (), "it begins anew with the service"


def test_the_hours_of_a_thousand_nodes_fit_into_their_memory(hands: Hands) -> None:
    cells: list[Cell] = [(f"name{name}", f"node{node}") for node in range(1_000) for name in range(50)]
    current_values = CurrentValues()
    curves = Curves(hands.clock(), len(cells), current_values)
    tracemalloc.start()
    try:
        _tell(curves, current_values, hands, cells, "0.5")
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(curves) == 50_000
    assert used < MOST_BYTES


def test_the_hour_of_the_cluster_is_a_sum_over_the_nodes_that_have_a_number(served: Served, hands: Hands) -> None:
    client = served.client
    client.put_producer(Producer("free", "", 60, Kind.PROGRAM, unit="bytes", ttl=STEP))
    client.put_producer(Producer("all", "", 60, Kind.PROGRAM, unit="bytes", ttl=10 * STEP))
    client.put_node("n2", "127.0.0.1:9")
    client.put_value("all", "n1", 100)
    client.put_value("all", "n2", 300)
    for one, other in ((10, None), (20, 90), (30, None), (None, None), (None, None)):
        for node, number in (("n1", one), ("n2", other)):
            if number is not None:
                client.put_value("free", node, number)
        hands.turn(STEP)

    said = served.reader.cluster_hour("free")
    assert (said.data_name, said.node_name, said.unit, said.of, said.step) == ("free", "*", "bytes", None, STEP)
    assert said.numbers[-6:] == (10.0, 110.0, 120.0, 30.0, None, None), "a number counts for its ttl, and no longer"
    assert set(said.numbers[:-6]) == {None}
    share = served.reader.cluster_hour("free", of="all")
    assert (share.unit, share.of) == ("ratio", "all")
    assert share.numbers[-6:] == (0.1, 0.275, 0.3, 0.3, None, None), "only nodes count that have both"


def test_a_share_of_ratios_is_their_mean_weighted_by_the_other_name(served: Served, hands: Hands) -> None:
    client = served.client
    client.put_producer(Producer("cores", "", 60, Kind.PROGRAM, unit="cpus", ttl=3600))
    client.put_node("n2", "127.0.0.1:9")
    for node, cores, idle in (("n1", 2, 1.0), ("n2", 6, 0.5)):
        client.put_value("cores", node, cores)
        client.put_value("cpu", node, idle)

    assert served.reader.cluster_hour("cpu", of="cores").numbers[-1] == 0.625
    client.put_value("cpu", "n1", 0)
    assert served.reader.cluster_hour("cpu", of="cores").numbers[-1] == 0.625, "kept for 5 s"
    hands.turn(5)
    assert served.reader.cluster_hour("cpu", of="cores").numbers[-1] == 0.375
    assert served.reader.cluster_hour("model").numbers == (None,) * STEPS
    client.put_value("cores", "n1", 0)
    client.put_value("cores", "n2", 0)
    hands.turn(5)
    assert served.reader.cluster_hour("cpu", of="cores").numbers[-1] is None, "nothing is no share of nothing"
    for name, of in (("gone", None), ("cpu", "gone")):
        with pytest.raises(NotFound, match="gone"):
            served.reader.cluster_hour(name, of)
