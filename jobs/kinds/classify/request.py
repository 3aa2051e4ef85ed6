"""What a user asks for when images are to be classified, checked, and as an order for YARN."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from jobs.application.environments import store
from jobs.application.job_spec import JobOptions
from jobs.application.submit import InfoAccess, Order, Submitter
from jobs.division import decision_store, speed_history
from jobs.division.judging import RECORDED, Program, judge
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
    """What the user asks for; in the settings, files are those of this machine, and paths of HDFS may have schemes."""

    settings: ClassifySettings
    options: JobOptions = field(default_factory=JobOptions)
    access: InfoAccess = field(default_factory=InfoAccess)

    @cached_property
    def network(self) -> Network:
        """What looks at the images; JobError when there is no such thing."""
        check_engine(FORMER.get(self.settings.engine, self.settings.engine).partition(".")[0])
        weights, labels = (Path(name) if name else None for name in (self.settings.weights, self.settings.labels))
        return choose(self.settings.engine, self.settings.model, weights, labels)


def check(submitter: Submitter, request: Request) -> Request:
    """Find what cannot work before anything is submitted; JobError, HadoopError, InfoError or PlanError.

    The request comes back with what was found out about its rows.
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
    try:
        found = judge(
            request.access.client(),
            settings.capability,
            Program(network.program, settings.batch),
            nodes,
            request.options.capability_wait,
            lambda missing: submitter.say(f"waiting for {settings.capability} of {', '.join(missing)}"),
        )
        if found.kind == RECORDED:
            submitter.say(found.help)
    except (InfoError, JobError) as error:
        if settings.fallback is None:
            raise
        submitter.say(f"{error}; {settings.fallback} will divide the images instead")
    return replace(request, settings=replace(settings, row_bytes=row_bytes))


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
    )
