"""The playbooks are whole, and the example inventory says what it seems to say."""

from __future__ import annotations

import json

import pytest

from tests.ansible.conftest import ROOT, Inventory, Play, ansible


@pytest.mark.parametrize("playbook", ["preflight.yml", "site.yml", "remove.yml", "upgrade.yml", "uninstall.yml"])
def test_every_playbook_can_be_read(play: Play, inventory: Inventory, playbook: str) -> None:
    answer = play(playbook, inventory, "--syntax-check")

    assert answer.returncode == 0, answer.stderr
    assert "WARNING" not in answer.stderr


def test_the_example_is_three_machines() -> None:
    answer = ansible("ansible-inventory", "-i", "example/inventory.yml", "--list")

    found = json.loads(answer.stdout)
    assert found["master"]["hosts"] == ["head"]
    assert found["workers"]["hosts"] == ["worker1", "worker2"]
    assert len({host["ansible_host"] for host in found["_meta"]["hostvars"].values()}) == 3
    assert "WARNING" not in answer.stderr


def test_an_unknown_machine_is_not_trusted() -> None:
    answer = ansible("ansible-config", "dump", "--only-changed", "--format", "json")

    found = {setting["name"]: setting["value"] for setting in json.loads(answer.stdout) if "name" in setting}
    assert found.get("HOST_KEY_CHECKING", True) is True
    assert "StrictHostKeyChecking=yes" in (ROOT / "ansible" / "ansible.cfg").read_text()


def test_secrets_of_an_inventory_stay_out_of_git() -> None:
    ignored = (ROOT / ".gitignore").read_text().splitlines()

    assert {"/ansible/*/secrets/", "/ansible/secrets/"} <= set(ignored)
