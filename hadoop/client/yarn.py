"""Applications of YARN as a client sees them: submit, follow, kill."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jpype

from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import configuration, java, java_errors
from hadoop.client.kerberos import tokens
from hadoop.errors import HadoopError, UnknownApplication
from hadoop.registration import Registration
from hadoop.rest.told import find_unfetched, find_unrenewed, without_restarts

REMEDY = "is YARN up? `nodewise cluster status` tells"
RECORDS = "org.apache.hadoop.yarn.api.records"
KIND = "NODEWISE"
"""The type of our applications, by which YARN tells them from others'."""
ATTEMPTS_WITHIN_MS = 600_000
INTERVAL, INTERVAL_MS = "yarn.resourcemanager.connect.retry-interval.ms", 30_000
"""After how long a NodeManager tries to reach a ResourceManager again, and what Hadoop takes where no file says it."""


@dataclass(frozen=True)
class Launch:
    """What a container runs: argv, environment, and the files of HDFS that it finds in its folder (name -> path).

    `archives` are unpacked into a folder of that name; nodes share them and the files in `shared`, so everyone must be
    able to read these.
    `resources` are of other types than memory and cores, such as {"yarn.io/gpu": 1}. Of what an application asks for,
    YARN gives the lowest `priority` first.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    files: Mapping[str, str]
    memory_mb: int
    vcores: int
    archives: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)
    priority: int = 1


@dataclass(frozen=True)
class Where:
    """Where an application may run: in a queue, and on nodes with a label, None for those that any application may use.

    With `master_hosts` its master runs on one of these and on no other host. With `master_prefers` it runs on one of
    these if one has room, and soon on any other: YARN knows no preference among `master_hosts`, so these are not looked
    at beside them. Of what waits in a queue, YARN takes the highest `priority` first.
    """

    queue: str = "default"
    node_label: str | None = None
    master_hosts: Sequence[str] = ()
    master_prefers: Sequence[str] = ()
    priority: int = 0


ANYWHERE = Where()


@dataclass(frozen=True)
class Application:
    """One application as the ResourceManager describes it; `final` is SUCCEEDED, FAILED, KILLED or UNDEFINED.

    `host`, `port` and `tracking_url` are those that the current attempt's master registered; before that they are
    "N/A", -1 and empty. `attempt` counts from 1, and is 0 before the first.
    """

    application_id: str
    name: str
    state: str
    final: str
    progress: float
    diagnostics: str
    host: str
    started_at: float
    tags: frozenset[str] = field(default_factory=frozenset)
    port: int = -1
    tracking_url: str = ""
    attempt: int = 0

    @property
    def has_ended(self) -> bool:
        """Whether the application has ended."""
        return self.state in ("FINISHED", "FAILED", "KILLED")


class Yarn:
    """A session with the ResourceManager. Every method raises HadoopError; `say` is told what takes time."""

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        with java_errors("connecting to YARN", REMEDY):
            self._client = java("org.apache.hadoop.yarn.client.api.YarnClient").createYarnClient()
            self._client.init(configuration())
            self._client.start()
            interval = configuration().getLong(INTERVAL, INTERVAL_MS) / 1000
        self._registration = Registration(interval, say)

    def close(self) -> None:
        """End the session."""
        self._client.stop()

    def running_nodes(self, node_label: str | None = None) -> list[str]:
        """Host names of the NodeManagers that take work, sorted: those with a label, or without an exclusive one.

        Where YARN knows no node, as in the moment after a ResourceManager took over, they are waited for.
        """
        with java_errors("asking YARN for its nodes", REMEDY):
            reports = self._running()
            labels = {
                str(report.getNodeId().getHost()): {str(one) for one in report.getNodeLabels() or () if str(one)}
                for report in reports
            }
            if node_label:
                return sorted(host for host, found in labels.items() if node_label in found)
            exclusive = {name for name, is_exclusive in self._node_labels() if is_exclusive}
            return sorted(host for host, found in labels.items() if not found & exclusive)

    def count_on_nodes(self, resource_type: str) -> dict[str, int | None]:
        """How many of a type of resource each node that takes work has in all, None where YARN does not count it."""
        with java_errors("asking YARN for its nodes", REMEDY):
            found = {
                str(report.getNodeId().getHost()): {
                    str(one.getName()): int(one.getValue()) for one in report.getCapability().getResources()
                }
                for report in self._running()
            }
        return {node: had.get(resource_type) for node, had in found.items()}

    def resource_types(self) -> list[str]:
        """The types of resource that the cluster counts, sorted: memory-mb, vcores, and whatever it was told of."""
        with java_errors("asking YARN for its types of resource", REMEDY):
            return sorted(str(one.getName()) for one in self._client.getResourceTypeInfo())

    def node_labels(self) -> list[str]:
        """The labels that nodes of the cluster can have, sorted."""
        with java_errors("asking YARN for its node labels", REMEDY):
            return sorted(name for name, _ in self._node_labels())

    def _running(self) -> list[Any]:
        """Java's reports of the nodes that take work."""
        known = self._registration.ask(self._client.getNodeReports, _has_registered)
        return [one for one in known if str(one.getNodeState()) == "RUNNING"]

    def _node_labels(self) -> list[tuple[str, bool]]:
        """Each label, and whether its nodes serve nobody but those who ask for it."""
        return [(str(one.getName()), bool(one.isExclusive())) for one in self._client.getClusterNodeLabels()]

    def new_application(self) -> tuple[str, Any]:
        """Ask for the id of a new application, and the context to submit it with."""
        with java_errors("asking YARN for an application id", REMEDY):
            context = self._client.createApplication().getApplicationSubmissionContext()
            return str(context.getApplicationId()), context

    def submit(
        self,
        context: Any,
        name: str,
        launch: Launch,
        filesystem: FileSystem,
        tags: Sequence[str] = (),
        attempts: int = 1,
        where: Where = ANYWHERE,
        before: Callable[[], object] = lambda: None,
        *,
        stands: bool = False,
    ) -> None:
        """Submit an application whose application master is `launch`; HadoopError also when there is no such queue.

        YARN starts it up to `attempts` times, not counting attempts that YARN itself ended (a lost node, a preemption);
        for one that `stands`, as it is up for weeks, up to so many times within ten minutes. The containers of an
        attempt go on in the next one. `before` is called last of all, and what it raises keeps the application from
        YARN.
        """
        with java_errors(f"submitting {name}", REMEDY):
            context.setApplicationName(name)
            context.setApplicationType(KIND)
            context.setQueue(where.queue)
            context.setPriority(java(f"{RECORDS}.Priority").newInstance(where.priority))
            if where.node_label:
                context.setNodeLabelExpression(where.node_label)
            started = launch_context(launch, filesystem)
            if named := where.master_hosts or where.master_prefers:
                requests = self._master_requests(launch, named, others_may=not where.master_hosts)
                context.setAMContainerResourceRequests(requests)
            else:
                context.setResource(resource(launch))
            context.setMaxAppAttempts(attempts)
            if stands:
                context.setAttemptFailuresValidityInterval(ATTEMPTS_WITHIN_MS)
            context.setKeepContainersAcrossApplicationAttempts(attempts > 1)
            context.setApplicationTags(java("java.util.HashSet")(java("java.util.Arrays").asList(list(tags))))
            self._give_tokens_and_submit(context, started, filesystem, before)

    def _give_tokens_and_submit(
        self, context: Any, started: Any, filesystem: FileSystem, before: Callable[[], object]
    ) -> None:
        """Submit what its master starts with, and tokens where Hadoop has Kerberos."""
        if not tokens.is_secure():
            context.setAMContainerSpec(started)
            self._submit(context, before)
            return
        with tokens.for_master(filesystem.java, self._client, configuration()) as given:
            started.setTokens(given)
            context.setAMContainerSpec(started)
            self._submit(context, before)

    def _submit(self, context: Any, before: Callable[[], object]) -> None:
        """YARN's client waits until the application is accepted, and some fail sooner than it looks."""
        before()
        try:
            self._client.submitApplication(context)
        except java("org.apache.hadoop.yarn.exceptions.YarnException") as error:
            said = str(error.getMessage())
            if why := find_unfetched(said):
                raise HadoopError(why) from error
            token, renewer = find_unrenewed(said)
            if token:
                raise HadoopError(
                    f"YARN cannot renew the {token} of this submission, which {renewer} may renew",
                    remedy="yarn.resourcemanager.principal in your yarn-site.xml must be the ResourceManager's own; if "
                    "it is, the ResourceManager's log tells why",
                ) from error
            raise

    def _master_requests(self, launch: Launch, hosts: Sequence[str], others_may: bool) -> Any:
        """What is asked for an application's master.

        Beside the hosts YARN wants a request for any node and one for each of their racks, which are strict unless
        others may have it. It takes one of these when it has looked at so many as its `node-locality-delay` and
        `rack-locality-additional-delay` are together, and without the second one of them at once.
        """
        reports = self._client.getNodeReports()
        racks = {str(one.getRackName()) for one in reports if str(one.getNodeId().getHost()) in hosts}
        asked = [_request("*", launch, relaxed=others_may)]
        asked += [_request(rack, launch, relaxed=others_may) for rack in sorted(racks)]
        asked += [_request(host, launch, relaxed=True) for host in hosts]
        return java("java.util.ArrayList")(java("java.util.Arrays").asList(asked))

    def application(self, application_id: str) -> Application:
        """The current report of one application; UnknownApplication when YARN does not know it."""
        doing = f"looking for application {application_id}"
        with java_errors(doing, REMEDY):
            try:
                return _application(self._client.getApplicationReport(_id(application_id)))
            except java("org.apache.hadoop.yarn.exceptions.ApplicationNotFoundException") as error:
                said = str(error.getMessage()).partition("\n")[0]
                raise UnknownApplication(
                    f"{doing} failed: {said}", remedy="`nodewise job list` shows those YARN knows"
                ) from error

    def applications(self) -> list[Application]:
        """All applications of this kind that YARN still remembers, the newest last."""
        with java_errors("asking YARN for its applications", REMEDY):
            applications = [_application(report) for report in self._client.getApplications(_kinds())]
        return sorted(applications, key=lambda one: one.started_at)

    def alive(self) -> list[Application]:
        """The applications of this kind that have not ended."""
        state = java(f"{RECORDS}.YarnApplicationState")
        states = java("java.util.EnumSet").range(state.NEW, state.RUNNING)
        with java_errors("asking YARN for what has not ended", REMEDY):
            return [_application(report) for report in self._client.getApplications(_kinds(), states)]

    def tagged(self, tag: str) -> list[Application]:
        """The applications of this kind that have a tag (YARN knows tags in small letters), the newest last."""
        request = java("org.apache.hadoop.yarn.api.protocolrecords.GetApplicationsRequest").newInstance(_kinds())
        request.setApplicationTags(java("java.util.Collections").singleton(tag))
        with java_errors(f"asking YARN for applications tagged {tag}", REMEDY):
            found = [_application(report) for report in self._client.getApplications(request)]
        return sorted(found, key=lambda one: one.started_at)

    def kill(self, application_id: str, why: str = "") -> None:
        """End an application and all its containers; its diagnostics tell why, beside who did it."""
        with java_errors(f"killing {application_id}", "`nodewise job list` shows those YARN knows"):
            self._client.killApplication(_id(application_id), why)


