"""The application master's work, whatever the kind of job: journal, containers, status, results.

What a job does, and which nodes are good at it, is not decided here: its kind does.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, replace
from types import MappingProxyType

from boxes.gpus.cards import Wanted
from environments.manifest import Requires
from hadoop.client.filesystem import FileSystem
from hadoop.client.master import Granted, MasterSession
from hadoop.client.yarn import Launch
from hadoop.errors import GivenUp, HadoopError
from infosvc.wire.client import InfoClient
from jobs.application import attempts
from jobs.application.attempts import FAILED, STARTED, clock_since
from jobs.application.containers import Containers, NodeState, Patience
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
    Runner,
    Seat,
    Then,
)
from jobs.application.job_record import JobRecord, keep
from jobs.application.job_spec import JobOptions, JobSpec
from jobs.application.journal import Journal, Record
from jobs.application.listener import Listener
from jobs.application.page import page
from jobs.application.status import UNIT, ContainerStatus, JobStatus, NodeStatus
from jobs.aside import Aside
from jobs.division import kept_work
from jobs.reports.report import Failure

HEARTBEAT_SECONDS = 0.25
CALM_SECONDS = 1.0
"""Between exchanges with YARN once every container runs: they cost the workers' own cores something."""
GOODBYE_SECONDS = 5.0
"""How long containers may take to end by themselves when all is done."""
MOST_NEWS = 5
PLANNING, RUNNING = "planning", "running"
"""States of a job before and after it is known what there is to do."""


