"""The application master's work, step by step: know, decide, have it done, store.

Which nodes are good at what is not decided here: the capability is whatever data name the job was told to read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

from hadoop.client.filesystem import FileSystem
from hadoop.client.master import Granted, MasterSession
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from jobs.application.containers import Containers, Patience
from jobs.application.journal import Journal, Record, read
from jobs.application.launches import Launches
from jobs.application.listener import Listener
from jobs.application.settings import JobSettings
from jobs.application.status import JobStatus
from jobs.division import speed_history
from jobs.division.decision import Decision
from jobs.images.rows_size import LARGEST_ROWS
from jobs.itemwork.dealer import Dealer, remaining
from jobs.itemwork.rows import rows_by_node
from jobs.kinds.classify.knowledge import Knowledge, know, note
from jobs.kinds.classify.listing import Pictures
from jobs.kinds.classify.output import Output, report_url
from jobs.kinds.classify.page import page
from jobs.kinds.classify.progress import Progress
from jobs.kinds.classify.summary import Course, summarise
from jobs.reports.report import Failure, JobReport
from locality.leases import Leases
from locality.policies import policy
from locality.quality import judge
from locality.rules import Rules

HEARTBEAT_SECONDS = 0.25
CALM_SECONDS = 1.0
"""Between exchanges with YARN once every container runs: they cost the workers' own cores something."""
FULL_BATCHES = 2
"""The most pictures of a lease, in full batches of each process: one is computed while the other waits."""
LEAST_SECONDS = 0.25
"""Of work in a lease, where a full batch takes longer; giving and taking one costs some hundredths of a second."""
GOODBYE_SECONDS = 5.0
"""How long workers may take to end by themselves when all pictures are done."""
BEGAN, FAILED = "began", "failed"
"""Records of the journal that are not the dealer's: an attempt has begun, a container has failed."""