def _has_registered(report: Any) -> bool:
    """Whether a node is known because it has registered, not because a list of the operator's names it."""
    return str(report.getNodeState()) not in ("NEW", "DECOMMISSIONED")


def resource(launch: Launch) -> Any:
    """Memory, cores and whatever else a container needs; HadoopError names a type that the site files do not name."""
    resource = java(f"{RECORDS}.Resource").newInstance(launch.memory_mb, launch.vcores)
    for name, count in launch.resources.items():
        try:
            resource.setResourceValue(name, jpype.JLong(count))
        except java("org.apache.hadoop.yarn.exceptions.ResourceNotFoundException") as error:  # says much, but no name
            raise HadoopError(
                f"the site files in use name no type of resource {name}", remedy="add it to their resource-types.xml"
            ) from error
    return resource


def _request(name: str, launch: Launch, relaxed: bool) -> Any:
    priority = java(f"{RECORDS}.Priority").newInstance(0)
    return java(f"{RECORDS}.ResourceRequest").newInstance(priority, name, resource(launch), 1, relaxed)


def launch_context(launch: Launch, filesystem: FileSystem) -> Any:
    """The launch context by which a NodeManager places the files and runs the command."""
    files = java("java.util.HashMap")()
    for name, path in launch.files.items():
        files.put(name, _local_resource(filesystem, path, "FILE", "APPLICATION"))
    for name, path in launch.archives.items():
        files.put(name, _local_resource(filesystem, path, "ARCHIVE", "PUBLIC"))
    for name, path in launch.shared.items():
        files.put(name, _local_resource(filesystem, path, "FILE", "PUBLIC"))
    environment = java("java.util.HashMap")()
    for name, value in launch.environment.items():
        if name != "HADOOP_USER_NAME" or not tokens.is_secure():  # with Kerberos, tokens tell who it is
            environment.put(name, value)
    commands = java("java.util.ArrayList")([command_line(launch.argv)])
    return java(f"{RECORDS}.ContainerLaunchContext").newInstance(files, environment, commands, None, None, None)


