"""The seam between an application on YARN and a kind of job: what the one asks, and what the other answers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

from boxes.gpus.cards import Wanted
from environments.manifest import Requires
from hadoop.client.filesystem import FileSystem
from hadoop.client.yarn import Launch, Yarn
from infosvc.wire.client import InfoClient
from jobs.application.calls import Request
from jobs.application.environments.cached import find_ready_seconds
from jobs.application.environments.unfit import find_unfit
from jobs.application.exits import Exit
from jobs.application.job_spec import JobSpec
from jobs.application.journal import Record
from jobs.division.gpu_nodes import GPU, find_lacking
from jobs.division.start_history import recorded_starts
from jobs.reports.report import Failure


class Log(Protocol):
    """Where what has to survive is recorded."""

    def append(self, record: Record) -> None:
        """Durable on return; HadoopError if it cannot be."""


@dataclass(frozen=True)
class Attempt:
    """What one attempt at being a job's application master has at hand; `number` counts from 1.

    `earlier` are the journal's records of the attempts before, without payloads; `clock` tells the seconds since the
    job's work began, in whichever attempt. `failures` grows while the job runs. `journal_folder` is for reading all.
    """

    number: int
    spec: JobSpec
    filesystem: FileSystem
    client: InfoClient
    journal: Log
    journal_folder: str
    earlier: Sequence[Record]
    began_at: float
    clock: Callable[[], float]
    failures: list[Failure] = field(default_factory=list)


class Knowledge:
    """What is known of the cluster now; every method raises HadoopError."""

    def __init__(
        self,
        filesystem: FileSystem,
        client: InfoClient,
        node_label: str | None = None,
        requires: Requires | None = None,
        gpus: Wanted | None = None,
    ) -> None:
        self.filesystem = filesystem
        self.client = client
        self._node_label = node_label
        self._requires = requires or Requires()
        self._gpus = gpus or Wanted()

    def nodes(self) -> list[str]:
        """The nodes that take work of this job, and have what it requires, sorted; InfoError if that is not known."""
        yarn = Yarn(say=partial(print, flush=True))
        try:
            running = yarn.running_nodes(self._node_label)
            counted = yarn.count_on_nodes(GPU) if self._gpus.count else {}
        finally:
            yarn.close()
        unfit = find_unfit(self.client, self._requires, running)
        lacking = find_lacking(self.client, self._gpus, counted)
        return [node for node in running if node not in unfit and node not in lacking]

    def start_seconds(self, parts: Mapping[str, str], nodes: Sequence[str], program: str) -> dict[str, float]:
        """The seconds until nodes can begin that cannot at once: they fetch what they lack of these parts of an
        environment, and load the program.

        InfoError or JobError where that cannot be known.
        """
        fetching = find_ready_seconds(self.client, self.filesystem, parts, nodes)
        loading = recorded_starts(self.client, program, nodes)
        return {node: fetching.get(node, 0.0) + loading.get(node, 0.0) for node in sorted({*fetching, *loading})}

    def racks(self) -> dict[str, str]:
        """By node, its rack as HDFS has it."""
        from hadoop.client.listing import Listing  # brings Protocol Buffers in, which no task needs

        return dict(Listing(self.filesystem).racks())


@dataclass(frozen=True)
class Seat:
    """What a container is for: the number `index` of a role, on this node."""

    role: str
    index: int
    node_name: str


class Container(NamedTuple):
    """A container that runs: its seat, its id, and its NodeManager's host:port, which serves its log."""

    seat: Seat
    container_id: str
    log_address: str


@dataclass(frozen=True)
class End:
    """How a container ended: `status` is the exit code of its program, or one of YARN's negative numbers."""

    exit: Exit
    status: int
    said: str = ""

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.exit.value}: {self.said}" if self.said else self.exit.value


class Then(Enum):
    """What follows the end of a container."""

    AGAIN = "it is asked for again, and its node is to blame if the exit says so"
    EXPECTED = "it is asked for again, and nobody is to blame"
    DONE = "it is not needed any more"


