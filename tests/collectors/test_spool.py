"""The way to the service, with a service that fails as the test asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from collectors.agent.reports import spool as spool_module
from collectors.agent.reports.backlog import Backlog, Clocks
from collectors.agent.reports.spool import (
    BATCH_RUNS,
    HEARTBEAT_SECONDS,
    LINGER_SECONDS,
    MAX_RETRY_SECONDS,
    RUN_BYTES,
    Spool,
)
from infosvc.wire.errors import InfoError, InvalidInput, NotFound, Revoked, Unreachable
from infosvc.wire.records import Outcome, Receipt, Report, Run, Slot, Wanted


class Service:
    """Answers as `error`, `version` and `unloved` say, and keeps what it was sent."""

    def __init__(self) -> None:
        self.version = 1
        self.wanted: Wanted | None = None
        self.error: InfoError | None = None
        self.lost_answer = False
        self.unloved = ""
        self.inputs: dict[str, int] = {}
        self.reports: list[Report] = []
        self.asked = 0

    def slots(self, node_name: str) -> Wanted:
        if self.error:
            raise self.error
        self.asked += 1
        return self.wanted or Wanted(node_name, self.version)

    def report(self, node_name: str, report: Report) -> Receipt:
        if self.error:
            raise self.error
        if self.unloved in [run.data_name for run in report.runs]:
            raise InvalidInput(f"{self.unloved} is no good")
        self.reports.append(report)
        if self.lost_answer:
            raise Unreachable("the answer was lost")
        return Receipt(self.version, self.inputs)

    def names(self) -> list[str]:
        return [run.data_name for report in self.reports for run in report.runs]


class Slots:
    def __init__(self) -> None:
        self.version = -1
        self.read: list[str] = []
        self.counts: Mapping[str, int] = {}

    def want(self, wanted: Wanted) -> None:
        self.version = wanted.version

    def note_delivered(self, runs: Sequence[Run]) -> None:
        self.read += [run.data_name for run in runs]

    def note_counts(self, counts: Mapping[str, int]) -> None:
        self.counts = counts


class Bench:
    """One spool with clocks of its own; `restart` puts another in its place, as a new agent would be."""

    def __init__(self, directory: Path, limit: int = 8 * 1024**2) -> None:
        self.service = Service()
        self.slots = Slots()
        self.now = 0.0
        self.wall = 1e9
        self.boot = "first"
        self.directory = directory
        self.limit = limit
        self.restart()

    def restart(self) -> None:
        clocks = Clocks(lambda: self.now, lambda: self.wall, self.boot)
        self.backlog = Backlog(self.directory, self.limit, clocks)
        self.spool = Spool("n1", "v1", self.service, self.slots, self.backlog, lambda: self.now)

    def step(self, now: float) -> float:
        self.wall += now - self.now
        self.now = now
        return self.spool.step(now)

    def add(self, *names: str) -> None:
        for name in names:
            self.spool.add(Run(name, Outcome.OK, 0.1, "1"))

    def fail(self, error: InfoError | None = None) -> None:
        self.service.error = error or Unreachable("away")

    def drain(self) -> None:
        """The service is back: step on until nothing waits any more."""
        self.service.error = None
        for _ in range(1000):
            if self.step(self.now + MAX_RETRY_SECONDS / 4) > 0 and not self.spool._failures:
                return
        raise AssertionError("the spool does not drain")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "spool")


def test_the_first_step_asks_for_the_slots_and_reports(bench: Bench) -> None:
    assert bench.step(0.0) == HEARTBEAT_SECONDS

    assert bench.service.asked == 1
    assert [(r.sequence, r.agent_version, r.runs) for r in bench.service.reports] == [(1, "v1", ())]


def test_runs_carry_their_age_at_the_time_of_sending_whatever_the_wall_clock_says(bench: Bench) -> None:
    bench.step(9.0)
    bench.step(10.0)
    bench.add("a")
    bench.wall -= 3600
    bench.step(12.5)

    assert [run.age for run in bench.service.reports[-1].runs] == [2.5]


def test_runs_wait_for_one_another_a_moment_at_most(bench: Bench) -> None:
    bench.step(0.0)
    bench.now = 0.5
    bench.add("a")
    assert bench.step(0.6) == pytest.approx(LINGER_SECONDS - 0.1)
    assert LINGER_SECONDS + 0.05 <= 0.25  # of the age that a value may have beyond its interval
    bench.add("b")
    assert bench.service.names() == []
    bench.step(0.5 + LINGER_SECONDS)

    assert [len(report.runs) for report in bench.service.reports] == [0, 2]


def test_a_batch_that_is_complete_is_sent_at_once(bench: Bench) -> None:
    bench.step(0.0)
    bench.add("a", "b")
    bench.spool.flush()
    bench.step(0.1)

    assert [len(report.runs) for report in bench.service.reports] == [0, 2]
    bench.spool.flush()
    assert bench.step(0.2) == pytest.approx(HEARTBEAT_SECONDS - 0.1)


def test_an_idle_agent_still_says_that_it_lives(bench: Bench) -> None:
    for now in (0.0, 1.0, HEARTBEAT_SECONDS - 0.1):
        bench.step(now)
    assert len(bench.service.reports) == 1

    bench.step(HEARTBEAT_SECONDS)
    assert len(bench.service.reports) == 2


def test_a_newer_wanted_state_is_fetched_at_once(bench: Bench) -> None:
    bench.step(0.0)
    bench.service.version = 7
    assert bench.step(HEARTBEAT_SECONDS) == 0
    bench.step(HEARTBEAT_SECONDS)

    assert (bench.service.asked, bench.slots.version) == (2, 7)


def test_what_the_service_has_and_what_it_counts_is_passed_on(bench: Bench) -> None:
    bench.add("a")
    bench.fail()
    bench.step(0.0)
    assert bench.slots.read == []
    bench.service.inputs = {"x": 3}
    bench.drain()

    assert (bench.slots.read, bench.slots.counts) == (["a"], {"x": 3})


def test_an_outage_of_ten_minutes_loses_nothing_and_drains_in_order(bench: Bench) -> None:
    bench.step(0.0)
    bench.fail()
    names = [f"r{tick}.{producer}" for tick in range(120) for producer in range(10)]
    values = {f"name_{number}": "123456.789" for number in range(5)}
    for tick in range(120):
        for name in names[10 * tick : 10 * tick + 10]:
            bench.spool.add(Run(name, Outcome.OK, 0.1, "5", values=values))
        for second in range(5):
            bench.step(5.0 * tick + second + 1)
    bench.drain()

    assert bench.service.names() == names
    assert max(len(report.runs) for report in bench.service.reports) <= BATCH_RUNS
    assert bench.service.reports[-1].dropped == 0
    assert not list(bench.directory.iterdir())


def test_runs_outlive_the_agent_with_their_ages(bench: Bench) -> None:
    bench.step(50.0)
    bench.fail()
    bench.step(100.0)
    bench.add("a")
    bench.step(105.0)
    bench.wall += 3600  # within one boot of the machine, nobody asks the wall clock
    bench.restart()
    bench.now = 160.0
    bench.drain()

    sent = [run for report in bench.service.reports for run in report.runs]
    assert [run.data_name for run in sent] == ["a"]
    assert sent[0].age == pytest.approx(60.0 + 1.25, abs=0.01)


@pytest.mark.parametrize(
    ("jump", "age"),
    [(0.0, 5.0 + 300.0), (-7200.0, 5.0 + 60.0), (1e9, 5.0 + 7 * 86_400)],
    ids=["right", "back", "absurd"],
)
def test_after_a_start_of_the_machine_ages_go_by_the_wall_clock_within_reason(
    bench: Bench, jump: float, age: float
) -> None:
    bench.step(995.0)
    bench.fail()
    bench.now = 1000.0
    bench.add("a")
    bench.step(1005.0)
    bench.wall += 300.0 + jump
    bench.boot, bench.now = "second", 60.0
    bench.restart()
    bench.service.error = None
    bench.spool.step(60.0)

    assert [run.age for report in bench.service.reports for run in report.runs] == [pytest.approx(age)]


def test_an_agent_that_ends_leaves_what_it_has_for_the_next(bench: Bench) -> None:
    bench.step(0.0)
    bench.add("a", "b")
    bench.spool.close()
    bench.restart()
    bench.drain()

    assert bench.service.names() == ["a", "b"]


def test_a_full_spool_drops_the_oldest_and_counts_them(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "spool", limit=10 * 4096)
    bench.step(0.0)
    bench.fail()
    for number in range(30):
        bench.add(f"r{number}", f"s{number}")
        bench.step(10.0 * number + 10)
    assert sum(file.stat().st_size for file in bench.directory.iterdir()) <= bench.limit
    bench.drain()

    assert bench.service.names() == [name for number in range(20, 30) for name in (f"r{number}", f"s{number}")]
    assert bench.service.reports[-1].dropped == 40


def test_when_the_disk_takes_nothing_runs_wait_in_memory_and_the_oldest_go(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.directory.write_text("no directory")
    monkeypatch.setattr(spool_module, "PENDING_BYTES", 10 * (RUN_BYTES + 1))
    bench.step(0.0)
    bench.fail()
    for number in range(15):
        bench.add(f"r{number}")
        bench.step(10.0 * number + 10)
    bench.drain()

    # The batch under way when the service went stays as it is; of the rest, the newest are kept.
    assert bench.service.names() == ["r0", *(f"r{number}" for number in range(5, 15))]
    assert bench.service.reports[-1].dropped == 4


def test_a_spoiled_file_of_the_spool_is_dropped_and_the_others_are_sent(bench: Bench) -> None:
    bench.step(0.0)
    bench.fail()
    for name in ("a", "b", "c"):
        bench.add(name)
        bench.step(bench.now + 10)
    bench.restart()
    sorted(bench.directory.iterdir())[1].write_text("half a li")
    bench.drain()

    assert bench.service.names() == ["a", "c"]
    assert bench.service.reports[-1].dropped == 1


def test_a_service_that_is_away_is_asked_ever_less_often(bench: Bench) -> None:
    bench.fail()
    asked = []
    for tenth in range(300):
        before = bench.spool._failures
        bench.step(tenth / 10)
        if bench.spool._failures != before:
            asked.append(tenth / 10)

    assert asked[:5] == [0.0, 1.0, 3.0, 7.0, 12.0]


def test_a_batch_whose_answer_was_lost_is_sent_again_under_its_number(bench: Bench) -> None:
    bench.add("first")
    bench.service.lost_answer = True
    bench.step(2.0)
    bench.add("second")
    bench.service.lost_answer = False
    bench.drain()

    assert [(r.sequence, [x.data_name for x in r.runs]) for r in bench.service.reports if r.runs] == [
        (1, ["first"]),
        (1, ["first"]),
        (2, ["second"]),
    ]


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "on disk"])
def test_of_a_batch_that_the_service_refuses_only_the_bad_run_is_dropped(
    bench: Bench, stored: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bench.step(0.0)
    bench.service.unloved = "r5"
    names = [f"r{number}" for number in range(13)]
    if stored:
        bench.fail()
    bench.add(*names)
    bench.step(5.0)
    bench.drain()

    assert bench.service.names() == [name for name in names if name != "r5"]
    assert "r5 was refused and is dropped" in caplog.text
    assert not bench.backlog
    assert len({report.sequence for report in bench.service.reports}) == len(bench.service.reports)


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "on disk"])
def test_halves_of_a_refused_batch_are_not_lost_when_the_service_goes_or_the_agent_ends(
    bench: Bench, stored: bool
) -> None:
    bench.step(0.0)
    if stored:
        bench.fail()
    names = [f"r{number}" for number in range(8)]
    bench.add(*names)
    bench.service.unloved = "r7"
    bench.step(5.0)
    bench.service.error = None
    if stored:
        bench.step(10.0)
    bench.fail()
    bench.step(10.0)
    bench.spool.close()
    bench.restart()
    bench.drain()

    assert bench.service.names() == names[:7]
    assert bench.service.reports[-1].dropped == 0
    assert not bench.backlog


@pytest.mark.parametrize("answered", [True, False])
def test_an_agent_that_ends_during_a_report_keeps_its_runs_until_they_are_known_to_have_arrived(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, answered: bool
) -> None:
    bench.step(0.0)
    bench.add("a")
    report = bench.service.report

    def end_meanwhile(node_name: str, sent: Report) -> Receipt:
        bench.spool.close()
        assert bench.backlog
        if not answered:
            raise Unreachable("away")
        return report(node_name, sent)

    monkeypatch.setattr(bench.service, "report", end_meanwhile)
    bench.step(10.0)
    assert bool(bench.backlog) != answered
    assert bench.service.names() == ["a"] * answered


@pytest.mark.parametrize(
    "wanted", [Wanted("n1", 7, (Slot("../a", "x", 5),)), Wanted("n2", 7), Wanted("n1", 7, (Slot("a", "x", 0),))]
)
def test_a_wanted_state_that_is_wrong_changes_nothing_and_is_said_once(
    bench: Bench, wanted: Wanted, caplog: pytest.LogCaptureFixture
) -> None:
    bench.step(0.0)
    bench.service.wanted, bench.service.version = wanted, 7
    bench.add("a")
    for now in range(1, 10):
        bench.step(float(now))

    assert bench.slots.version == 1
    assert bench.service.names() == ["a"]
    assert caplog.text.count("the wanted state is refused") == 1


def test_a_batch_on_disk_stays_there_until_its_last_half_has_arrived(bench: Bench) -> None:
    bench.step(0.0)
    bench.fail()
    bench.add("good", "bad")
    bench.step(5.0)
    bench.service.error = None
    bench.service.unloved = "bad"
    bench.step(7.0)
    bench.step(7.0)
    assert bench.service.names() == ["good"]
    assert bench.backlog
    bench.step(7.0)
    assert not bench.backlog


def test_a_node_that_is_not_enrolled_yet_asks_until_it_is(bench: Bench) -> None:
    bench.fail(NotFound("no such node"))
    bench.step(0.0)
    bench.service.error = None
    bench.step(1.0)

    assert (bench.service.asked, len(bench.service.reports)) == (1, 1)


def test_a_revoked_token_is_no_outage(bench: Bench) -> None:
    bench.fail(Revoked("the node was forgotten"))

    with pytest.raises(Revoked):
        bench.step(0.0)


def test_long_values_are_spread_over_several_batches(bench: Bench) -> None:
    for number in range(20):
        bench.spool.add(Run(f"r{number}", Outcome.OK, 0.1, "x" * 60_000))
    bench.drain()

    sent = [len(report.runs) for report in bench.service.reports if report.runs]
    assert sum(sent) == 20
    assert max(sent) <= 5
