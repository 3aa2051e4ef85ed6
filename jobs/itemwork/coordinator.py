"""A job that divides items: know, decide, have it done by leases, store. A kind says what the items and rows are.

Which nodes are good at what is not decided here: the capability is whatever data name the job was told to read.
"""

from __future__ import annotations

import math
import resource
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import pyarrow as pa

from hadoop.client.yarn import Launch
from hadoop.errors import HadoopError
from infosvc.wire.errors import InfoError
from jobs.application.attempts import STARTED
from jobs.application.calls import Request
from jobs.application.coordinator import (
    Attempt,
    Container,
    Coordinator,
    End,
    Knowledge,
    NodeProgress,
    Outcome,
    Progress,
    Role,
    Seat,
    Then,
)
from jobs.application.journal import Record, read
from jobs.application.master import say
from jobs.aside import Aside
from jobs.division import speed_history, start_history
from jobs.division.decision import CapabilityReadings, Decision
from jobs.itemwork.calls import CALLS, LARGEST
from jobs.itemwork.dealer import Dealer, remaining
from jobs.itemwork.deciding import decide, rules_of
from jobs.itemwork.node_totals import NOTHING
from jobs.itemwork.phases import Phases
from jobs.itemwork.results.output import Output, report_url
from jobs.itemwork.rows import node_rows
from jobs.itemwork.settings import ItemSettings
from jobs.itemwork.snapshot import judge_nodes, know, know_later, note, readings_of_record
from jobs.itemwork.source import ItemSource
from jobs.itemwork.summary import Course, summarise
from jobs.itemwork.undealt import Undealt
from jobs.reports.phases import STORE
from jobs.reports.report import PLAN, JobReport, Weights
from locality.leases import Leases

SILENCES = 6
"""A worker that is silent for so many times the length of a lease is ended and asked for again."""
JUDGED = "judged"
"""Record of the journal: what the nodes can do, before any of them is asked for a container."""
SHARED = "shared"
"""Record of the journal: the job's workers also did other jobs."""
SHARED_NOTE = "Its workers also did other jobs at the same time, so its speeds were not kept as history."