def command_line(argv: Sequence[str]) -> str:
    """The command line that YARN runs for an argv, with its output in the container's log folder.

    YARN wraps the line in double quotes for a second shell, so what the outer one would expand is escaped.
    """
    inner = shlex.join(argv)
    for mark in ("\\", '"', "$", "`"):
        inner = inner.replace(mark, f"\\{mark}")
    return f"{inner} 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"


def _local_resource(filesystem: FileSystem, path: str, kind: str, visibility: str) -> Any:
    where = filesystem.path(path)
    status = filesystem.java.getFileStatus(where)
    url = java(f"{RECORDS}.URL").fromPath(where)
    return java(f"{RECORDS}.LocalResource").newInstance(
        url,
        java(f"{RECORDS}.LocalResourceType").valueOf(kind),
        java(f"{RECORDS}.LocalResourceVisibility").valueOf(visibility),
        status.getLen(),
        status.getModificationTime(),
    )


def _id(application_id: str) -> Any:
    try:
        return java(f"{RECORDS}.ApplicationId").fromString(application_id)
    except jpype.JException as error:
        raise HadoopError(
            f"{application_id!r} is not an application id", remedy="it looks like application_1700000000000_0001"
        ) from error


def _kinds() -> Any:
    return java("java.util.Collections").singleton(KIND)


def _application(report: Any) -> Application:
    return Application(
        application_id=str(report.getApplicationId()),
        name=str(report.getName()),
        state=str(report.getYarnApplicationState()),
        final=str(report.getFinalApplicationStatus()),
        progress=float(report.getProgress()),
        diagnostics=without_restarts(str(report.getDiagnostics() or "")),
        host=str(report.getHost()),
        started_at=int(report.getStartTime()) / 1000,
        tags=frozenset(str(tag) for tag in report.getApplicationTags()),
        port=int(report.getRpcPort()),
        tracking_url=str(report.getOriginalTrackingUrl() or ""),
        attempt=int(attempt.getAttemptId()) if (attempt := report.getCurrentApplicationAttemptId()) else 0,
    )
