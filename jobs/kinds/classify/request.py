"""What a user asks for when images are to be classified, checked, and as an order for YARN."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from jobs.application import environment
from jobs.application.submit import Order, Submitter
from jobs.division import capability, decision_store, speed_history
from jobs.engines import check_engine
from jobs.errors import JobError
from jobs.kinds.classify.settings import ClassifySettings
from locality.policies import policy

KIND = "classify"
PROCESS_MEMORY_MB = 1024
"""Of a container, unless asked for otherwise: one process for each vcore, and the one they are forked from."""


@dataclass(frozen=True)
class Request:
    """What the user asks for. Waits are in seconds; the pythons are paths on the nodes; `token` lets speeds be kept.

    `ca_file` names the authority of an https information service, `env` an archive in HDFS with the worker's Python;
    the others mean what they mean in `ClassifySettings`.
    """

    input: str
    output: str
    engine: str
    policy: str
    capability: str
    info_url: str
    token: str | None
    master_python: str
    worker_python: str
    batch: int = 32
    memory_mb: int | None = None
    vcores: int = 1
    container_wait: float = 60.0
    capability_wait: float = 20.0
    lease_seconds: float = 10.0
    picture_seconds: float = 60.0
    steal: bool = True
    fallback: str | None = None
    env: str | None = None
    attempts: int = 2
    weights: Path | None = None
    labels: Path | None = None
    ca_file: Path | None = None
    queue: str = "default"


def check(submitter: Submitter, request: Request) -> None:
    """Find what cannot work before anything is submitted; JobError, HadoopError, InfoError or PlanError."""
    check_engine(request.engine)
    policy(request.policy)
    if request.fallback:
        policy(request.fallback)
    nodes = submitter.check(order(submitter, request))
    filesystem = submitter.filesystem
    if not filesystem.exists(request.input):
        raise JobError(
            f"{request.input} is not in HDFS: `nodewise images load DIR {request.input}` puts pictures there"
        )
    if filesystem.exists(request.output):
        raise JobError(f"{request.output} exists already: choose another --output, results are never overwritten")
    try:
        capability.wait(
            order(submitter, request).client(),
            request.capability,
            nodes,
            request.capability_wait,
            lambda missing: submitter.say(f"waiting for {request.capability} of {', '.join(missing)}"),
        )
    except (InfoError, JobError) as error:
        if request.fallback is None:
            raise
        submitter.say(f"{error}; {request.fallback} will divide the pictures instead")


def order(submitter: Submitter, request: Request) -> Order:
    """The job as it is submitted; JobError when there is no such environment."""
    settings = _settings(submitter, request)
    files = {settings.weights: request.weights, settings.labels: request.labels}

    def prepare(client: InfoClient) -> None:
        speed_history.prepare(client, request.engine, request.batch)

    return Order(
        kind=KIND,
        name=f"nodewise {request.engine}",
        settings=asdict(settings),
        info_url=request.info_url,
        token=request.token,
        master_python=request.master_python,
        ca_file=request.ca_file,
        container_wait=request.container_wait,
        attempts=request.attempts,
        queue=request.queue,
        uploads={name: local for name, local in files.items() if name and local},
        tags=decision_store.tags(settings.output),
        prepare=prepare,
        needs_service=request.fallback is None,
    )


def _settings(submitter: Submitter, request: Request) -> ClassifySettings:
    env = request.env and submitter.path(environment.named(submitter.filesystem, request.env))
    return ClassifySettings(
        input=submitter.path(request.input),
        output=submitter.path(request.output),
        engine=request.engine,
        policy=request.policy,
        capability=request.capability,
        worker_python=request.worker_python,
        environment=env,
        batch=request.batch,
        memory_mb=request.memory_mb or PROCESS_MEMORY_MB * (1 + request.vcores),
        vcores=request.vcores,
        lease_seconds=request.lease_seconds,
        picture_seconds=request.picture_seconds,
        steal=request.steal,
        fallback=request.fallback,
        weights=f"weights-{request.weights.name}" if request.weights else None,
        labels=f"labels-{request.labels.name}" if request.labels else None,
    )
