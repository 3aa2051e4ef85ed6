"""What a program that trains is told by whatever started it: a file of JSON that an environment variable names.

    {"address_file": where the application master's address stands, "token": ..., "process": ..., "host": ...,
     "checkpoints": a folder}

Whoever starts a program by hand sets no such variable: then the program trains alone. Another variable says how often
members average, in place of what the program says.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

from learning.errors import LearningError
from learning.lead.lead import Alone, Lead
from learning.lead.master import Master
from learning.state.checkpoints import Checkpoints

VARIABLE = "NODEWISE_TRAINING"
NODE = "NODE_NAME"
"""Names the node, as HDFS does, in every container of ours."""
SYNC_VARIABLE = "NODEWISE_SYNC"


@dataclass(frozen=True)
class Surroundings:
    """Who leads the run, and where its checkpoints are, None for none; `sync` where it is not the program's choice."""

    lead: Lead
    checkpoints: Checkpoints | None
    sync: str | None = None


def write(
    file: Path,
    *,
    address_file: Path,
    token: str,
    process: str,
    host: str,
    checkpoints: Path,
    sync: str | None = None,
) -> dict[str, str]:
    """Tell a program all this, in a file for its user alone: the variables that it needs."""
    told = {
        "address_file": str(address_file),
        "token": token,
        "process": process,
        "host": host,
        "checkpoints": str(checkpoints),
    }
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as sink:
        json.dump(told, sink)
    return {VARIABLE: str(file)} | ({SYNC_VARIABLE: sync} if sync else {})


def find(environment: MutableMapping[str, str]) -> Surroundings:
    """LearningError when the file is not what it has to be.

    The variable is removed: a process that the program starts would otherwise speak as the same member.
    """
    sync = environment.get(SYNC_VARIABLE) or None
    if (name := environment.pop(VARIABLE, None)) is None:
        return Surroundings(Alone(), None, sync)
    try:
        told = json.loads(_own_text(Path(name)))
        address = Path(told["address_file"])
        lead = Master(
            lambda: _read(address), told["token"], told["process"], told["host"], node=environment.get(NODE, "")
        )
        return Surroundings(lead, Checkpoints(Path(told["checkpoints"])), sync)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LearningError(
            f"{VARIABLE} names {name}, which does not tell how to train: {error!r}",
            "unset it to train in one process alone",
        ) from error


def _own_text(file: Path) -> str:
    """What stands in a file that nobody else may use; LearningError when others may."""
    with file.open() as source:
        mode = stat.S_IMODE(os.fstat(source.fileno()).st_mode)
        if mode & 0o077:
            raise LearningError(
                f"{file} holds the token of the run, and its mode {mode:04o} lets others use it", "make its mode 0600"
            )
        return source.read()


def _read(address: Path) -> str | None:
    try:
        return address.read_text().strip() or None
    except OSError:
        return None
