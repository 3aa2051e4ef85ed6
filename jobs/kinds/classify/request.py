"""What a user asks for when images are to be classified, checked, and as an order for YARN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

from hadoop.client.listing import Listing
from infosvc.wire.client import InfoClient
from jobs.application.environments.laid import Laid, find
from jobs.application.job_spec import JobOptions
from jobs.application.package import check_python
from jobs.application.submit import InfoAccess, MasterNeeds, Order, Submitter, master_memory_mb
from jobs.division import decision_store, speed_history, start_history
from jobs.division.readings import Program
from jobs.engines import check_engine
from jobs.engines.network import Network, choose
from jobs.itemwork import submission
from jobs.kinds.classify import model_check
from jobs.kinds.classify.settings import UNIT, ClassifySettings
from locality.program_names import FORMER

KIND = "classify"
PACKAGES = ("hdfs-native", "numpy")
"""Without these no engine gets any image."""


@dataclass(frozen=True)
class Request:
    """What the user asks for; in the settings, files are those of this machine, and paths of HDFS may have schemes.

    Once that was looked at, `files` says how many there are in the input, and `laid` what the environment is.
    """

    settings: ClassifySettings
    options: JobOptions = field(default_factory=JobOptions)
    access: InfoAccess = field(default_factory=InfoAccess)
    files: int = 0
    laid: Laid | None = None

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
    request, nodes = check_nodes(submitter, request)
    settings, filesystem = request.settings, submitter.filesystem
    submission.check_policies(settings)
    submission.check_paths(
        filesystem, settings, remedy=f"`nodewise images load DIR {settings.input}` puts images there"
    )
    request = check_network(submitter, request)
    settings = choose_capability(request, nodes, submitter.say)
    files = Listing(filesystem).summary(submitter.path(settings.input)).files
    return replace(request, settings=settings, files=files)


def check_nodes(submitter: Submitter, request: Request) -> tuple[Request, Sequence[str]]:
    """Find what stands against its workers, wherever their work comes from; the nodes that can have one."""
    check_python(request.settings.worker_python, bool(request.settings.environment))
    request = replace(request, laid=_find_environment(submitter, request))
    return request, submitter.check(order(submitter, request))


def check_network(submitter: Submitter, request: Request) -> Request:
    """Find out how large its rows are; JobError when its network does not fit."""
    settings = request.settings
    row_bytes = model_check.check(request.network, settings.worker_python, settings.batch, submitter.say)
    return replace(request, settings=replace(settings, row_bytes=row_bytes))


def choose_capability(request: Request, nodes: Sequence[str], say: Callable[[str], None]) -> ClassifySettings:
    """The settings with the capability that decides, as `submission.choose_capability` finds it."""
    settings = request.settings
    program = Program(request.network.program, settings.batch)
    client, seconds = request.access.client(), request.options.capability_wait
    return submission.choose_capability(settings, program, client, nodes, seconds, say, UNIT)


def _find_environment(submitter: Submitter, request: Request) -> Laid:
    env = request.settings.environment
    return find(submitter.filesystem, env, PACKAGES) if env else Laid()


def order(submitter: Submitter, request: Request) -> Order:
    """The job as it is submitted; JobError when there is no such environment."""
    given = request.settings
    given.check_devices()
    laid = request.laid or _find_environment(submitter, request)
    network, staged = request.network, request.network.staged_names()
    settings = replace(
        given,
        input=submitter.path(given.input),
        output=submitter.path(given.output),
        environment=submitter.path(laid.archive) if laid.archive else None,
        parts=laid.parts,
        engine=network.engine,
        model=network.model,
        graph=staged.get("graph"),
        weights=staged.get("weights"),
        preparation=staged.get("preparation"),
        labels=staged.get("labels"),
    )

    def prepare(client: InfoClient) -> None:
        speed_history.prepare(client, network.program, settings.batch, UNIT)
        start_history.prepare(client, network.program)

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
        env=given.environment or "",
        requires=laid.requires,
        gpus=given.wanted_gpus,
    )
