"""An application master's session with the ResourceManager and the NodeManagers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jpype

from hadoop.client.filesystem import REMEDY as HDFS_REMEDY
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import configuration, java, java_errors
from hadoop.client.kerberos import tokens
from hadoop.client.yarn import RECORDS, REMEDY, Launch, launch_context, resource
from hadoop.errors import GivenUp, HadoopError

CLIENT = "org.apache.hadoop.yarn.client.api"
RM_WAIT_MS = 600_000
"""How long an application master waits for a ResourceManager that is away; its containers go on working."""
BEAT_SECONDS = 5.0
"""The longest time between two heartbeats; a ResourceManager gives up an application after ten times as long."""
ALONE_SECONDS = 1800.0
"""A program that has not asked for news for so long hangs; then heartbeats stop, so that YARN gives it up."""
_UNKNOWN = ("ApplicationAttemptNotFoundException", "InvalidToken")
"""What the ResourceManager throws at an attempt that it has given up, the second when its token is gone, too."""
LOST_STATES = ("LOST", "UNHEALTHY", "DECOMMISSIONED", "SHUTDOWN")


class Unprepared(HadoopError):
    """The files of a container could not be looked up in HDFS: nothing was started, and its node is not to blame."""


@dataclass(frozen=True)
class Granted:
    """A container that the ResourceManager granted: its id, its node, and the NodeManager's address (host:port).

    `request` is the number of the request; 0 when an earlier attempt asked for it.
    """

    container_id: str
    node_name: str
    log_address: str
    java: Any
    request: int = 0


@dataclass(frozen=True)
class Ended:
    """A container that has ended; `exit_status` is its process's, or one of YARN's negative numbers."""

    container_id: str
    exit_status: int
    diagnostics: str


@dataclass(frozen=True)
class Heartbeat:
    """What one exchange with the ResourceManager brought.

    `back_nodes` take work (again); `unhealthy_nodes` are the lost ones that reported a fault themselves, as of a disk.
    `wanted_back` are the ids of containers that YARN is about to end, because their room belongs to another queue.
    """

    granted: tuple[Granted, ...]
    ended: tuple[Ended, ...]
    lost_nodes: tuple[str, ...]
    back_nodes: tuple[str, ...] = ()
    unhealthy_nodes: tuple[str, ...] = ()
    wanted_back: tuple[str, ...] = ()

    def merge(self, later: Heartbeat) -> Heartbeat:
        """Combine two exchanges; the later news of a node replaces the earlier."""
        return Heartbeat(
            self.granted + later.granted,
            self.ended + later.ended,
            (*_leave_out(self.lost_nodes, later.back_nodes), *later.lost_nodes),
            (*_leave_out(self.back_nodes, later.lost_nodes), *later.back_nodes),
            (*_leave_out(self.unhealthy_nodes, later.back_nodes), *later.unhealthy_nodes),
            self.wanted_back + later.wanted_back,
        )


@contextmanager
def given_up() -> Iterator[None]:
    """Turn an error by which the ResourceManager says that it knows this attempt no more into GivenUp."""
    try:
        yield
    except HadoopError as error:
        cause = error.__cause__
        if isinstance(cause, jpype.JException) and str(cause.getClass().getSimpleName()) in _UNKNOWN:
            raise GivenUp(error.message, remedy=error.remedy) from cause
        raise


class Pulse:
    """Sends heartbeats by itself when nobody has asked for a while, and keeps the news for the next caller.

    Other users of the client that `exchange` uses must hold `lock`, because it serves one thread at a time.
    """

    def __init__(self, exchange: Callable[[float], Heartbeat], every: float = BEAT_SECONDS) -> None:
        self.lock = threading.RLock()
        self._exchange = exchange
        self._every = every
        self._kept = Heartbeat((), (), ())
        self._progress = 0.0
        self._asked = self._exchanged = time.monotonic()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to send heartbeats."""
        threading.Thread(target=self._run, name="pulse", daemon=True).start()

    def stop(self) -> None:
        """Stop; after this returns no exchange runs or begins."""
        self._stopped.set()
        with self.lock:
            return

    def ask(self, progress: float) -> Heartbeat:
        """All news since the last call. Errors of `exchange` are raised, and lose no news."""
        with self.lock:
            self._progress, self._asked = progress, time.monotonic()
            self._beat()
            news, self._kept = self._kept, Heartbeat((), (), ())
            return news

    def _run(self) -> None:
        while not self._stopped.wait(self._every):
            with self.lock:
                now = time.monotonic()
                due = now - self._exchanged >= self._every and now - self._asked < ALONE_SECONDS
                if due and not self._stopped.is_set():
                    self._try()

    def _try(self) -> None:
        try:
            self._beat()
        except HadoopError:
            return  # whoever asks next tries again, and hears it

    def _beat(self) -> None:
        self._kept = self._kept.merge(self._exchange(self._progress))
        self._exchanged = time.monotonic()


