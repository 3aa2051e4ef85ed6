"""Runs the real Ansible on inventories made for one test."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lab import passed

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "service.tar.gz", "worker.tar.gz", "code.tar.gz", "hadoop.tar.gz", "nodewise-yarn.jar", "node_attributes.py",
    "broker.pyz", "mounts.pyz",
)  # fmt: skip

Inventory = dict[str, Any]
Answer = subprocess.CompletedProcess[str]
Play = Callable[..., Answer]


@pytest.fixture(scope="session")
def unless_tried_in_the_lab(request: pytest.FixtureRequest) -> None:
    """Skip what plays roles for minutes, while the lab's tests have passed with all that its machines are made from."""
    if not (request.config.getoption("--long") or passed.due()):
        pytest.skip("the lab's tests have passed with these playbooks: --long")


@pytest.fixture
def inventory() -> Inventory:
    """An inventory of three machines that do not exist."""
    return {
        "all": {
            "children": {
                "master": {"hosts": {"head": {"ansible_host": "192.0.2.10"}}},
                "workers": {
                    "hosts": {"worker1": {"ansible_host": "192.0.2.11"}, "worker2": {"ansible_host": "192.0.2.12"}}
                },
            }
        }
    }


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    """A payload as scripts/payload leaves it, of small parts."""
    made = tmp_path / "payload"
    made.mkdir()
    for part in PARTS:
        (made / part).write_text(f"the {part} of a test\n")
    sums = {part: hashlib.sha256((made / part).read_bytes()).hexdigest() for part in PARTS}
    (made / "payload.json").write_text(
        json.dumps({part: {"sha256": found, "bytes": 1} for part, found in sums.items()})
    )
    return made


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Run a playbook, from the folder of playbooks, on an inventory."""

    def run(playbook: str | Path, inventory: Inventory, *arguments: str) -> Answer:
        return played(tmp_path, playbook, inventory, *arguments)

    return run


def played(folder: Path, playbook: str | Path, inventory: Inventory, *arguments: str, **told: str) -> Answer:
    """Run a playbook on an inventory that is kept in this folder; Ansible is told these variables of its own."""
    file = folder / "inventory.yml"
    file.write_text(json.dumps(inventory))  # JSON is YAML
    return ansible("ansible-playbook", "-i", str(file), str(playbook), *arguments, **told)


def ansible(program: str, *arguments: str, **told: str) -> Answer:
    """Run one of Ansible's programs as an operator does, without the colours and widths of this terminal."""
    argv: Sequence[str] = [str(ROOT / ".venv-ansible" / "bin" / program), *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"LC_ALL": "C.UTF-8", "ANSIBLE_NOCOLOR": "1", "COLUMNS": "200"} | told
    return subprocess.run(
        argv, cwd=ROOT / "ansible", env=environment, capture_output=True, text=True, timeout=240, check=False
    )
