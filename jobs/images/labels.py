"""What images show: a table of file names and classes, written beside images whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.errors import JobError

LABELS = "labels.tsv"
"""An image a line: file name as below the folder, number of its class, name of its class, with tabs between them."""
CLASSES = "classes.txt"
"""A class a line, in the order of their numbers from 0 on."""


@dataclass(frozen=True)
class Label:
    """A class by number and name."""

    number: int
    name: str


def write(folder: Path, shown: Mapping[str, str], classes: list[str]) -> None:
    """Both files: what each file name shows, one of `classes`."""
    lines = (f"{file}\t{classes.index(name)}\t{name}\n" for file, name in sorted(shown.items()))
    (folder / LABELS).write_text("".join(lines))
    (folder / CLASSES).write_text("".join(f"{name}\n" for name in classes))


def read(file: Path) -> dict[str, Label]:
    """Label by file name; JobError when there is no such table, or a line does not give a label."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise JobError(f"{file} cannot be read ({reason})", remedy=f"name the {LABELS} of a folder of images") from None
    return parse(file, text)


def parse(file: Path | str, text: str) -> dict[str, Label]:
    """As `read`, of what stands in the file."""
    return dict(_parse(file, number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip())


def _parse(file: Path | str, at: int, line: str) -> tuple[str, Label]:
    parts = line.split("\t")
    if len(parts) != 3 or not parts[0] or not parts[1].isascii() or not parts[1].isdigit():
        raise JobError(
            f"{file} line {at} is {line!r}", remedy="write file name, class number and class name with tabs between"
        )
    return parts[0], Label(int(parts[1]), parts[2])
