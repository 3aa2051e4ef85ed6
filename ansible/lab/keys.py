"""The lab's keys: the operator's, and each machine's own, made here so that ssh knows every machine beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.commands import call
from lab.inventory import Machine
from lab.places import IDENTITIES, SSH

OPERATOR = SSH / "operator"
CONFIG = SSH / "config"
KNOWN_HOSTS = SSH / "known_hosts"


def prepare(machines: Sequence[Machine]) -> None:
    """Make the keys that are missing, and write down all names and host keys."""
    SSH.mkdir(mode=0o700, parents=True, exist_ok=True)
    make_key(OPERATOR, "operator of the lab")
    names = "".join(f"{machine.address} {machine.name}\n" for machine in machines)
    for machine in machines:
        folder = identity(machine)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_key(folder / "ssh_host_ed25519_key", machine.name)
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        (folder / "authorized_keys").write_text(OPERATOR.with_suffix(".pub").read_text())
    KNOWN_HOSTS.write_text("".join(known_host(machine) for machine in machines))
    CONFIG.write_text("".join(entry(machine) for machine in machines) + common())


def identity(machine: Machine) -> Path:
    """What tells this machine from others; lab-init reads it."""
    return IDENTITIES / machine.name


def make_key(path: Path, comment: str) -> None:
    """A key, unless it is there."""
    if not path.exists():
        call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path])


def known_host(machine: Machine) -> str:
    """The machine's line of known_hosts."""
    kind, key, *_ = (identity(machine) / "ssh_host_ed25519_key.pub").read_text().split()
    return f"{machine.name},{machine.address} {kind} {key}\n"


def entry(machine: Machine) -> str:
    """The machine's entry of ssh's configuration."""
    return f"Host {machine.name}\n  HostName {machine.address}\n  HostKeyAlias {machine.name}\n"


def common() -> str:
    """What ssh's configuration says of all machines."""
    return f"""Host *
  User operator
  IdentityFile "{OPERATOR}"
  IdentitiesOnly yes
  UserKnownHostsFile "{KNOWN_HOSTS}"
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectTimeout 10
"""