@dataclass(frozen=True)
class Role:
    """Containers of one sort: number 0 on the first of `nodes`, number 1 on the second, and so on.

    `launch` says what a container runs, and what it needs. `silence` is for programs that call the application master:
    one that says nothing for so many seconds is ended and asked for again. One that `ends_alone` may do so while there
    is no application master, and the next one counts that. A node that is left out, or late, gives its seat to the
    first of `spares`. Numbers in `done` need no container any more. The job ends when no node of the role is left that
    could go on, and with `all_needed` when one is missing. `explain` makes of what is said of those nodes why it ends.
    `admit` says which nodes the role takes of those that are new in the cluster: they get further seats, up to `most`,
    and are spares then. It must not wait, as it is asked again for those that it has not taken.
    A role that `stands` never ends the job: its nodes are waited for, those that were left out are tried again after a
    while, and what failed long ago counts no more.
    """

    name: str
    nodes: Sequence[str]
    launch: Callable[[Seat], Launch]
    silence: float | None = None
    ends_alone: bool = False
    spares: Sequence[str] = ()
    all_needed: bool = False
    done: frozenset[int] = frozenset()
    most: int = 0
    admit: Callable[[Sequence[str]], Sequence[str]] | None = None
    explain: Callable[[str], str] | None = None
    stands: bool = False


@dataclass(frozen=True)
class NodeProgress:
    """What a node has done, in the units of the job."""

    planned: int = 0
    done: int = 0
    errors: int = 0
    local: int = 0
    running: int = 0
    rate: float = 0.0
    said: str = ""


@dataclass(frozen=True)
class Progress:
    """`done` of `of` units (such as images); `section` is what the kind of job tells beyond that, as JSON.

    While it `is_open` more may come: the job is not done, even where nothing is left, and nobody knows its share.
    While it `is_planned` is False, nobody knows yet what there is to do; it is open then.
    """

    done: int
    of: int
    unit: str
    nodes: Mapping[str, NodeProgress] = field(default_factory=dict)
    news: Sequence[str] = ()
    section: Mapping[str, Any] | None = None
    is_open: bool = False
    is_planned: bool = True

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.done / self.of if self.of and not self.is_open else 0.0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left, as also where there was nothing to do."""
        return self.done >= self.of and not self.is_open


@dataclass(frozen=True)
class Outcome:
    """A job that succeeded: one sentence, and where a browser finds its report, if anywhere."""

    message: str
    page: str = ""


class Hearing:
    """What answers those who show a job's token: containers, and the job's owner."""

    calls: ClassVar[Mapping[str, int]] = {}
    """The paths that `hear` answers, and the most bytes of a body of each."""

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None:
        """Answer a call; Refused, Gone, or NotYet and HadoopError, after which it is made again."""
        raise NotImplementedError(call)

    def hang_up(self, connection: object) -> None:  # noqa: ARG002 of those that do not look at connections
        """A connection has ended; that of a program that was killed ends at once."""
        return


class Coordinator(Hearing, ABC):
    """A kind of job that has containers. It is made with an Attempt; JobError from any method ends the job.

    `roles` is called once, then everything else, `hear` and `progress` by several threads at once. The job is done
    when `progress` says so; then `finish` is called. What a later attempt has to know stands in the attempt's journal.
    """

    @abstractmethod
    def roles(self, knowledge: Knowledge) -> Sequence[Role]:
        """Which containers the job needs."""

    @abstractmethod
    def on_start(self, container: Container) -> None:
        """A container was started, or goes on from an earlier attempt."""

    @abstractmethod
    def on_end(self, container: Container, end: End) -> Then:
        """A container is no more."""

    @abstractmethod
    def progress(self) -> Progress:
        """How far the job is."""

    @abstractmethod
    def finish(self) -> Outcome:
        """Put the results in place, unless an earlier attempt has done so."""

    def last_heard(self, seat: Seat) -> float:  # noqa: ARG002 of those that do not listen
        """The second at which a container of this seat last said anything, -inf if never."""
        return -math.inf

    def starting(self, seat: Seat) -> None:  # noqa: ARG002 as above
        """A seat's container is on its way, or its program has not begun: what is meant for it stays its own."""
        return

    def pop_excused(self) -> Sequence[str]:
        """Containers whose end turned out to be no fault of their nodes, each told once; asked for roles that stand."""
        return ()

    def tick(self) -> None:
        """A moment has passed."""
        return

    def report_page(self) -> str:
        """Where the job's report will be, a URL or a path; "" where there is none."""
        return ""


class Runner(Hearing, ABC):
    """A kind of job without containers: the application master is itself the work. It is made with an Attempt."""

    @abstractmethod
    def run(self) -> Outcome:
        """Do the work; JobError tells why it cannot be done, anything else is left to the next attempt."""

    @abstractmethod
    def progress(self) -> Progress:
        """How far the job is; asked by other threads meanwhile."""

    def give_back(self) -> None:
        """YARN is about to end the container, whose room belongs to another queue; it starts another attempt later."""
        return
