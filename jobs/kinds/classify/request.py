"""What a user asks for when images are to be classified, checked, and as an order for YARN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

from hadoop.client.listing import Listing
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from jobs.application.environments import store
from jobs.application.job_spec import JobOptions
from jobs.application.submit import InfoAccess, MasterNeeds, Order, Submitter, master_memory_mb
from jobs.division import capability, decision_store, judging, speed_history
from jobs.engines import check_engine
from jobs.engines.network import Network, choose
from jobs.errors import JobError
from jobs.kinds.classify import model_check
from jobs.kinds.classify.settings import ClassifySettings
from locality.policies import policy
from locality.program_names import FORMER

KIND = "classify"


@dataclass(frozen=True)
class Request:
    """What the user asks for; in the settings, files are those of this machine, and paths of HDFS may have schemes.

    `files` says how many there are in the input, once that was looked at.
    """

    settings: ClassifySettings
    options: JobOptions = field(default_factory=JobOptions)
    access: InfoAccess = field(default_factory=InfoAccess)
    files: int = 0

    @cached_property
    def network(self) -> Network:
        """What looks at the images; JobError when there is no such thing."""
        check_engine(FORMER.get(self.settings.engine, self.settings.engine).partition(".")[0])
        weights, labels = (Path(name) if name else None for name in (self.settings.weights, self.settings.labels))
        return choose(self.settings.engine, self.settings.model, weights, labels)


def check(submitter: Submitter, request: Request) -> Request:
    """Find what cannot work before anything is submitted; JobError, HadoopError, InfoError or PlanError.

    The request comes back with what was found out about its files and its rows.
    """
    settings, network = request.settings, request.network
    policy(settings.policy)
    if settings.fallback:
        policy(settings.fallback)
    nodes = submitter.check(order(submitter, request))
    filesystem = submitter.filesystem
    if not filesystem.exists(settings.input):
        raise JobError(
            f"{settings.input} is not in HDFS",
            remedy=f"`nodewise images load DIR {settings.input}` puts images there",
        )
    if filesystem.exists(settings.output):
        raise JobError(
            f"{settings.output} exists already", remedy="choose another --output, results are never overwritten"
        )
    row_bytes = model_check.check(network, settings.worker_python, settings.batch, submitter.say)
    settings = judge(request, nodes, submitter.say)
    files = Listing(filesystem).summary(submitter.path(settings.input)).files
    return replace(request, settings=replace(settings, row_bytes=row_bytes), files=files)


def judge(request: Request, nodes: Sequence[str], say: Callable[[str], None]) -> ClassifySettings:
    """The settings with the capability that decides, once every node has a value of it.

    Where no node can have one before a first job has run, it is the one that the user named for that case.
    """
    settings, client = request.settings, request.access.client()
    try:
        if settings.cold_start and (why := _why_cold(request, client, nodes)):
            say(f"no node has a {settings.capability} yet ({why}): {settings.cold_start} decides this time")
            settings = replace(settings, capability=settings.cold_start)
        found = judging.judge(
            client,
            settings.capability,
            judging.Program(request.network.program, settings.batch),
            nodes,
            request.options.capability_wait,
            lambda missing: say(f"waiting for {settings.capability} of {', '.join(missing)}"),
        )
        if found.kind == judging.RECORDED:
            say(found.help)
    except (InfoError, JobError) as error:
        if settings.fallback is None:
            raise
        say(f"{error}; {settings.fallback} will divide the images instead")
    return settings


def _why_cold(request: Request, client: InfoClient, nodes: Sequence[str]) -> str:
    """Why no node has a value of the capability; "" where one has, or where speeds of earlier jobs may give one."""
    settings = request.settings
    if speed_history.recorded_speeds(client, request.network.program, settings.batch):
        return ""
    return capability.why_nothing_yet(client, settings.capability, nodes)


def order(submitter: Submitter, request: Request) -> Order:
    """The job as it is submitted; JobError when there is no such environment."""
    given = request.settings
    env = given.environment and submitter.path(store.resolve(submitter.filesystem, given.environment))
    network, staged = request.network, request.network.staged_names()
    settings = replace(
        given,
        input=submitter.path(given.input),
        output=submitter.path(given.output),
        environment=env,
        engine=network.engine,
        model=network.model,
        graph=staged.get("graph"),
        weights=staged.get("weights"),
        preparation=staged.get("preparation"),
        labels=staged.get("labels"),
    )

    def prepare(client: InfoClient) -> None:
        speed_history.prepare(client, network.program, settings.batch)

    return Order(
        kind=KIND,
        name=f"nodewise {network.program}",
        settings=asdict(settings),
        options=request.options,
        access=request.access,
        uploads={staged[name]: file for name, file in network.files()},
        tags=decision_store.tags(settings.output),
        prepare=prepare,
        needs_service=settings.fallback is None,
        master=MasterNeeds(master_memory_mb(request.files)),
    )
