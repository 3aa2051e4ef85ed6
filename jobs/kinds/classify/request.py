"""What a user asks for when images are to be classified, checked, and as an order for YARN."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from jobs.application import environment
from jobs.application.job_spec import JobOptions
from jobs.application.submit import InfoAccess, Order, Submitter
from jobs.division import capability, decision_store, speed_history
from jobs.engines import check_engine
from jobs.errors import JobError
from jobs.kinds.classify.settings import ClassifySettings
from locality.policies import policy

KIND = "classify"


@dataclass(frozen=True)
class Request:
    """What the user asks for; in the settings, files are those of this machine, and paths of HDFS may have schemes."""

    settings: ClassifySettings
    options: JobOptions = field(default_factory=JobOptions)
    access: InfoAccess = field(default_factory=InfoAccess)


def check(submitter: Submitter, request: Request) -> None:
    """Find what cannot work before anything is submitted; JobError, HadoopError, InfoError or PlanError."""
    settings = request.settings
    check_engine(settings.engine)
    policy(settings.policy)
    if settings.fallback:
        policy(settings.fallback)
    nodes = submitter.check(order(submitter, request))
    filesystem = submitter.filesystem
    if not filesystem.exists(settings.input):
        raise JobError(
            f"{settings.input} is not in HDFS: `nodewise images load DIR {settings.input}` puts pictures there"
        )
    if filesystem.exists(settings.output):
        raise JobError(f"{settings.output} exists already: choose another --output, results are never overwritten")
    try:
        capability.wait(
            request.access.client(),
            settings.capability,
            nodes,
            request.options.capability_wait,
            lambda missing: submitter.say(f"waiting for {settings.capability} of {', '.join(missing)}"),
        )
    except (InfoError, JobError) as error:
        if settings.fallback is None:
            raise
        submitter.say(f"{error}; {settings.fallback} will divide the pictures instead")


def order(submitter: Submitter, request: Request) -> Order:
    """The job as it is submitted; JobError when there is no such environment."""
    given = request.settings
    env = given.environment and submitter.path(environment.named(submitter.filesystem, given.environment))
    weights = f"weights-{Path(given.weights).name}" if given.weights else None
    labels = f"labels-{Path(given.labels).name}" if given.labels else None
    settings = replace(
        given,
        input=submitter.path(given.input),
        output=submitter.path(given.output),
        environment=env,
        weights=weights,
        labels=labels,
    )
    files = ((weights, given.weights), (labels, given.labels))

    def prepare(client: InfoClient) -> None:
        speed_history.prepare(client, settings.engine, settings.batch)

    return Order(
        kind=KIND,
        name=f"nodewise {settings.engine}",
        settings=asdict(settings),
        options=request.options,
        access=request.access,
        uploads={there: Path(here) for there, here in files if there and here},
        tags=decision_store.tags(settings.output),
        prepare=prepare,
        needs_service=settings.fallback is None,
    )
