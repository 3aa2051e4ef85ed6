"""What the version before the rooms left behind is opened, and goes on, with today's code.

That version wrote the files: a service's database and an agent's token, what a job tells and keeps, a cluster.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hadoop.errors import HadoopError
from hadoop.local import lifecycle, state
from infosvc.access.audit_chain import Chain
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Outcome, Report, Run
from jobs.application.page import page
from jobs.application.status import JobStatus
from jobs.division.decision import Decision
from jobs.reports.report import JobReport
from tests.infosvc.conftest import serving

BEFORE = Path(__file__).parent / "fixtures" / "before_rooms"
SPEED = "images_per_second:mxnet_alexnet:32"


def test_a_service_goes_on_with_its_database(tmp_path: Path) -> None:
    shutil.copy(BEFORE / "infosvc.db", tmp_path)
    token = (BEFORE / "agent.token").read_text().strip()
    for number in (1, 2):
        with serving(f"sqlite:///{tmp_path}/infosvc.db") as service:
            client = service.client
            assert [one.data_name for one in client.producers()] == ["cost", "cpu", "cpu.cores", SPEED, "perf"]
            assert (client.producer("cpu").emits, client.producer("perf").inputs) == (("cpu.cores",), ("cpu",))
            slots = {slot.data_name: slot.running for slot in client.slots("n1").slots}
            assert slots | {slot.data_name: slot.running for slot in client.slots("n2").slots} == {
                "cpu": False,
                "cost": True,
            }
            (cpu,) = client.data("cpu", node="n1")
            assert (cpu.data_value, cpu.outcome, cpu.reason) == ("0.5", Outcome.FAILED, "no file")
            assert [one.data_value for one in client.data(SPEED)] == ["13.5"]
            assert [text for _, text in client.history("cpu", "n1").points][:1] == ["0.5"]
            assert {one.name for one in client.tokens()} >= {"an operator", "agent of n2"}
            with InfoClient(service.url, token) as agent:
                agent.report("n2", Report("boot", number, "1", (Run("cpu", Outcome.OK, 0.1, f"0.{number}"),)))
            assert [one.data_value for one in client.data("cpu", node="n2")] == [f"0.{number}"]
            client.put_node(f"new{number}", "127.0.0.1:9")
            chain = Chain(None)
            assert chain.follow(client.audit())
            chain.end()
            assert (chain.sequence, chain.broken) == (12 + number, None)


def test_a_decision_is_planned_anew() -> None:
    file = BEFORE / "decision.json"
    decision = Decision.from_bytes(file.read_bytes(), str(file))
    command = [sys.executable, "-m", "nodewise", "locality", "replay", str(file), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"NODEWISE_HOME": "/nowhere"})

    assert done.returncode == 0, done.stderr
    recorded, anew = (plan for plan in json.loads(done.stdout)["plans"] if plan["policy"] == decision.policy)
    assert recorded["images"] == anew["images"] == decision.plan.loads()
    assert sum(anew["images"].values()) == decision.items == 40
    assert Decision.from_bytes(decision.to_bytes(), "again") == decision


def test_a_report_says_what_it_said() -> None:
    before = json.loads((BEFORE / "report.json").read_text())
    now = JobReport.from_json(before).to_json()

    assert {key: now[key] for key in before} == before


def test_a_status_of_its_application_master_is_shown() -> None:
    before = json.loads((BEFORE / "status.json").read_text())
    status = JobStatus.from_json(before)
    now = status.to_json()

    assert {key: now[key] for key in before} == before
    assert (status.kind, status.unit, status.of) == ("classify", "images", 200)
    assert "worker1" in page(status)


def test_a_cluster_is_found_and_kept(tmp_path: Path) -> None:
    state.state_dir(tmp_path).mkdir(parents=True)
    shutil.copy(BEFORE / "cluster.json", state.state_dir(tmp_path))
    cluster = state.load(tmp_path)

    assert (cluster.subnet, cluster.size, cluster.user, cluster.cpus) == ("127.0.9", 4, "somebody", (0, 1, 0, 1))
    assert (cluster.jars, cluster.java, cluster.plugin) == (Path("/opt/jars"), Path("/opt/jre/bin/java"), True)
    state.save(replace(cluster, plugin=False))
    assert state.load(tmp_path) == replace(cluster, plugin=False)


def test_a_cluster_whose_jars_have_gone_goes_on_with_those_of_this_installation(
    tmp_path: Path,
) -> None:
    state.state_dir(tmp_path).mkdir(parents=True)
    shutil.copy(BEFORE / "cluster.json", state.state_dir(tmp_path))
    cluster = state.load(tmp_path)
    state.save(replace(cluster, user=state.current_user(), cpus=(), plugin=False))

    assert not cluster.jars.exists()
    with pytest.raises(HadoopError, match=r"the disk under .* is full"):  # the jars have been found before
        lifecycle.up(tmp_path, min_free_bytes=10**18)