class MasterSession:
    """An application master's session from `register` to `leave`; heartbeats go on whatever the caller does.

    Every method raises HadoopError.
    """

    def __init__(self, filesystem: FileSystem) -> None:
        self._filesystem = filesystem
        self._requests: dict[int, Any] = {}
        self._pulse = Pulse(self._exchange)
        with java_errors("starting the application master's session", REMEDY):
            conf = configuration()
            conf.setLong("yarn.resourcemanager.connect.max-wait.ms", RM_WAIT_MS)
            self._rm = java(f"{CLIENT}.AMRMClient").createAMRMClient()
            self._rm.init(conf)
            self._rm.start()
            self._nm = java(f"{CLIENT}.NMClient").createNMClient()
            self._nm.init(conf)
            self._nm.start()

    def register(self, host: str, port: int, page: str = "") -> tuple[Granted, ...]:
        """Tell the ResourceManager where this application master's service and its `page` are.

        Returns the containers that an earlier attempt started and that still run.
        """
        with self._pulse.lock, java_errors("registering the application master", REMEDY):
            answer = self._rm.registerApplicationMaster(host, port, page)
            self._pulse.start()
            return tuple(_to_granted(one) for one in answer.getContainersFromPreviousAttempts())

    def ask(self, request: int, node_name: str, launch: Launch) -> None:
        """Ask for one container on exactly this node. `request` is the number of this request, from 1.

        YARN tells strict requests of one priority apart by this number only.
        """
        with self._pulse.lock, java_errors(f"asking for a container on {node_name}", REMEDY):
            wanted = (
                java(f"{CLIENT}.AMRMClient$ContainerRequest")
                .newBuilder()
                .capability(resource(launch))
                .nodes(jpype.JArray(jpype.JString)([node_name]))
                .priority(java(f"{RECORDS}.Priority").newInstance(launch.priority))
                .allocationRequestId(request)
                .relaxLocality(False)
                .build()
            )
            self._requests[request] = wanted
            self._rm.addContainerRequest(wanted)

    def withdraw(self, request: int) -> None:
        """Withdraw a request; nothing happens when its container was granted already."""
        with self._pulse.lock, java_errors("withdrawing a request", REMEDY):
            if wanted := self._requests.pop(request, None):
                self._rm.removeContainerRequest(wanted)

    def release(self, container_id: str) -> None:
        """Have YARN end a container."""
        with self._pulse.lock, java_errors(f"releasing {container_id}", REMEDY):
            self._rm.releaseAssignedContainer(java(f"{RECORDS}.ContainerId").fromString(container_id))

    def heartbeat(self, progress: float) -> Heartbeat:
        """Exchange news with the ResourceManager and return all since the last call; `progress` runs from 0 to 1."""
        return self._pulse.ask(progress)

    def _exchange(self, progress: float) -> Heartbeat:
        with given_up(), java_errors("talking to the ResourceManager", REMEDY):
            news = self._rm.allocate(progress)
            nodes = [(str(one.getNodeId().getHost()), str(one.getNodeState())) for one in news.getUpdatedNodes()]
            return Heartbeat(
                tuple(granted for one in news.getAllocatedContainers() if (granted := self._accept(one))),
                tuple(
                    Ended(str(one.getContainerId()), int(one.getExitStatus()), str(one.getDiagnostics()).strip())
                    for one in news.getCompletedContainersStatuses()
                ),
                tuple(node for node, state in nodes if state in LOST_STATES),
                tuple(node for node, state in nodes if state == "RUNNING"),
                tuple(node for node, state in nodes if state == "UNHEALTHY"),
                tuple(_wanted_back(news.getPreemptionMessage())),
            )

    def launch(self, granted: Granted, launch: Launch) -> None:
        """Start the command in a granted container; Unprepared when its files cannot be looked up in HDFS."""
        context = self._context(launch)
        with java_errors(f"starting a container on {granted.node_name}", "is its NodeManager up?"):
            self._nm.startContainer(granted.java, context)

    def leave(self, succeeded: bool, message: str, page: str = "") -> None:
        """Unregister with the outcome; clients read `message`, and the ResourceManager links to `page`.

        YARN ends the containers that still run.
        """
        self._pulse.stop()
        statuses = java(f"{RECORDS}.FinalApplicationStatus")
        with java_errors("leaving", REMEDY):
            self._rm.unregisterApplicationMaster(statuses.SUCCEEDED if succeeded else statuses.FAILED, message, page)
            self._nm.stop()
            self._rm.stop()

    def _context(self, launch: Launch) -> Any:
        try:
            with java_errors("looking at what a container needs", HDFS_REMEDY):
                context = launch_context(launch, self._filesystem)
                if tokens.is_secure():
                    context.setTokens(tokens.for_workers(self._filesystem.java))
                return context
        except HadoopError as error:
            raise Unprepared(str(error)) from error

    def _accept(self, container: Any) -> Granted | None:
        """Accept a container that answers a request, and withdraw that request; release any surplus."""
        request = int(container.getAllocationRequestId())
        wanted = self._requests.pop(request, None)
        if wanted is None:
            self._rm.releaseAssignedContainer(container.getId())
            return None
        self._rm.removeContainerRequest(wanted)
        return _to_granted(container, request)


def _leave_out(nodes: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(node for node in nodes if node not in others)


def _wanted_back(message: Any) -> Iterator[str]:
    """The containers that a message names, which has them by contract, strictly or both, and is mostly not there."""
    for part in (message.getContract(), message.getStrictContract()) if message else ():
        for one in part.getContainers() if part else ():
            yield str(one.getId())


def _to_granted(container: Any, request: int = 0) -> Granted:
    return Granted(
        str(container.getId()),
        str(container.getNodeId().getHost()),
        str(container.getNodeHttpAddress()),
        container,
        request,
    )
