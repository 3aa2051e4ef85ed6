"""A cluster whose workers get no Python of their own: what machines are given, what users are told, and the proof."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.commands.task.task_submit import submit
from tests.ansible.conftest import ROOT, played

ROLES = ROOT / "ansible" / "roles"
VARIABLES = [
    str(ROLES / file)
    for file in (
        "nodewise/defaults/main.yml",
        "jobs/defaults/main.yml",
        "jobs/vars/main.yml",
        "infosvc/defaults/main.yml",
        "cluster/defaults/main.yml",
        "cluster/vars/main.yml",
    )
]
LOCAL: dict[str, Any] = {
    "all": {"children": {"master": {"hosts": {"head": {"ansible_connection": "local"}}}, "workers": {"hosts": {}}}}
}


def played_tasks(folder: Path, tasks: list[dict[str, Any]], **given: Any) -> str:
    """What a playbook of these tasks says, with the roles' variables and these."""
    book = {"hosts": "all", "gather_facts": False, "vars_files": VARIABLES, "tasks": tasks}
    (folder / "book.yml").write_text(json.dumps([book]))
    answer = played(folder, folder / "book.yml", LOCAL, "-e", json.dumps(given))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def values(folder: Path, names: list[str], **given: Any) -> dict[str, Any]:
    """What these variables are."""
    content = "{{ dict(names | zip(q('vars', *names))) | to_json }}"
    copied = {"content": content, "dest": str(folder / "values.json"), "mode": "0644"}
    played_tasks(folder, [{"copy": copied, "vars": {"names": names}}], **given)
    found: dict[str, Any] = json.loads((folder / "values.json").read_text())
    return found


@pytest.mark.parametrize(
    ("given", "parts", "python"),
    [
        ({}, ["worker", "service"], "/opt/nodewise/worker/bin/python"),
        ({"nodewise_worker_python": False}, ["service"], "none"),
        ({"nodewise_worker_python": "false"}, ["service"], "none"),
    ],
    ids=["as usual", "without", "without, as -e says it"],
)
def test_machines_get_the_pythons_that_the_inventory_wants(
    tmp_path: Path, given: dict[str, Any], parts: list[str], python: str
) -> None:
    found = values(tmp_path, ["jobs_parts", "infosvc_client_settings"], nodewise_java_home="/java", **given)

    assert found["jobs_parts"] == parts
    assert found["infosvc_client_settings"]["NODEWISE_WORKER_PYTHON"] == python


def test_the_proof_runs_in_the_environment_that_is_named(tmp_path: Path) -> None:
    named = values(tmp_path, ["cluster_proof_job"], cluster_env="workers@1")["cluster_proof_job"]
    own = values(tmp_path, ["cluster_proof_job"])["cluster_proof_job"]

    assert named == [*own, "--env", "workers@1"]
    assert own[:3] == ["/usr/local/bin/nodewise", "job", "submit"]


@pytest.mark.parametrize(
    ("given", "proof"),
    [
        ({}, "job"),
        ({"nodewise_worker_python": False}, "task"),
        ({"nodewise_worker_python": False, "cluster_env": "workers@1"}, "job"),
    ],
    ids=["own Python", "no Python", "an environment"],
)
def test_a_task_is_the_proof_where_no_job_can_run(
    tmp_path: Path, payload: Path, given: dict[str, Any], proof: str
) -> None:
    role = tmp_path / "tasks"
    role.mkdir()
    shutil.copy(ROLES / "cluster/tasks/job.yml", role)
    for kind in ("job", "task"):
        said = [{"copy": {"content": kind, "dest": str(tmp_path / "ran"), "mode": "0644"}}]
        (role / f"run_{kind}.yml").write_text(json.dumps(said))
    given |= {"nodewise_payload": str(payload), "cluster_proven_file": str(tmp_path / "proven")}

    played_tasks(tmp_path, [{"include_tasks": str(role / "job.yml")}], **given)

    assert (tmp_path / "ran").read_text() == proof


def test_the_task_in_place_of_a_job_is_one_that_the_command_takes(tmp_path: Path) -> None:
    argv = values(tmp_path, ["cluster_proof_task"])["cluster_proof_task"]
    context = submit.make_context("submit", argv[3:], obj=ROOT)

    assert argv[:3] == ["/usr/local/bin/nodewise", "task", "submit"]
    assert context.params["wait"]
    assert context.params["argv"][0] == "/usr/bin/python3"


def test_the_workers_python_is_taken_away_and_the_services_stays(tmp_path: Path) -> None:
    releases = tmp_path / "prefix" / "releases"
    for name in ("worker-1", "worker-2", "service-1"):
        (releases / name).mkdir(parents=True)
    for part in ("worker", "service"):
        (tmp_path / "prefix" / part).symlink_to(releases / f"{part}-1")
    tasks = [{"include_tasks": str(ROLES / "jobs/tasks/no_python.yml")}]

    first = played_tasks(tmp_path, tasks, nodewise_prefix=str(tmp_path / "prefix"))
    second = played_tasks(tmp_path, tasks, nodewise_prefix=str(tmp_path / "prefix"))

    assert [one.name for one in releases.iterdir()] == ["service-1"]
    assert {one.name for one in releases.parent.iterdir()} == {"releases", "service"}
    assert "changed=1" in first and "changed=0" in second