class ItemCoordinator(Coordinator):
    """One attempt at one job. JobError, HadoopError, InfoError or PlanError say why there is no report.

    A kind gives its settings and the source of its items, and implements `launches` and `find_flaw`; `unit` is the
    plural of what it calls an item.
    """

    calls = LARGEST
    unit: ClassVar[str]

    def __init__(self, attempt: Attempt, settings: ItemSettings, source: ItemSource) -> None:
        self._attempt = attempt
        self._settings = settings
        self._source = source
        self._output = Output(attempt.filesystem, attempt.spec, settings.output, attempt.number)
        self._stored: JobReport | None = None
        self._decision: Decision
        self._dealer: Dealer
        self._work: Dealer | Undealt = Undealt(attempt.clock)
        self._deciding: Future[Decision] | None = None
        self._values: Mapping[str, float] = {}
        self._phases = Phases(attempt.clock, is_first=attempt.number == 1)
        self._is_shared = any(record.kind == SHARED for record in attempt.earlier)

    @property
    def settings(self) -> ItemSettings:
        """What the job was told."""
        return self._settings

    @abstractmethod
    def launches(self) -> Callable[[Seat], Launch]:
        """Lay out once what all workers need, unless an earlier attempt has done so; what starts one on a node."""

    @abstractmethod
    def find_flaw(self, schema: pa.Schema) -> str:
        """What is wrong with the columns of rows, "" if nothing; `path` and `error` are always among them."""

    def weights(self) -> Weights:
        """Where the weights of a network came from, for the report; a kind without a network has none."""
        return Weights("")

    def roles(self, knowledge: Knowledge) -> Sequence[Role]:
        """One worker on each node that can do anything; none when an earlier attempt has put the results in place."""
        if self.is_stored():
            return ()
        launch, nodes = self.launches(), self._begin(knowledge)
        self._phases.note_asked()
        return (Role("worker", nodes, launch, SILENCES * self._settings.lease_seconds),)

    def is_stored(self) -> bool:
        """Whether an earlier attempt has put the results in place, so that nothing is left but to `finish`."""
        self._stored = self._output.find_stored()
        return self._stored is not None

    def divide(self, knowledge: Knowledge) -> Sequence[str]:
        """Divide the items, or go on with the division of an earlier attempt; the nodes that may work on them.

        From then on workers are answered, wherever they come from.
        """
        self._deal(self._output.decision() or self._decide(knowledge, judge_nodes(knowledge, self._settings)))
        return self._able()

    def is_new(self, node_name: str) -> bool:
        """Whether neither the division nor `admit` knows what a node can do."""
        return node_name not in self._values

    def admit(self, node_name: str) -> bool:
        """Let a node work that is new to the division; False when it can do nothing.

        It has no part of the plan: it takes what is given back, and steals. JobError, InvalidInput or InfoError while
        nobody says what it can do.
        """
        attempt, readings = self._attempt, self._decision.readings
        self._values = {**self._values, **know_later(attempt.client, self._settings, readings, [node_name])}
        return self._values[node_name] > 0

    def on_start(self, container: Container) -> None:
        """A worker may take leases from now on."""
        node = container.seat.node_name
        self._work.add_container(node, container.container_id, self._values[node])
        self._phases.note_started(node)

    def on_end(self, container: Container, end: End) -> Then:
        """What it held is given back; items that are suspected of ending workers speak for its node."""
        node, container_id = container.seat.node_name, container.container_id
        expected = end.exit.blames and self.is_suspect(container)
        self._work.end_container(node, container_id, end.exit.blames, end.text)
        return Then.EXPECTED if expected else Then.AGAIN

    def is_suspect(self, container: Container) -> bool:
        """Whether a container works now on items that are suspected of ending workers."""
        return self._work.is_suspect(container.seat.node_name, container.container_id)

    def pop_excused(self) -> Sequence[str]:
        """The containers whose end turned out to be the fault of an item."""
        return self._work.pop_excused()

    def note_shared(self) -> None:
        """Its workers also do other jobs: what they do here does not tell how fast they are."""
        self._is_shared = True

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None:
        """Answer a worker; while it is being decided which node does what, it waits."""
        work = self._work
        if call == "/heartbeat":
            self._phases.hear(request)
        return work.hear(call, request) if isinstance(work, Undealt) else CALLS[call](work, request)

    def last_heard(self, seat: Seat) -> float:
        """When the worker of a node last said anything."""
        return self._work.last_heard(seat.node_name)

    def starting(self, seat: Seat) -> None:
        """A node keeps its part until its worker can begin."""
        self._work.note_starting(seat.node_name)

    def tick(self) -> None:
        """Deal what there is to do, once that is decided, and take back what silent nodes hold."""
        if self._deciding and self._deciding.done():
            self._deal(self._deciding.result())
            self._deciding = None
        self._work.expire()

    def progress(self) -> Progress:
        """Items that have their rows."""
        if self._stored:
            return Progress(self._stored.items, self._stored.items, self.unit)
        if isinstance(self._work, Undealt):
            return Progress(0, 0, self.unit, is_open=True, is_planned=False)
        work, of = self._work, self._decision.items
        totals, running = work.totals(), work.running()
        nodes = {}
        loads = dict.fromkeys((*totals, *self._values), 0) | self._decision.plan.loads()
        for name, planned in loads.items():
            total = totals.get(name, NOTHING)
            nodes[name] = NodeProgress(
                planned=planned,
                done=total.items,
                errors=total.errors,
                local=total.local_items,
                running=running.get(name, 0),
                rate=total.items_per_second,
            )
        return Progress(of - work.left, of, self.unit, nodes)

    def report_page(self) -> str:
        """The report.html beside the results."""
        return report_url(self._attempt.spec.conf_dir, self._settings.output)

    def finish(self) -> Outcome:
        """Rows, report and decision, all at once at the output."""
        report = self._stored or self._store(self._decision, self._dealer)
        message = f"{report.items} {self.unit}, makespan {report.makespan_seconds:.1f} s"
        return Outcome(message, self.report_page())

    def _begin(self, knowledge: Knowledge) -> Sequence[str]:
        """The nodes that may work, which are known before the items are; these are divided while containers start."""
        if decision := self._output.decision():
            self._deal(decision)
            return self._able()
        decides = self._judge(knowledge)
        self._values = decides.numbers()
        self._deciding = Aside().do(lambda: self._decide(knowledge, decides))
        return self._able()

    def _judge(self, knowledge: Knowledge) -> CapabilityReadings:
        """What the nodes can do, as an earlier attempt has found it: its containers have their seats by that."""
        has_started = any(record.kind == STARTED for record in self._attempt.earlier)
        for record in reversed(self._attempt.earlier):
            if record.kind == JUDGED and has_started:
                return readings_of_record(record.body)
        decides = judge_nodes(knowledge, self._settings)
        self._attempt.journal.append(Record(JUDGED, asdict(decides)))
        return decides

    def _able(self) -> list[str]:
        return [node for node, value in sorted(self._values.items()) if value > 0]

    def _decide(self, knowledge: Knowledge, decides: CapabilityReadings) -> Decision:
        with self._phases.lasting(PLAN):
            known = know(knowledge, self._source, self._settings, decides)
            known = replace(known, start_seconds=self._find_left(known.start_seconds))
            decision = decide(self._attempt.spec.job_id, self._settings, known, self.unit)
            self._output.prepare(decision)
        say(decision.job_id, f"plan: {decision.plan.loads()}")
        return decision

    def _find_left(self, start_seconds: Mapping[str, float]) -> dict[str, float]:
        """What is left of these by now, as workers load while items are listed; those who have called are ready.

        In a further attempt nothing is left: workers of the one before have loaded, and do not say so.
        """
        if self._attempt.number > 1:
            return {}
        left = {node: seconds - self._phases.since_started(node) for node, seconds in start_seconds.items()}
        return {node: some for node, some in left.items() if some > 0 and self._work.last_heard(node) == -math.inf}

    def _deal(self, decision: Decision) -> None:
        """From now on workers get leases."""
        self._decision, self._dealer = decision, self._make_dealer(decision)
        self._values = decision.readings.numbers()
        if isinstance(self._work, Undealt):
            self._work.hand_over(self._dealer)
        self._work = self._dealer

    def _make_dealer(self, decision: Decision) -> Dealer:
        """What is not done yet, dealt by lease."""
        attempt = self._attempt
        plan = remaining(decision.plan, attempt.earlier)
        rules = rules_of(self._settings)
        leases = Leases(plan, decision.readings.numbers(), attempt.clock(), rules, decision.terms.cost)
        dealer = Dealer(leases, self._source.of, self.find_flaw, attempt.journal, attempt.number, attempt.clock)
        dealer.restore(attempt.earlier)
        return dealer

    def _store(self, decision: Decision, work: Dealer) -> JobReport:
        if stored := self._output.find_stored():
            return stored
        attempt = self._attempt
        with self._phases.lasting(STORE):
            self._output.store(lambda: node_rows(read(attempt.filesystem, attempt.journal_folder)), decision.items)
        course = Course(
            started_at=datetime.fromtimestamp(attempt.began_at, UTC).isoformat(timespec="milliseconds"),
            totals=work.totals(),
            leases=work.timeline(),
            failures=tuple(attempt.failures),
            attempts=attempt.number,
            wall_seconds=attempt.clock(),
            first_result_seconds=work.first_result_seconds,
            master_memory_mb=attempt.spec.master_memory or 0,
            master_peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            note=note(decision),
            values=self._values,
            phases=self._phases.list_all(),
        )
        made = summarise(self._settings, decision, course, self.weights())
        report = self._remember(replace(made, application_id=attempt.spec.application_id))
        try:
            self._output.commit(report)
        except HadoopError:  # an attempt that was taken for dead may have been faster, or the answer was lost
            if stored := self._output.find_stored():
                return stored
            raise
        return report

    def _remember(self, report: JobReport) -> JobReport:
        """Write the speeds back as history; a service that is away now costs the history, not the results."""
        if self._is_shared:
            return replace(report, note=f"{report.note} {SHARED_NOTE}".strip())
        speeds = {node.node_name: node.items_per_second for node in report.nodes if node.items}
        program = self._settings.program
        with suppress(InfoError):  # the next plan counts what was known before
            start_history.record(self._attempt.client, program.name, self._phases.start_seconds())
        try:
            speed_history.record(self._attempt.client, program.name, program.batch, speeds)
        except InfoError as error:
            lost = f"The speeds of this run could not be kept as history: {error}"
            return replace(report, note=f"{report.note} {lost}".strip())
        return report