class Application:
    """One attempt at one job. `run` returns its outcome; what a coordinator raises says why there is none.

    `held` are the containers that an earlier attempt has left.
    """

    def __init__(
        self,
        spec: JobSpec,
        filesystem: FileSystem,
        session: MasterSession,
        client: InfoClient,
        listener: Listener,
        number: int,
        held: Iterable[Granted],
    ) -> None:
        self._spec = spec
        self._filesystem = filesystem
        self._session = session
        self._client = client
        self._listener = listener
        self._number = number
        self._held = held
        self._state = PLANNING
        self._clock = clock_since(time.time())
        self._unix_seconds = clock_since(0.0)  # whoever sets the machine's clock changes nothing
        self._began: dict[int, float] = {}
        self._started: list[Container] = []
        self._containers: Containers | None = None
        self._status_now: Callable[[], JobStatus] = self._planning
        self._recorded = 0
        self._aside = Aside()

    def run(self, make: Callable[[Attempt], Coordinator | Runner]) -> Outcome:
        """Everything between registering and leaving."""
        self._listener.tell(self._planning, lambda: page(self._planning()))
        journal = Journal.open(self._filesystem, attempts.journal_folder(self._spec), self._number)
        attempt = self._begin(journal)
        self._publish_address()  # before the plan: workers of an earlier attempt hear that one is made
        work = make(attempt)
        if isinstance(work, Runner):
            outcome = self._run_alone(work)
            journal.close()
            return outcome
        self._coordinate(attempt, work)
        journal.close()
        return work.finish()

    def _run_alone(self, runner: Runner) -> Outcome:
        """The work itself, while YARN hears how far it is."""

        def status() -> JobStatus:
            return self._status(runner.progress(), ())

        self._state, self._status_now = RUNNING, status
        self._listener.serve(runner, status, lambda: page(status()))
        self._keep(JobRecord(status()))  # a runner that is killed leaves no other
        with ThreadPoolExecutor(1, thread_name_prefix="runner") as pool:
            work = pool.submit(runner.run)
            while not wait([work], CALM_SECONDS).done:
                self._hear_yarn(runner)
        return work.result()

    def _hear_yarn(self, runner: Runner) -> None:
        """Pass on what YARN wants of a runner; GivenUp when it wants nothing more, as where its node was lost.

        Nobody ends that container then, so it gets the SIGTERM that its NodeManager would send.
        """
        try:
            wanted_back = self._session.heartbeat(runner.progress().share).wanted_back
        except GivenUp:
            os.kill(os.getpid(), signal.SIGTERM)
            raise
        except HadoopError as error:  # the ResourceManager is away: the work goes on, and it is asked again
            print(error, flush=True)
            return
        if os.environ["CONTAINER_ID"] in wanted_back:
            runner.give_back()

    def is_last(self) -> bool:
        """Whether no other attempt is to be started when this one fails now; for what stands, YARN forgets old ones."""
        began = self._began if self._spec.stands else {}
        return attempts.is_last(self._number, self._spec.attempts, began, self._unix_seconds())

    def remember(self, succeeded: bool, message: str) -> None:
        """Keep what became of the job."""
        self._state = "succeeded" if succeeded else "failed"
        self._keep(JobRecord(self._status_now(), message)).result()

    def _remember_containers(self) -> None:
        """Keep which containers there are, as soon as there is a new one: `job logs` finds them there."""
        if len(self._started) > self._recorded:
            self._recorded = len(self._started)
            self._keep(JobRecord(self._status_now()))

    def _keep(self, record: JobRecord) -> Future[None]:
        """One after the other, and nobody waits for HDFS but at the end: it waits for a DataNode that is silent."""
        return self._aside.do(lambda: keep(self._filesystem, self._spec.owners_folder, record))

    def _begin(self, journal: Journal) -> Attempt:
        attempt = attempts.begin(self._spec, self._filesystem, self._client, journal, self._number)
        self._clock = attempt.clock
        self._began = {**attempts.begin_times(attempt.earlier), self._number: self._unix_seconds()}
        self._started = [_container(record) for record in attempt.earlier if record.kind == STARTED]
        return attempt

    def _publish_address(self) -> None:
        """Say in HDFS where this application master is: containers read it again when the one they know is silent."""
        put(self._filesystem, master_file(self._spec), json.dumps({"address": self._listener.address}).encode())

    def _coordinate(self, attempt: Attempt, coordinator: Coordinator) -> None:
        """Containers until all is done."""
        spec = self._spec
        requires, gpus = Requires(**spec.requires), Wanted(**spec.gpus)
        knowledge = Knowledge(self._filesystem, self._client, spec.node_label, requires, gpus)
        roles = [as_ordered(role, self._spec) for role in coordinator.roles(knowledge)]

        def note(failure: Failure) -> None:
            attempt.failures.append(failure)
            attempt.journal.append(Record(FAILED, asdict(failure)))

        containers = self._containers = Containers(
            self._session,
            roles,
            _Noting(coordinator, attempt, self._started),
            Patience(self._spec.container_wait, self._spec.failures),
            note,
            self._listener.reasons,
            self._clock(),
        )
        known = {one.container_id: one.seat for one in self._started}
        containers.adopt(self._held, tuple(attempt.failures), self._clock(), known)

        def status() -> JobStatus:
            return self._status(coordinator.progress(), attempt.failures)

        self._state, self._status_now = RUNNING, status
        self._listener.serve(coordinator, status, lambda: page(status(), coordinator.report_page()))
        self._turn(coordinator, containers)
        self._state = "storing"
        kept_work.mark(self._filesystem, self._spec.staging, self._clock())
        self._say_goodbye(containers)

    def _turn(self, coordinator: Coordinator, containers: Containers) -> None:
        due = self._clock()
        while not (progress := coordinator.progress()).is_done:
            coordinator.tick()
            self._listener.check()
            if (now := self._clock()) >= due:
                containers.step(now, progress.share)
                self._remember_containers()
                containers.excuse(self._clock() - now)
                due = now + (CALM_SECONDS if containers.is_settled else HEARTBEAT_SECONDS)
            time.sleep(HEARTBEAT_SECONDS)

    def _say_goodbye(self, containers: Containers) -> None:
        """Let the containers hear that nothing is left, and end those that do not; nothing is asked for any more."""
        until = self._clock() + GOODBYE_SECONDS
        containers.step(self._clock(), 1.0)
        while containers.running() and self._clock() < until:
            time.sleep(HEARTBEAT_SECONDS)
            containers.step(self._clock(), 1.0)
        containers.release()

    def _planning(self) -> JobStatus:
        """While there is nothing to do yet."""
        return self._status(Progress(0, 0, UNIT), ())

    def _status(self, progress: Progress, failures: Sequence[Failure]) -> JobStatus:
        states = self._containers.states() if self._containers else {}
        state = self._state if progress.is_planned or self._state != RUNNING else PLANNING
        return status_of(self._spec, state, self._number, self._clock(), progress, failures, states, self._started)


