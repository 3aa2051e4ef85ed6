"""Where the files of a task come from: git's commit, and how they differ from it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from infosvc.wire.task_spec import LONGEST_CHANGES

SECONDS = 20.0
_CUT = "\n(cut here)\n"


@dataclass(frozen=True)
class Origin:
    """What git knows of a folder: both None where git knows nothing of it."""

    commit: str | None = None
    changes: str | None = None


def origin_of(folder: Path) -> Origin:
    """The commit that a folder is at, and what `git diff` shows below it; of much only the beginning."""
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if not commit:
        return Origin()
    changes = _git(folder, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD", "--", ".") or ""
    changes = changes.replace("\0", "")
    if len(changes) > LONGEST_CHANGES:
        changes = changes[: LONGEST_CHANGES - len(_CUT)] + _CUT
    return Origin(commit.strip(), changes or None)


def _git(folder: Path, *words: str) -> str | None:
    """What git says; None where there is no git, no repository, or no commit."""
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *words],
            capture_output=True,
            check=False,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
