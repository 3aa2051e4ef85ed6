"""The recipes for operators, on the lab's machines."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import lab
from lab.places import INVENTORY, PLAYBOOKS, ROOT
from tests.lab.playbooks import agents, changes, sweep, until
from tests.recipes.pages import block

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(3600)]

WORKERS = {"worker1", "worker2", "worker3", "worker4"}


def on_master(text: str, folder: str = "/tmp", timeout: float = 900.0) -> str:
    """What commands print to the operator who logs in there."""
    return lab.run("master", ["bash", "-eo", "pipefail", "-c", f"cd {folder}\n{text}"], timeout)


def here(text: str, timeout: float) -> subprocess.CompletedProcess[str]:
    """Commands in a checkout's shell."""
    settings = {"LC_ALL": "C.UTF-8", "ANSIBLE_NOCOLOR": "1"}
    words = ["bash", "-eo", "pipefail", "-c", text]
    return subprocess.run(words, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, timeout=timeout)


@pytest.fixture
def folder() -> str:
    """A folder of the operator's on the master."""
    return on_master("mktemp -d").strip()


def test_the_playbooks_of_the_installation_run() -> None:
    lines = block("install").splitlines()
    assert lines[0].startswith("scripts/setup --ansible && scripts/payload")  # as `scripts/lab up` has done
    enter, *plays = lines[-3:]
    assert enter.startswith("cd ansible") and all(line.startswith("ansible-playbook") for line in plays)
    inventory = str(INVENTORY.relative_to(PLAYBOOKS))
    text = "\n".join([enter, *(line.replace("home/inventory.yml", inventory) for line in plays)])

    done = here(text, 3000)

    assert set(changes(done)) == {"master", *WORKERS}


def test_the_first_inventory_is_one_that_ansible_reads(tmp_path: Path) -> None:
    make = next(line for line in block("install").splitlines() if line.startswith("mkdir ansible/home"))
    text = make.replace("ansible/home", str(tmp_path / "home"))

    done = here(f"{text}\n.venv-ansible/bin/ansible-inventory -i {tmp_path}/home/inventory.yml --list", 120)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["master"]["hosts"] == ["head"]


def test_the_commands_on_the_master_work() -> None:
    sweep("/data/images", "/out/run1")
    try:
        said = on_master(block("on-the-master"), timeout=1800)
        rows = json.loads(lab.nodewise("job", "result", "hdfs:///out/run1", "--json"))
    finally:
        sweep("/data/images", "/out/run1")
        on_master("sudo rm -rf /var/lib/nodewise/pictures")

    assert len({row["path"] for row in rows}) == 100
    assert all(worker in said for worker in WORKERS)


def test_the_services_database_is_dumped_and_restored(folder: str) -> None:
    lab.nodewise("producer", "put", "kept_note", "--kind", "program", "--time-max", "3600", "--keep", "1h")
    lab.nodewise("data", "put", "kept_note", "worker1", "before")
    try:
        on_master(block("back-up-mariadb"), folder)
        assert on_master("stat -c %a nodewise.sql", folder).strip() == "600"
        lab.nodewise("data", "put", "kept_note", "worker1", "after")

        on_master(block("restore-mariadb"), folder)

        until(lambda: [state for state in agents().values() if state != "ready"] == [], 120)
        (datum,) = json.loads(lab.nodewise("data", "get", "kept_note", "--json"))
        assert (datum["node_name"], datum["data_value"]) == ("worker1", "before")
        assert set(agents()) == WORKERS
    finally:
        lab.nodewise("producer", "rm", "kept_note")
        on_master(f"rm -r {folder}")


def test_the_rest_of_the_master_is_packed(folder: str) -> None:
    umask, pack, *names = block("back-up-master").splitlines()
    try:
        # tar says 1 when a file grew while it was read, as logs do; what it read is there all the same.
        on_master(f"{umask}\n{pack} || [ $? = 1 ]", folder)
        listed = on_master("sudo tar -tzf nodewise.tar.gz", folder)
        on_master("\n".join(names), folder)
        images = re.findall(r"fsimage_(\d+)\n", on_master("sudo tar -tzf names.tar.gz", folder))
    finally:
        on_master(f"sudo rm -r {folder}")

    for place in ("etc/nodewise/tls/authority.key", "etc/hadoop/core-site.xml", "var/lib/nodewise/service/token"):
        assert place in listed.splitlines()
    assert max(map(int, images)) > 0, "the names of a file system to which nothing was ever written"


@pytest.mark.long
def test_the_papers_experiment_runs_in_small(tmp_path: Path) -> None:
    up, bench = block("paper").splitlines()
    assert up == "scripts/lab up"

    done = here(f"{bench} --quick --output {tmp_path / 'paper'} --journal {tmp_path / 'journal'}", 3500)

    assert done.returncode == 0, done.stderr[-3000:]
    assert any((tmp_path / "paper").iterdir())
