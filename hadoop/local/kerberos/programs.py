"""Finds the programs of Kerberos: this machine's own, or those that the set-up of a checkout has unpacked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hadoop.errors import HadoopError
from hadoop.installation import ROOT, unpacked_remedy

UNPACKED = ROOT / ".kerberos"
FOR_PEOPLE = ("kinit", "klist", "kdestroy", "kvno")
_OF_THE_REALM = ("krb5kdc", "kdb5_util", "kadmin.local")
_SYSTEM = ("/usr/sbin", "/sbin")
COMMANDS = ("cluster", "kerberos", "bin")
"""The end of the path of a folder with what people call, below the home of a cluster."""


def check() -> None:
    """Raise HadoopError unless all are there that a cluster with Kerberos needs."""
    for name in (*_OF_THE_REALM, *FOR_PEOPLE):
        find(name)
    if shutil.which("curl") is None:
        raise HadoopError("curl is missing, which asks daemons with a ticket", remedy="`apt-get install curl`")


def find(name: str) -> Path:
    """The program of this name; HadoopError with the remedy when it is missing."""
    own = shutil.which(name, path=os.pathsep.join(_folders()))
    unpacked = (UNPACKED / "usr" / folder / name for folder in ("sbin", "bin"))
    found = Path(own) if own else next((path for path in unpacked if path.is_file()), None)
    if found is None:
        raise HadoopError(
            f"{name} is missing, which --kerberos needs",
            remedy=unpacked_remedy("krb5-kdc krb5-admin-server krb5-user"),
        )
    return found


def _folders() -> list[str]:
    """Where this machine has programs; not where a shell that uses a cluster has those that were unpacked."""
    named = os.environ.get("PATH", "").split(os.pathsep)
    return [folder for folder in (*named, *_SYSTEM) if Path(folder).parts[-len(COMMANDS) :] != COMMANDS]


def libraries(program: Path) -> dict[str, str]:
    """The variables with which a program finds its libraries: none for one that is installed."""
    return {"LD_LIBRARY_PATH": str(_library_folder())} if is_unpacked(program) else {}


def plugins() -> Path | None:
    """The folder of the realm's databases, None where the installed programs know it themselves."""
    return _library_folder() / "krb5" / "plugins" / "kdb" if is_unpacked(find("krb5kdc")) else None


def is_unpacked(program: Path) -> bool:
    """Whether a program is one of those that were unpacked."""
    return program.is_relative_to(UNPACKED)


def _library_folder() -> Path:
    return next((UNPACKED / "usr" / "lib").glob("*-linux-gnu"), UNPACKED / "usr" / "lib")