class _Noting:
    """A coordinator whose containers stand in the journal before it hears of them."""

    def __init__(self, coordinator: Coordinator, attempt: Attempt, started: list[Container]) -> None:
        self._journal = attempt.journal
        self._started = started
        self._tell_start = coordinator.on_start
        self.on_end: Callable[[Container, End], Then] = coordinator.on_end
        self.last_heard: Callable[[Seat], float] = coordinator.last_heard
        self.starting: Callable[[Seat], None] = coordinator.starting
        self.pop_excused: Callable[[], Sequence[str]] = coordinator.pop_excused

    def on_start(self, container: Container) -> None:
        """A container was started, or goes on from an earlier attempt."""
        if container not in self._started:
            self._journal.append(Record(STARTED, asdict(_container_status(container))))
            self._started.append(container)
        self._tell_start(container)


def status_of(
    spec: JobSpec,
    state: str,
    attempt: int,
    seconds: float,
    progress: Progress,
    failures: Sequence[Failure],
    seats: Mapping[str, NodeState] = MappingProxyType({}),
    started: Sequence[Container] = (),
) -> JobStatus:
    """How far a job is, from what its kind tells and what is known of its containers; `seats` are by node."""
    nodes = tuple(_nodes(progress, seats))
    speed = sum(node.rate for node in nodes if node.state == "working")
    news = [*(_news(failure) for failure in failures), *progress.news]
    return JobStatus(
        job_id=spec.job_id,
        state=state,
        attempt=attempt,
        of=progress.of,
        done=progress.done,
        errors=sum(node.errors for node in nodes),
        seconds=seconds,
        seconds_left=(progress.of - progress.done) / speed if speed else None,
        nodes=nodes,
        news=tuple(news[-MOST_NEWS:]),
        kind=spec.kind,
        unit=progress.unit,
        containers=tuple(map(_container_status, started)),
        section=progress.section,
    )


def _nodes(progress: Progress, seats: Mapping[str, NodeState]) -> Iterable[NodeStatus]:
    """What the kind tells of each node, and what is known of its container."""
    for name in sorted({*progress.nodes, *seats}):
        did, seat = progress.nodes.get(name, NodeProgress()), seats.get(name)
        yield NodeStatus(
            node_name=name,
            state=_state(did, seat, progress),
            planned=did.planned,
            done=did.done,
            errors=did.errors,
            local=did.local,
            running=did.running,
            rate=did.rate,
            failures=seat.failures if seat else 0,
            said=did.said or (seat.said if seat else ""),
        )


def as_ordered(role: Role, options: JobOptions) -> Role:
    """A role whose containers ask for what the job's owner ordered for each, beside what they need by themselves."""

    def launch(seat: Seat) -> Launch:
        asked = role.launch(seat)
        return replace(asked, resources={**options.resources, **asked.resources}, priority=options.priority)

    return replace(role, launch=launch)


def master_file(spec: JobSpec) -> str:
    """The file in HDFS that says where the application master is now: {"address": "http://host:port"}."""
    return f"{spec.staging}/master.json"


def put(filesystem: FileSystem, name: str, content: bytes) -> None:
    """Write the whole file or none, for this user alone."""
    filesystem.write(f"{name}.new", content, mode=0o600)
    filesystem.rename(f"{name}.new", name, overwrite=True)


def say(job_id: str, line: str) -> None:
    """Print a line into the application master's own log."""
    print(f"{job_id} on {os.environ.get('NM_HOST', '?')}: {line}", flush=True)


def _container(record: Record) -> Container:
    one = ContainerStatus(**record.body)
    return Container(Seat(one.role, one.index, one.node_name), one.container_id, one.log_address)


def _container_status(container: Container) -> ContainerStatus:
    seat = container.seat
    return ContainerStatus(seat.role, seat.index, seat.node_name, container.container_id, container.log_address)


def _state(did: NodeProgress, seat: NodeState | None, progress: Progress) -> str:
    """Of a node: as its container is, or, of a runner, as its work is."""
    if progress.share >= 1:
        return "done"
    if seat:
        return seat.state
    return "working" if did.running else "done"


def _news(failure: Failure) -> str:
    why = f": {failure.said}" if failure.said else ""
    return f"{failure.seconds:.0f} s: {failure.node_name} {failure.kind}{why}"
