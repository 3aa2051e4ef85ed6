"""A service on each of two masters, and their database on a worker: one is active, the other takes over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import lab
from lab.places import ROOT, SECURE
from tests.lab.playbooks import changes, play, until
from tests.recipes.pages import block

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(3600)]

MASTERS = ("master", "second")
WORKERS = ("worker1", "worker2", "worker3")
URLS = [f"https://{name}:8400" for name in MASTERS]
UNIT = "nodewise-infosvc"
ENDS = {
    "told to end": f"systemctl stop {UNIT}",
    # Stopped, too, as systemd would start it again after two seconds.
    "killed": f"systemctl kill --signal=KILL {UNIT}; systemctl stop {UNIT}",
}
ASK = (ROOT / "ansible/roles/infosvc/files/one_active.py").read_text()
STOP = "/var/lib/nodewise/stop-writing"
MANY = 20
WRITER = f"""
import json, pathlib, time
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Kind, Producer

token = pathlib.Path("/var/lib/nodewise/service/token").read_text().strip()
client = InfoClient("{",".join(URLS)}", token, ca_file="/etc/nodewise/tls/ca.pem")
client.put_producer(Producer("written", cmd="", time_max=3600, kind=Kind.PROGRAM, keep=7200))
acknowledged, pause, number, last = [], 0.0, 0, time.monotonic()
while len(acknowledged) <= {MANY} or not pathlib.Path("{STOP}").exists():
    number += 1
    try:
        client.put_value("written", "writer", number)
    except InfoError:
        continue
    acknowledged.append(number)
    pause, last = max(pause, time.monotonic() - last), time.monotonic()
    time.sleep(0.05)
stored = [int(value) for _, value in client.history("written", "writer").points]
client.delete_producer("written")
print(json.dumps({{"acknowledged": acknowledged, "pause": pause, "stored": stored}}))
"""
"""Writes numbers until it is told to end and MANY were acknowledged; says which, and the longest time between two."""


def find_active(name: str) -> str:
    """Which service is active, asked on one of the masters; LabError unless both answer and agree."""
    words = ["/etc/nodewise/tokens/policy", "/etc/nodewise/tls/ca.pem", *URLS]
    return lab.run(name, ["sudo", "python3", "-c", ASK, *words]).strip().removeprefix("https://").split(":")[0]


def stands() -> bool:
    """Whether one service is active and the other one follows it; else a LabError says what they do."""
    return find_active("master") in MASTERS


def as_nodewise(name: str, *argv: str, timeout: float = 600.0) -> str:
    """What a program prints that the service's user runs on a machine."""
    return lab.run(name, ["sudo", "-u", "nodewise", *argv], timeout)


def fresh(name: str) -> set[str]:
    """Workers whose agents report now, by the command on this machine."""
    said = json.loads(as_nodewise(name, "nodewise", "data", "get", "cpu_free_ratio", "--json"))
    return {datum["node_name"] for datum in said if datum["state"] == "fresh"}


@pytest.fixture
def active() -> Iterator[str]:
    """Where the active service is; at the end both run again."""
    until(stands, 180)
    found = find_active("master")
    yield found
    lab.run(found, ["sudo", "systemctl", "start", UNIT])
    until(stands, 180)


def other(name: str) -> str:
    (found,) = set(MASTERS) - {name}
    return found


@contextmanager
def writing(name: str) -> Iterator[Future[str]]:
    """A program that writes all the time on a machine, until the block ends; its result is what it says then."""
    lab.run(name, ["sudo", "rm", "-f", STOP])
    with ThreadPoolExecutor() as pool:
        argv = ["env", "PYTHONPATH=/opt/nodewise/code", "/opt/nodewise/service/bin/python", "-P", "-c", WRITER]
        said = pool.submit(as_nodewise, name, *argv)
        try:
            until(lambda: "writer" in as_nodewise(name, "nodewise", "data", "get", "written"), 60)
            yield said
        finally:
            as_nodewise(name, "touch", STOP)
    lab.run(name, ["sudo", "rm", "-f", STOP])


def test_what_the_page_says_of_the_inventory_is_what_the_lab_has() -> None:
    shown = [line.strip().split(":")[0] for line in block("services-inventory").splitlines()]
    told = [line.strip().split(":")[0] for line in SECURE.read_text().splitlines()]

    assert "infosvc_ha" in shown
    assert [name for name in shown if name not in told] == []


