"""One container on each planned node, however often it has to be asked for: from asking to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from hadoop.client.master import Ended, Granted, Heartbeat, MasterSession, Unprepared
from hadoop.client.yarn import Launch
from hadoop.errors import HadoopError
from jobs.application.exits import Exit, exit_of
from jobs.application.logs import log_line
from jobs.errors import JobError
from jobs.reports.report import Failure

SILENCES = 6
"""A container whose worker is silent for so many times the length of a lease is ended and asked for again."""


class Work(Protocol):
    """What has to know which container works for a node now; `ended` says whether its pictures may be the cause."""

    def joined(self, node: str, container: str, capability: float) -> None:
        """A container was started: it may take work."""

    def starting(self, node: str) -> None:
        """Its container is on its way, or its worker has not begun: it keeps its part."""

    def ended(self, node: str, container: str, blame: bool, reason: str) -> object:
        """A container is no more: what it held is given back."""

    def suspects(self, node: str, container: str) -> bool:
        """Whether what it works on now is suspected of ending containers."""

    def heard(self, node: str) -> float:
        """The second at which its worker last said anything, -inf if never."""


@dataclass(frozen=True)
class Patience:
    """How many seconds a node may take to give its container, and a lease lasts; how many failures leave it out."""

    container_wait: float
    lease_seconds: float
    failures: int

    @property
    def silence(self) -> float:
        """Seconds that a worker may be silent."""
        return SILENCES * self.lease_seconds

    @property
    def first_word(self) -> float:
        """Seconds until a worker that was started has to say anything: what it needs is laid out and loaded first."""
        return max(self.container_wait, self.silence)


@dataclass
class _Node:
    """A node of the plan: asked for by number `request`, or running `container_id` since `since`, or without one."""

    capability: float
    since: float
    request: int = 0
    container_id: str | None = None
    state: str = "waiting"
    failures: int = 0
    said: str = ""


class Containers:
    """Asks for what is missing, and leaves a node out that fails too often; `step` is one exchange with YARN.

    `note` hears every failure, `reasons` what a worker said before it ended, by container.
    """

    def __init__(
        self,
        session: MasterSession,
        launch: Callable[[str], Launch],
        capability: Mapping[str, float],
        work: Work,
        patience: Patience,
        note: Callable[[Failure], None],
        reasons: Mapping[str, str],
        now: float,
    ) -> None:
        """Nodes with a capability of 0 get nothing, and no container."""
        self._session = session
        self._launch = launch
        self._work = work
        self._patience = patience
        self._note = note
        self._reasons = reasons
        self._asked = 0
        self._unhealthy: set[str] = set()
        self._nodes = {node: _Node(value, now) for node, value in sorted(capability.items()) if value > 0}

    def adopt(self, held: Iterable[Granted], failures: Iterable[Failure], now: float) -> None:
        """Go on with the containers of an earlier attempt, and with what it had to note."""
        for failure in failures:
            if node := self._nodes.get(failure.node_name):
                self._blame(node, failure)
        for granted in held:
            node = self._nodes.get(granted.node_name)
            if node is None or node.container_id or node.state == "left out":
                self._session.release(granted.container_id)
            else:
                self._started(granted, node, now)

    def step(self, now: float, progress: float) -> None:
        """One exchange with YARN; JobError when no node is left that could do anything.

        `progress` runs from 0 to 1, and at 1 nothing is asked for any more.
        """
        if progress >= 1:
            self._say_goodbye(self._session.heartbeat(1.0))
            return
        for node_name, node in self._nodes.items():
            if node.state == "waiting":
                self._ask(node_name, node)
        news = self._session.heartbeat(progress)
        self._unhealthy = (self._unhealthy | set(news.unhealthy_nodes)) - set(news.back_nodes)
        for granted in news.granted:
            self._take(granted, now)
        for ended in news.ended:
            self._end(ended, now)
        self._look_at_nodes(news, now)
        self._look_at_silent(now)
        self._keep_parts(now)
        if all(self._is_hopeless(node, now) for node in self._nodes.values()):
            raise JobError(self._nothing_left())

    def excuse(self, seconds: float) -> None:
        """Time in which YARN did not answer is no delay of the nodes that wait for a container."""
        for node in self._nodes.values():
            if not node.container_id:
                node.since += seconds

    @property
    def settled(self) -> bool:
        """Whether there is nothing that YARN is to do."""
        return all(node.state in ("working", "left out") for node in self._nodes.values())

    def running(self) -> int:
        """Containers that have been started and have not ended."""
        return sum(node.container_id is not None for node in self._nodes.values())

    def states(self) -> dict[str, tuple[str, int, str]]:
        """By node: its state as `NodeStatus` has it, its failures, and what it said last."""
        return {name: (node.state, node.failures, node.said) for name, node in self._nodes.items()}

    def release(self) -> None:
        """Have YARN end what still runs."""
        for node in self._nodes.values():
            if node.container_id:
                self._session.release(node.container_id)

    def _say_goodbye(self, news: Heartbeat) -> None:
        """All is done: who ends now is no failure, and who comes now is not needed."""
        for granted in news.granted:
            self._session.release(granted.container_id)
        gone = {ended.container_id for ended in news.ended}
        for node in self._nodes.values():
            self._session.withdraw(node.request)
            node.state = "done"
            if node.container_id in gone:
                node.container_id = None

    def _ask(self, node_name: str, node: _Node) -> None:
        self._asked += 1
        node.request, node.state = self._asked, "starting"
        self._session.ask(node.request, node_name, self._launch(node_name))

    def _take(self, granted: Granted, now: float) -> None:
        node = self._nodes[granted.node_name]
        if node.request != granted.request:  # withdrawn while it was on its way
            self._session.release(granted.container_id)
            return
        try:
            self._session.launch(granted, self._launch(granted.node_name))
        except Unprepared as error:  # whatever node it is on: asked for again until it has waited too long
            self._session.release(granted.container_id)
            node.request, node.state, node.said = 0, "waiting", str(error)
        except HadoopError as error:
            self._session.release(granted.container_id)
            self._fail(granted.node_name, granted.container_id, Exit.NODE_LOST, str(error), now)
        else:
            self._started(granted, node, now)

    def _started(self, granted: Granted, node: _Node, now: float) -> None:
        print(log_line(granted.container_id, granted.log_address), flush=True)
        node.container_id, node.since, node.request, node.state = granted.container_id, now, 0, "working"
        self._work.joined(granted.node_name, granted.container_id, node.capability)

    def _end(self, ended: Ended, now: float) -> None:
        found = next((name for name, node in self._nodes.items() if node.container_id == ended.container_id), None)
        if found is None:
            return  # released by us, or of an earlier attempt
        reason = self._reasons.get(ended.container_id) or ended.diagnostics.split("\n", maxsplit=1)[0]
        kind = exit_of(ended.exit_status)
        if kind is Exit.NODE_LOST and found in self._unhealthy:
            kind = Exit.DISK  # YARN takes the node's containers away before it would say so of one of them
        self._fail(found, ended.container_id, kind, reason, now)

    def _fail(self, node_name: str, container_id: str, kind: Exit, said: str, now: float) -> None:
        node = self._nodes[node_name]
        expected = kind.blames and self._work.suspects(node_name, container_id)
        self._work.ended(node_name, container_id, kind.blames, f"{kind.value}: {said}" if said else kind.value)
        node.container_id, node.request, node.since, node.state = None, 0, now, "waiting"
        failure = Failure(node_name, container_id, kind.value, now, said, counts=kind.counts and not expected)
        self._blame(node, failure)
        self._note(failure)

    def _blame(self, node: _Node, failure: Failure) -> None:
        node.said = f"{failure.kind}: {failure.said}" if failure.said else failure.kind
        node.failures += failure.counts
        if node.failures >= self._patience.failures:
            node.state = "left out"

    def _look_at_nodes(self, news: Heartbeat, now: float) -> None:
        for node_name in news.lost_nodes:
            node = self._nodes.get(node_name)
            if node and node.state == "starting":
                self._session.withdraw(node.request)
                self._fail(node_name, "", Exit.NODE_LOST, "before its container started", now)
            if node and node.state == "waiting":
                node.state, node.since = "lost", now
        for node_name in news.back_nodes:
            node = self._nodes.get(node_name)
            if node and node.state == "lost":
                node.state, node.since = "waiting", now

    def _look_at_silent(self, now: float) -> None:
        for node_name, node in self._nodes.items():
            if not node.container_id:
                continue
            heard = self._work.heard(node_name)
            silent = now - max(heard, node.since)
            if silent > (self._patience.silence if heard >= node.since else self._patience.first_word):
                self._session.release(node.container_id)
                self._fail(node_name, node.container_id, Exit.SILENT, f"for {silent:.0f} s", now)

    def _keep_parts(self, now: float) -> None:
        """Nodes whose container is on its way or has just been started are not taken for slow ones."""
        for node_name, node in self._nodes.items():
            asked = node.state == "starting" and now - node.since <= self._patience.container_wait
            if asked or (node.container_id and self._work.heard(node_name) < node.since):
                self._work.starting(node_name)

    def _is_hopeless(self, node: _Node, now: float) -> bool:
        """Whether nobody would wait for this node: it failed too often, or is lost or full for long."""
        late = not node.container_id and now - node.since > self._patience.container_wait
        return late or node.state == "left out"

    def _nothing_left(self) -> str:
        late = f"no container within {self._patience.container_wait:.0f} s, the node is full or lost"
        said = "; ".join(f"{name}: {node.said or late}" for name, node in self._nodes.items())
        return (
            f"no node is left that could go on ({said}): `nodewise job logs` shows what the workers printed, "
            "`nodewise cluster status` which nodes are up"
        )
