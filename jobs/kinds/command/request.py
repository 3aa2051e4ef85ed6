"""What a user asks for when a program is to be run on nodes, as an order for YARN."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from jobs.application.job_spec import JobOptions
from jobs.application.package import with_uploads
from jobs.application.submit import InfoAccess, Order, Submitter
from jobs.division import capability as capabilities
from jobs.errors import JobError
from jobs.kinds.command.settings import CommandSettings


@dataclass(frozen=True)
class RunRequest:
    """A program of this machine (`./program`) travels with the job, as its files do; any other one is on the nodes."""

    settings: CommandSettings
    options: JobOptions = field(default_factory=JobOptions)
    access: InfoAccess = field(default_factory=InfoAccess)


def check(submitter: Submitter, request: RunRequest) -> None:
    """Find what cannot work before anything is submitted; JobError, HadoopError or InfoError."""
    nodes = submitter.check(order(request))
    copies, name = request.settings.copies, request.settings.capability
    if copies > len(nodes):
        raise JobError(
            f"{copies} copies need {copies} nodes, and only {len(nodes)} accept work", remedy="ask for fewer --copies"
        )
    if name:
        capabilities.wait(
            request.access.client(),
            name,
            nodes,
            request.options.capability_wait,
            lambda missing: submitter.say(f"waiting for {name} of {', '.join(missing)}"),
        )


def order(request: RunRequest) -> Order:
    """The job as it is submitted; JobError when a file is not there, or two have one name."""
    argv, uploads = with_uploads(request.settings.argv, request.settings.files)
    settings = replace(request.settings, argv=argv, files=sorted(uploads))
    return Order(
        kind="command",
        name=f"nodewise {Path(argv[0]).name}",
        settings=asdict(settings),
        options=request.options,
        access=request.access,
        uploads=uploads,
        needs_service=settings.capability is not None,
    )