def test_the_page_shows_how_to_see_which_is_active() -> None:
    until(stands, 180)
    last = {}
    for name in MASTERS:
        said = lab.run(name, ["bash", "-eo", "pipefail", "-c", block("services-state")]).splitlines()
        assert all(any(worker in line for line in said) for worker in WORKERS)
        last[name] = said[-1]

    found = find_active("master")
    assert f"listening on https://{found}:8400, database mysql+pymysql://nodewise" in last[found]
    assert f"following https://{found}:8400, listening on https://{other(found)}:8400" in last[other(found)]


@pytest.mark.parametrize("name", MASTERS)
def test_each_master_has_a_service_and_what_it_needs_closed_to_others(name: str) -> None:
    files = ["service/token", "service/audit.key"]
    sums = {each: as_nodewise(each, "sha256sum", *(f"/var/lib/nodewise/{file}" for file in files)) for each in MASTERS}
    closed = [*(f"/var/lib/nodewise/{file}" for file in files), "/etc/nodewise/database_password"]
    closed += ["/etc/nodewise/tls/service.key"]

    assert lab.run(name, ["systemctl", "is-active", UNIT]).strip() == "active"
    assert sums["master"] == sums["second"]
    assert lab.run(name, ["sudo", "stat", "-c", "%a %U", *closed]).split("\n")[:-1] == ["600 nodewise"] * len(closed)
    assert fresh(name) == set(WORKERS)


@pytest.mark.parametrize("how", ENDS)
def test_the_other_service_takes_over_within_five_seconds(active: str, how: str) -> None:
    others = other(active)
    with writing(others) as said:
        lab.run(active, ["sudo", "sh", "-c", ENDS[how]], 120)
        assert as_nodewise(others, "nodewise", "node", "list", "--json")
        until(lambda: fresh(others) == set(WORKERS), 60)
        assert lab.run(active, ["sh", "-c", f"systemctl is-active {UNIT} || true"]).strip() in ("inactive", "failed")
    written = json.loads(said.result())

    assert len(written["acknowledged"]) > MANY
    assert set(written["acknowledged"]) - set(written["stored"]) == set()
    assert written["pause"] < 5.0

    lab.run(active, ["sudo", "systemctl", "start", UNIT])
    until(lambda: find_active(active) == others, 120)
    assert fresh(active) == set(WORKERS)


def test_a_task_goes_on_when_its_service_ends(active: str) -> None:
    submit = ["nodewise", "task", "submit", "--memory", "128", "--json", "--", "sleep", "20"]
    task = json.loads(as_nodewise(other(active), *submit))["task_id"]

    def runs() -> bool:
        shown = json.loads(as_nodewise(other(active), "nodewise", "task", "show", task, "--json"))
        return str(shown["state"]) == "running"

    until(runs, 120)
    lab.run(active, ["sudo", "sh", "-c", ENDS["killed"]], 120)

    assert json.loads(as_nodewise(other(active), "nodewise", "task", "wait", task, "--json"))["state"] == "succeeded"


def test_a_machine_that_loses_its_power_is_replaced_and_comes_back_as_the_one_that_follows(active: str) -> None:
    others = other(active)
    with writing(others) as said:
        lab.kill(active)
        until(lambda: fresh(others) == set(WORKERS), 120)
    written = json.loads(said.result())
    lab.start(active)

    assert set(written["acknowledged"]) - set(written["stored"]) == set()
    assert written["pause"] < 30.0  # nobody says that a machine is off, so callers wait for it first
    until(lambda: find_active(active) == others, 180)


def test_the_playbook_finds_nothing_to_change_whichever_is_active() -> None:
    until(stands, 180)
    lab.run(find_active("master"), ["sudo", "systemctl", "restart", UNIT], 120)
    until(stands, 180)

    assert changes(play("site.yml", inventory=SECURE)) == dict.fromkeys((*MASTERS, *WORKERS), 0)


def test_the_machine_of_the_database_is_not_removed() -> None:
    run = play("remove.yml", "-e", "node=worker2", inventory=SECURE)

    assert run.returncode != 0
    assert "worker2 has the database of the service: take that to another machine first" in run.stdout