class Partitioner:
    """One job. `run` returns its report; JobError, HadoopError, InfoError or PlanError say why there is none.

    `held` are the containers that an earlier attempt has left.
    """

    def __init__(
        self,
        settings: JobSettings,
        filesystem: FileSystem,
        session: MasterSession,
        client: InfoClient,
        listener: Listener,
        attempt: int,
        held: Iterable[Granted],
    ) -> None:
        self._settings = settings
        self._filesystem = filesystem
        self._session = session
        self._client = client
        self._listener = listener
        self._attempt = attempt
        self._held = held
        self._failures: Sequence[Failure] = ()
        self._clock = _clock(time.time())
        self._output = Output(filesystem, settings, attempt)
        self._journal_folder = f"{settings.staging}/journal"

    def run(self) -> JobReport:
        """Everything between registering and leaving."""
        self._listener.tell(self._planning, lambda: page(self._planning(), report_url(self._settings)))
        if stored := self._output.stored():
            return stored
        journal = Journal.open(self._filesystem, self._journal_folder, self._attempt)
        earlier = list(journal.earlier())
        began_at = next((float(record.body["at"]) for record in earlier if record.kind == BEGAN), time.time())
        journal.append(Record(BEGAN, {"at": began_at, "attempt": self._attempt}))
        self._clock = _clock(began_at)
        launches = Launches(self._filesystem, self._settings)
        launches.publish(self._listener.address)  # before the plan: workers of an earlier attempt hear that one is made
        pictures = Pictures(self._filesystem, f"{self._settings.staging}/apart")
        decision = self._decided(pictures)
        work = self._work(decision, pictures, journal, earlier)
        self._have_done(decision, work, journal, earlier, launches)
        journal.close()
        return self._store(decision, work, began_at)

    def decide(self, known: Knowledge) -> Decision:
        """Whatever the named policy makes of it, with what it was made from."""
        settings, terms = self._settings, known.terms
        numbers = known.judgements[settings.capability].numbers()
        started = time.monotonic()
        plan = policy(known.policy)(known.blocks, numbers, terms)
        planning_seconds = time.monotonic() - started
        return Decision(
            job_id=settings.job_id,
            made_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            input=settings.input,
            engine=settings.network.program,
            batch=settings.batch,
            policy=known.policy,
            capability=settings.capability,
            capabilities=known.judgements,
            speeds=known.speeds,
            terms=terms,
            blocks=known.blocks,
            plan=plan,
            quality=judge(plan, known.blocks, numbers, terms),
            planning_seconds=planning_seconds,
        )

    def _planning(self) -> JobStatus:
        """While there is nothing to deal yet."""
        return JobStatus(self._settings.job_id, "planning", self._attempt, 0, 0, 0, self._clock(), None, ())

    def _decided(self, pictures: Pictures) -> Decision:
        """What an earlier attempt decided, or a decision of this one."""
        if decision := self._output.decision():
            return decision
        known = know(self._filesystem, self._client, pictures, self._settings)
        decision = self.decide(known)
        self._output.prepare(decision)
        self._say(f"plan: {decision.plan.loads()}")
        return decision

    def _work(
        self,
        decision: Decision,
        pictures: Pictures,
        journal: Journal,
        earlier: Sequence[Record],
    ) -> Dealer:
        """What is not done yet, dealt by lease."""
        plan = remaining(decision.plan, earlier)
        rules = rules_of(self._settings)
        leases = Leases(plan, decision.judged.numbers(), self._clock(), rules, decision.terms.cost)
        dealer = Dealer(leases, pictures.of, journal, self._attempt, self._clock)
        dealer.restore(earlier)
        return dealer

    def _have_done(
        self,
        decision: Decision,
        work: Dealer,
        journal: Journal,
        earlier: Sequence[Record],
        launches: Launches,
    ) -> None:
        """Containers, and leases for them, until every picture has its row."""
        settings, clock = self._settings, self._clock
        failures = [Failure(**record.body) for record in earlier if record.kind == FAILED]

        def noted(failure: Failure) -> None:
            failures.append(failure)
            journal.append(Record(FAILED, asdict(failure)))

        containers = Containers(
            self._session,
            launches.of,
            decision.judged.numbers(),
            work,
            Patience(settings.container_wait, settings.lease_seconds, settings.failures),
            noted,
            self._listener.reasons,
            clock(),
        )
        containers.adopt(self._held, failures, clock())
        progress = Progress(settings.job_id, self._attempt, decision, work, containers, clock, failures)
        self._failures = failures
        self._listener.serve(work, progress.status, lambda: page(progress.status(), report_url(settings)))
        due = clock()
        while work.left:
            work.expire()
            self._listener.check()
            if (now := clock()) >= due:
                containers.step(now, progress.done())
                containers.excuse(clock() - now)
                due = now + (CALM_SECONDS if containers.settled else HEARTBEAT_SECONDS)
            time.sleep(HEARTBEAT_SECONDS)
        progress.storing()
        self._say_goodbye(containers)

    def _say_goodbye(self, containers: Containers) -> None:
        """Let the workers hear that nothing is left, and end those that do not; nothing is asked for any more."""
        until = self._clock() + GOODBYE_SECONDS
        containers.step(self._clock(), 1.0)
        while containers.running() and self._clock() < until:
            time.sleep(HEARTBEAT_SECONDS)
            containers.step(self._clock(), 1.0)
        containers.release()

    def _store(self, decision: Decision, work: Dealer, began_at: float) -> JobReport:
        if stored := self._output.stored():
            return stored
        records = read(self._filesystem, self._journal_folder)
        self._output.store(rows_by_node(records), decision.images)
        course = Course(
            started_at=datetime.fromtimestamp(began_at, UTC).isoformat(timespec="milliseconds"),
            tallies=work.tallies(),
            leases=work.timeline(),
            failures=self._failures,
            attempts=self._attempt,
            wall_seconds=self._clock(),
            first_result_seconds=work.first_result_seconds,
            note=note(decision),
        )
        report = self._remember(summarise(self._settings, decision, course))
        try:
            self._output.commit(report)
        except HadoopError:  # an attempt that was taken for dead may have been faster, or the answer was lost
            if stored := self._output.stored():
                return stored
            raise
        return report

    def _remember(self, report: JobReport) -> JobReport:
        """Write the speeds back as history; a service that is away now costs the history, not the results."""
        speeds = {node.node_name: node.images_per_second for node in report.nodes if node.images}
        try:
            speed_history.record(self._client, self._settings.network.program, self._settings.batch, speeds)
        except InfoError as error:
            lost = f"The speeds of this run could not be kept as history: {error}"
            return replace(report, note=f"{report.note} {lost}".strip())
        return report

    def _say(self, line: str) -> None:
        print(f"{self._settings.job_id} on {os.environ.get('NM_HOST', '?')}: {line}", flush=True)


def rules_of(settings: JobSettings) -> Rules:
    """How the leases of a job are given; however large batches are, one commit has to hold the rows of a lease."""
    return Rules(
        lease_seconds=settings.lease_seconds,
        most_images=min(FULL_BATCHES * settings.batch * settings.vcores, max(1, LARGEST_ROWS // settings.row_bytes)),
        at_once=settings.batch * settings.vcores,
        least_seconds=LEAST_SECONDS,
        steal=settings.steal,
    )


def _clock(began_at: float) -> Callable[[], float]:
    """Seconds since the job's work began, in whichever attempt; never goes back within one."""
    before, started = max(0.0, time.time() - began_at), time.monotonic()
    return lambda: before + time.monotonic() - started
