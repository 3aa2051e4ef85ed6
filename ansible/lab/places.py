"""Where the lab keeps what: disks beside the checkout, what runs under /run, so that `down` can tell them apart."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLAYBOOKS = ROOT / "ansible"
INVENTORY = HERE / "inventory.yml"
SPARE = HERE / "spare.yml"
SECURE = HERE / "secure.yml"
ANSIBLE = ROOT / ".venv-ansible" / "bin"

STATE = ROOT / ".lab"
DISKS = STATE / "docker"
MIRROR = STATE / "debian"
SSH = STATE / "ssh"
IDENTITIES = STATE / "machines"
PROVISIONED = STATE / "provisioned"

# A socket's path may have 107 bytes, so these do not lie in the checkout, which may be anywhere.
RUNTIME = Path("/run/nodewise-lab")
SOCKET = RUNTIME / "docker.sock"
OWNER = RUNTIME / "checkout"
MACHINES = RUNTIME / "machines.json"
LXCFS = RUNTIME / "lxcfs"
# One name for the bridge, Docker's network and the control group of all machines.
NAME = "nodewise-lab"
SUBNET = "10.88.0.0/24"
CGROUPS = Path("/sys/fs/cgroup")
