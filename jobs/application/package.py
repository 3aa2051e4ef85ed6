"""What travels with a job: our own code, so that nodes need the libraries but not us, and the user's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from hadoop.installation import worker_environment
from hadoop.rest.told import find_missing
from jobs.errors import JobError

WORKER_PYTHON = worker_environment() / "bin" / "python"
"""The Python with the engines that setting up makes; the variable says where another one is."""
WORKER_PYTHON_VARIABLE = "NODEWISE_WORKER_PYTHON"
NO_PYTHON = "none"
"""In place of its path, where nodes have none of their own: jobs run in environments."""
TAKEN = frozenset(("code.zip", "info_ca", "info_token", "job.json", "journal", "master.json", "train.json", "training"))
"""Names in the folders where a job's files are."""


def check_python(python: str, has_environment: bool) -> None:
    """JobError where the nodes have no Python of their own for jobs, and no environment brings one."""
    if python == NO_PYTHON and not has_environment:
        raise JobError(
            "this cluster's workers have no Python of their own",
            remedy="name an environment with --env NAME@VERSION, `nodewise env list` shows those that there are",
        )


def name_python(python: str) -> str:
    """What a worker's Python is called in a sentence."""
    return "the worker's Python" if python == NO_PYTHON else python


def tell_missing(diagnostics: str) -> str:
    """What to do about a Python that a container's node does not have, "" where that is not what has ended it."""
    program = find_missing(diagnostics)
    if not PurePosixPath(program).name.startswith("python"):
        return f"its node has no {program}" if program else ""
    return (
        f"its node has no {program}: name a Python of the nodes with --worker-python, or an environment with --env "
        "NAME@VERSION"
    )


def with_uploads(argv: Sequence[str], files: Sequence[str]) -> tuple[list[str], dict[str, Path]]:
    """The program's line as it is on the nodes, and what is laid beside it there, by name.

    A program of this machine (`./program`) travels as the files do; any other one is on the nodes. JobError when a file
    is not there, two have one name, or one has a name that is taken.
    """
    program = Path(argv[0])
    travels = "/" in argv[0] and not program.is_absolute()
    found = [*map(Path, files), *([program] if travels else [])]
    for file in found:
        if not file.is_file():
            raise JobError(
                f"{file} is not a file of this machine", remedy="give a path, or the name of a program on the nodes"
            )
    if taken := [file.name for file in found if file.name in TAKEN]:
        raise JobError(f"a file cannot have the name {taken[0]}, which is nodewise's own", remedy="rename it")
    uploads = {file.name: file for file in found}
    if len(uploads) < len({file.absolute() for file in found}):
        remedy = "rename one: all files are put into one folder on the nodes"
        raise JobError("two of the files have the same name", remedy=remedy)
    return [f"./{program.name}" if travels else argv[0], *argv[1:]], uploads
