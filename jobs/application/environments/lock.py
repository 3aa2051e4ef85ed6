"""The files of a Python environment that belong to the packages of a requirements file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from jobs.errors import JobError

_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)


def locked_files(packages: Path, lock: Path) -> frozenset[str]:
    """Names below `packages`, a site-packages folder, of all that the packages named in `lock` have put there.

    JobError when a package is missing or has another version than the one that `lock` names.
    """
    installed = {_plain(found.name): found for found in distributions(path=[str(packages)])}
    return frozenset(
        name
        for project, version in _pinned_versions(lock).items()
        for name in _recorded_files(_of_version(installed.get(project), project, version, lock), packages)
    )


def _pinned_versions(lock: Path) -> dict[str, str]:
    try:
        found = {_plain(name): version for name, version in _PINNED.findall(lock.read_text())}
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(f"{lock} cannot be read ({error})", remedy="name a requirements file with --lock") from error
    if not found:
        raise JobError(f"{lock} names no package as NAME==VERSION", remedy="name a requirements file with --lock")
    return found


def _of_version(found: Distribution | None, project: str, version: str, lock: Path) -> Distribution:
    if found is None or found.version != version:
        there = "lacks it" if found is None else f"has {found.version}"
        raise JobError(
            f"{lock} names {project} {version} and the environment {there}",
            remedy=f"make the environment anew, `pip install --require-hashes -r {lock}`",
        )
    return found


def _recorded_files(found: Distribution, packages: Path) -> Iterator[str]:
    """The files of one package; programs and data beside site-packages are no part of what is imported."""
    if found.files is None:
        raise JobError(
            f"{found.name} in {packages} has no list of its files (RECORD)", remedy="install it anew with pip"
        )
    for file in found.files:
        if ".." not in file.parts and not file.is_absolute():
            yield file.as_posix()


def _plain(name: str) -> str:
    """The name as the index of packages compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
