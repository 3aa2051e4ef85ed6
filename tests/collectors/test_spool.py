"""The way to the service, with a service that fails as the test asks."""

from __future__ import annotations

import pytest

from collectors.agent.spool import BATCH_RUNS, HEARTBEAT_SECONDS, KEPT_RUNS, Spool
from infosvc.errors import InfoError, InvalidInput, NotFound, Unreachable
from infosvc.records import Outcome, Report, Run, Wanted


class Service:
    """Answers as `error` and `version` say, and keeps what it was sent."""

    def __init__(self) -> None:
        self.version = 1
        self.error: InfoError | None = None
        self.lost_answer = False
        self.reports: list[Report] = []
        self.asked = 0

    def slots(self, node_name: str) -> Wanted:
        if self.error:
            raise self.error
        self.asked += 1
        return Wanted(self.version)

    def report(self, node_name: str, report: Report) -> int:
        if self.error:
            raise self.error
        self.reports.append(report)
        if self.lost_answer:
            raise Unreachable("the answer was lost")
        return self.version


class Slots:
    version = -1

    def want(self, wanted: Wanted) -> None:
        self.version = wanted.version


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def spool(service: Service, clock: Clock) -> Spool:
    return Spool("n1", "v1", service, Slots(), clock)


def step(spool: Spool, clock: Clock, now: float) -> None:
    clock.now = now
    spool.step(now)


def run(name: str = "a") -> Run:
    return Run(name, Outcome.OK, 0.1, "1")


def test_the_first_step_asks_for_the_slots_and_reports(spool: Spool, service: Service, clock: Clock) -> None:
    step(spool, clock, 0.0)

    assert service.asked == 1
    assert [(r.sequence, r.agent_version, r.runs) for r in service.reports] == [(1, "v1", ())]


def test_runs_carry_their_age_at_the_time_of_sending(spool: Spool, service: Service, clock: Clock) -> None:
    clock.now = 10.0
    spool.add(run())
    step(spool, clock, 12.5)

    assert [r.age for r in service.reports[-1].runs] == [2.5]


def test_an_idle_agent_still_says_that_it_lives(spool: Spool, service: Service, clock: Clock) -> None:
    for now in (0.0, 1.0, HEARTBEAT_SECONDS - 0.1):
        step(spool, clock, now)
    assert len(service.reports) == 1

    step(spool, clock, HEARTBEAT_SECONDS)
    assert len(service.reports) == 2


def test_a_newer_wanted_state_is_fetched(spool: Spool, service: Service, clock: Clock) -> None:
    step(spool, clock, 0.0)
    service.version = 7
    step(spool, clock, 5.0)
    step(spool, clock, 6.0)

    assert service.asked == 2


def test_while_the_service_is_away_the_newest_runs_are_kept(spool: Spool, service: Service, clock: Clock) -> None:
    step(spool, clock, 0.0)
    service.error = Unreachable("away")
    for i in range(KEPT_RUNS + 5):
        spool.add(run(f"r{i}"))
    step(spool, clock, 1.0)
    for i in range(KEPT_RUNS + 5, KEPT_RUNS + 20):
        spool.add(run(f"r{i}"))
    service.error = None
    for i in range(20):
        step(spool, clock, 10.0 + i)

    sent = [r.data_name for report in service.reports for r in report.runs]
    # The batch under way when the service went stays as it is; of the rest, the newest are kept.
    under_way, newest = range(5, 5 + BATCH_RUNS), range(KEPT_RUNS + 20 - KEPT_RUNS, KEPT_RUNS + 20)
    assert sent == [f"r{i}" for i in sorted({*under_way, *newest})]


def test_a_service_that_is_away_is_asked_ever_less_often(spool: Spool, service: Service, clock: Clock) -> None:
    service.error = Unreachable("away")
    for tenth in range(100):
        step(spool, clock, tenth / 10)
    service.error = None
    step(spool, clock, 9.95)
    assert service.asked == 0

    step(spool, clock, 12.0)
    assert service.asked == 1


def test_a_batch_whose_answer_was_lost_is_sent_again_under_its_number(
    spool: Spool, service: Service, clock: Clock
) -> None:
    spool.add(run("first"))
    service.lost_answer = True
    step(spool, clock, 0.0)
    spool.add(run("second"))
    service.lost_answer = False
    step(spool, clock, 5.0)
    step(spool, clock, 6.0)

    assert [(r.sequence, [x.data_name for x in r.runs]) for r in service.reports] == [
        (1, ["first"]),
        (1, ["first"]),
        (2, ["second"]),
    ]


def test_a_batch_that_the_service_refuses_does_not_block_the_next(spool: Spool, service: Service, clock: Clock) -> None:
    step(spool, clock, 0.0)
    spool.add(run("bad"))
    service.error = InvalidInput("no such field")
    step(spool, clock, 1.0)
    service.error = None
    spool.add(run("good"))
    step(spool, clock, 2.0)

    assert [[x.data_name for x in r.runs] for r in service.reports] == [[], ["good"]]


def test_a_node_that_is_not_enrolled_yet_asks_until_it_is(spool: Spool, service: Service, clock: Clock) -> None:
    service.error = NotFound("no such node")
    step(spool, clock, 0.0)
    service.error = None
    step(spool, clock, 1.0)

    assert (service.asked, len(service.reports)) == (1, 1)


def test_long_values_are_spread_over_several_batches(spool: Spool, service: Service, clock: Clock) -> None:
    for i in range(20):
        spool.add(Run(f"r{i}", Outcome.OK, 0.1, "x" * 60_000))
    for i in range(20):
        step(spool, clock, float(i))

    sent = [len(r.runs) for r in service.reports if r.runs]
    assert sum(sent) == 20
    assert max(sent) <= 5
