"""Which files of the product the machines have read, by the time at which each was read last.

A release is unpacked once and then never written to, so whatever was read later than it was made has been used: as a
module, a template or a page, or packed for agents and containers. Python reads a module's source also where it was
compiled before, because the payload's bytecode is checked against it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable

from lab import power
from lab.commands import LabError
from lab.inventory import machines
from lab.places import STATE

RELEASES = "/opt/nodewise/releases/code-*/"
NOTED = STATE / "loaded.json"
ALWAYS = {"nodewise/__main__.py", "infosvc/http/server.py"}
"""What every command reads, and what the service does; where they seem to be unread, the disks keep no times."""

# When a file was read last and when it was made, in seconds, and its path below the release.
FIND = ("find", ".", "-name", "__pycache__", "-prune", "-o", "-type", "f", "-printf", "%A@ %C@ %P\\n")


# The service's unit sees all disks but its own as read-only, where reading leaves no time behind; so the same modules
# are read once more beside it.
MODULES = "nodewise.board, infosvc.commands.serve, infosvc.http.server"
SERVICE = ("/opt/nodewise/service/bin/python", "-P", "-B", "-c", f"import {MODULES}")
CODE = "/opt/nodewise/code"
READ_AGAIN = f"[ ! -d {CODE}/nodewise ] || PYTHONPATH={CODE} {shlex.join(SERVICE)}"


def script(releases: str = RELEASES) -> str:
    """The listing of all releases, in shell; it is empty on a worker, which has an agent and no release."""
    return f'for release in {releases}; do [ ! -d "$release" ] || (cd "$release" && {shlex.join(FIND)}) || exit; done'


def was_read(listing: str) -> set[str]:
    """The files of a listing by `find` that were read after they were made."""
    found = set()
    for line in listing.splitlines():
        accessed, changed, name = line.split(" ", 2)
        if float(accessed) > float(changed):
            found.add(name)
    return found


def note() -> None:
    """Add what the machines that are up have read to what was noted before; LabError where disks keep no times."""
    found = set(noted())
    for machine in machines():
        power.run(machine.name, ["sudo", "bash", "-c", READ_AGAIN])
        found |= was_read(power.run(machine.name, ["sudo", "bash", "-c", script()]))
    if not found >= ALWAYS:
        raise LabError("The machines' disks keep no times of access: put the checkout on a disk without noatime")
    write(found)


def noted() -> list[str]:
    """All that was noted since `forget`."""
    names: list[str] = json.loads(NOTED.read_text()) if NOTED.exists() else []
    return names


def write(names: Iterable[str]) -> None:
    """Keep names until the next `forget`."""
    NOTED.write_text(json.dumps(sorted(names), indent=1))


def forget() -> None:
    """Begin anew."""
    NOTED.unlink(missing_ok=True)
