"""What new machines start from: a bare disk; and what the machines' own disks were last provisioned from."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.commands import call, docker, step
from lab.places import HERE, INVENTORY, MIRROR, PLAYBOOKS, PROVISIONED, STATE

BARE = "nodewise-lab/bare"


def digest(paths: Sequence[Path]) -> str:
    """A name for the content of these files."""
    total = hashlib.sha256()
    for path in paths:
        total.update(f"{path.relative_to(HERE.parent)}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def bare() -> str:
    """The disk of a machine that nobody has touched, made when it is not there: Debian, sshd and Python."""
    image = f"{BARE}:{digest([HERE / 'make-disk', HERE / 'lab-init'])}"
    if not ((MIRROR / "Packages").exists() and image in images()):
        with step("making a bare disk and Debian's packages"), tempfile.TemporaryDirectory(dir=STATE) as folder:
            archive = Path(folder) / "bare.tar"
            call([HERE / "make-disk", archive, MIRROR])
            changes = ['CMD ["/usr/local/sbin/lab-init"]', "ENV container=docker"]
            docker("import", *[word for change in changes for word in ("--change", change)], archive, image)
    return image


def images() -> list[str]:
    """All disks, as Docker names them."""
    return docker("images", "--format", "{{.Repository}}:{{.Tag}}").split()


def stamp() -> str:
    """A name for all that provisioning depends on."""
    roles = (path for path in sorted((PLAYBOOKS / "roles").rglob("*")) if path.is_file())
    fixed = [HERE / "make-disk", HERE / "lab-init", INVENTORY, PLAYBOOKS / "payload" / "payload.json"]
    return digest([*fixed, *sorted(PLAYBOOKS.glob("*.yml")), *roles])


def provisioned() -> bool:
    """Whether the playbook has made the machines what it would make them now."""
    return PROVISIONED.exists() and PROVISIONED.read_text() == stamp()


def remember_provisioned(yes: bool) -> None:
    """Note whether the machines are what the playbook makes them now."""
    if yes:
        PROVISIONED.write_text(stamp())
    else:
        PROVISIONED.unlink(missing_ok=True)
