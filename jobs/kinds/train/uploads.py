"""Which files of the user's machine travel with a job that runs a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jobs.errors import JobError


def with_uploads(argv: Sequence[str], files: Sequence[str]) -> tuple[list[str], dict[str, Path]]:
    """The program's line as it is on the nodes, and what is laid beside it there, by name.

    A program of this machine (`./program`) travels as the files do; any other one is on the nodes. JobError when a file
    is not there, or two have one name.
    """
    program = Path(argv[0])
    travels = "/" in argv[0] and not program.is_absolute()
    found = [*map(Path, files), *([program] if travels else [])]
    for file in found:
        if not file.is_file():
            raise JobError(
                f"{file} is not a file of this machine", remedy="give a path, or the name of a program on the nodes"
            )
    uploads = {file.name: file for file in found}
    if len(uploads) < len({file.absolute() for file in found}):
        remedy = "rename one: all files are put into one folder on the nodes"
        raise JobError("two of the files have the same name", remedy=remedy)
    return [f"./{program.name}" if travels else argv[0], *argv[1:]], uploads
