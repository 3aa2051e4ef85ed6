"""What a user asks for when a program is to be run on nodes, as an order for YARN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from jobs.application.submit import Order, Submitter
from jobs.division import capability as capabilities
from jobs.errors import JobError
from jobs.kinds.command.settings import CommandSettings


@dataclass(frozen=True)
class RunRequest:
    """A program of this machine (`./program`) travels with the job, as `files` do; any other one is on the nodes."""

    settings: CommandSettings
    info_url: str
    token: str | None
    master_python: str
    ca_file: Path | None = None
    files: Sequence[Path] = ()
    capability_wait: float = 20.0
    container_wait: float = 60.0
    attempts: int = 2
    queue: str = "default"


def check(submitter: Submitter, request: RunRequest) -> None:
    """Find what cannot work before anything is submitted; JobError, HadoopError or InfoError."""
    made = order(request)
    nodes = submitter.check(made)
    copies, name = request.settings.copies, request.settings.capability
    if copies > len(nodes):
        raise JobError(f"{copies} copies need as many nodes, and {len(nodes)} take work: ask for fewer --copies")
    if name:
        capabilities.wait(
            made.client(),
            name,
            nodes,
            request.capability_wait,
            lambda missing: submitter.say(f"waiting for {name} of {', '.join(missing)}"),
        )


def order(request: RunRequest) -> Order:
    """The job as it is submitted; JobError when a file is not there, or two have one name."""
    program = Path(request.settings.argv[0])
    travels = "/" in request.settings.argv[0] and not program.is_absolute()
    files = [*request.files, *([program] if travels else [])]
    for file in files:
        if not file.is_file():
            raise JobError(f"{file} is no file of this machine: give a path, or the name of a program on the nodes")
    uploads = {file.name: file for file in files}
    if len(uploads) < len({file.absolute() for file in files}):
        raise JobError("two of the files have the same name: rename one, they lie in one folder on the nodes")
    argv = [f"./{program.name}" if travels else request.settings.argv[0], *request.settings.argv[1:]]
    settings = replace(request.settings, argv=argv, files=sorted(uploads))
    return Order(
        kind="command",
        name=f"nodewise {program.name}",
        settings=asdict(settings),
        info_url=request.info_url,
        token=request.token,
        master_python=request.master_python,
        ca_file=request.ca_file,
        container_wait=request.container_wait,
        attempts=request.attempts,
        queue=request.queue,
        uploads=uploads,
        needs_service=settings.capability is not None,
        resources=settings.resources,
    )
