"""An application master's session with the ResourceManager and the NodeManagers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jpype

from hadoop.filesystem import FileSystem
from hadoop.jvm import configuration, java, java_errors
from hadoop.yarn import RECORDS, REMEDY, Launch, launch_context, resource

CLIENT = "org.apache.hadoop.yarn.client.api"
LOST_STATES = ("LOST", "UNHEALTHY", "DECOMMISSIONED", "SHUTDOWN")


@dataclass(frozen=True)
class Granted:
    """A container the ResourceManager gave: its id, its node, and where that node's NodeManager serves its log."""

    container_id: str
    node_name: str
    log_address: str
    java: Any


@dataclass(frozen=True)
class Ended:
    """A container that is no more; `exit_status` is the process's, or one of YARN's negative numbers."""

    container_id: str
    exit_status: int
    diagnostics: str


@dataclass(frozen=True)
class Heartbeat:
    """What one exchange with the ResourceManager brought."""

    granted: tuple[Granted, ...]
    ended: tuple[Ended, ...]
    lost_nodes: tuple[str, ...]


class MasterSession:
    """From registering to leaving. Every method raises HadoopError."""

    def __init__(self, filesystem: FileSystem) -> None:
        self._filesystem = filesystem
        self._requests: dict[int, Any] = {}
        with java_errors("starting the application master's session", REMEDY):
            conf = configuration()
            self._rm = java(f"{CLIENT}.AMRMClient").createAMRMClient()
            self._rm.init(conf)
            self._rm.start()
            self._nm = java(f"{CLIENT}.NMClient").createNMClient()
            self._nm.init(conf)
            self._nm.start()

    def register(self, host: str, port: int) -> None:
        """Tell the ResourceManager that this application master is there, with the address of its own service."""
        with java_errors("registering the application master", REMEDY):
            self._rm.registerApplicationMaster(host, port, "")

    def ask(self, request: int, node_name: str, launch: Launch) -> None:
        """Ask for one container on exactly this node. `request` is this request's own number, from 1.

        Strict requests of equal priority are told apart by that number alone.
        """
        wanted = (
            java(f"{CLIENT}.AMRMClient$ContainerRequest")
            .newBuilder()
            .capability(resource(launch))
            .nodes(jpype.JArray(jpype.JString)([node_name]))
            .priority(java(f"{RECORDS}.Priority").newInstance(1))
            .allocationRequestId(request)
            .relaxLocality(False)
            .build()
        )
        self._requests[request] = wanted
        with java_errors(f"asking for a container on {node_name}", REMEDY):
            self._rm.addContainerRequest(wanted)

    def heartbeat(self, progress: float) -> Heartbeat:
        """Exchange news; `progress` runs from 0 to 1. Call it at least every few seconds."""
        with java_errors("talking to the ResourceManager", REMEDY):
            news = self._rm.allocate(progress)
            return Heartbeat(
                tuple(granted for one in news.getAllocatedContainers() if (granted := self._accept(one))),
                tuple(
                    Ended(str(one.getContainerId()), int(one.getExitStatus()), str(one.getDiagnostics()).strip())
                    for one in news.getCompletedContainersStatuses()
                ),
                tuple(
                    str(one.getNodeId().getHost())
                    for one in news.getUpdatedNodes()
                    if str(one.getNodeState()) in LOST_STATES
                ),
            )

    def launch(self, granted: Granted, launch: Launch) -> None:
        """Start the command in a container that was given."""
        with java_errors(f"starting a container on {granted.node_name}", "is its NodeManager up?"):
            self._nm.startContainer(granted.java, launch_context(launch, self._filesystem))

    def leave(self, succeeded: bool, message: str) -> None:
        """Unregister with the outcome; `message` is what the client reads. Running containers are ended by YARN."""
        statuses = java(f"{RECORDS}.FinalApplicationStatus")
        with java_errors("leaving", REMEDY):
            self._rm.unregisterApplicationMaster(statuses.SUCCEEDED if succeeded else statuses.FAILED, message, "")
            self._nm.stop()
            self._rm.stop()

    def _accept(self, container: Any) -> Granted | None:
        """Take a container that answers a request, and withdraw that request; give back any surplus."""
        request = int(container.getAllocationRequestId())
        wanted = self._requests.pop(request, None)
        if wanted is None:
            self._rm.releaseAssignedContainer(container.getId())
            return None
        self._rm.removeContainerRequest(wanted)
        return Granted(
            str(container.getId()), str(container.getNodeId().getHost()), str(container.getNodeHttpAddress()), container
        )
