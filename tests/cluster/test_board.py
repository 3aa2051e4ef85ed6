"""The board's calls on a real cluster, asked of the service that `nodewise serve` runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from infosvc.wire.records import Kind, Producer
from locality.policies import POLICIES
from tests.cluster.site import BROKEN, PICTURES, Site, succeed, until

IMAGES = PICTURES + len(BROKEN)
CAPABILITY = "board_weight"
OUTPUT = "/out/board"


@pytest.fixture(scope="module")
def site(site: Site) -> Site:
    client = site.client()
    client.put_producer(Producer(CAPABILITY, cmd="", time_max=3600, kind=Kind.PROGRAM))
    for weight, node in enumerate(site.cluster.nodes):
        client.put_value(CAPABILITY, node, weight)
    return site


@pytest.fixture(scope="module")
def job(site: Site) -> dict[str, Any]:
    """The report of a job that has ended."""
    found: dict[str, Any] = json.loads(succeed(site.submit(f"hdfs://{OUTPUT}", capability=CAPABILITY)))
    return found


def ask(site: Site, where: str, method: str = "GET", token: bool = True, **query: Any) -> tuple[int, dict[str, Any]]:
    """The status and the body of an answer; while the service waits for Hadoop in vain it is asked again."""

    def look() -> tuple[int, dict[str, Any]] | None:
        status, body = _ask(site, where, method, token, **query)
        if status != 503:
            return status, body
        print(body)  # for whoever reads why a test has failed
        return None

    answer: tuple[int, dict[str, Any]] = until(look)
    return answer


def _ask(site: Site, where: str, method: str, token: bool, **query: Any) -> tuple[int, dict[str, Any]]:
    shown = {"Authorization": f"Bearer {site.token_file.read_text().strip()}"} if token else {}
    url = f"{site.url}/api/v1{where}" + (f"?{urlencode(query)}" if query else "")
    try:
        with urlopen(Request(url, method=method, headers=shown), timeout=120) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def ready(site: Site, **query: Any) -> dict[str, Any]:
    """A path once it is listed."""

    def look() -> dict[str, Any] | None:
        status, body = ask(site, "/path", **query)
        assert status in (200, 202), body
        return body if status == 200 else None

    found: dict[str, Any] = until(look)
    return found


def test_the_blocks_are_those_that_the_command_shows(site: Site) -> None:
    shown = ready(site, path="hdfs:///data/images", capability=CAPABILITY)
    told = json.loads(succeed(site.nodewise("locality", "blocks", "/data/images", "--json")))

    assert (shown["files"], shown["blocks"], shown["size_bytes"]) == (told["files"], told["blocks"], told["size_bytes"])
    keys = ("node_name", "rack", "blocks", "bytes", "files")
    assert [[node[key] for key in keys] for node in shown["nodes"]] == [
        [node[key] for key in keys] for node in told["nodes"]
    ]


def test_the_plans_are_those_that_the_command_shows(site: Site) -> None:
    shown = ready(site, path="/data/images", capability=CAPABILITY)
    words = ("locality", "plan", "/data/images", "--capability", CAPABILITY, "--json")
    told = json.loads(succeed(site.nodewise(*words)))

    assert [plan["policy"] for plan in shown["plans"]] == list(POLICIES)
    for ours, theirs in zip(shown["plans"], told["plans"], strict=True):
        if ours["policy"] != "local_only":  # which goes by the order of holders, and HDFS shuffles that in each listing
            assert ours["makespan_over_bound"] == pytest.approx(theirs["makespan_over_bound"])
        assert ours["bytes_moved_optimal"] == theirs["bytes_moved_optimal"]


def test_a_finished_job_is_listed_reported_and_explained(site: Site, job: dict[str, Any]) -> None:
    job_id = job["job_id"]
    rows = {row["job_id"]: row for row in ask(site, "/jobs")[1]["jobs"]}
    shown = ask(site, f"/jobs/{job_id}")[1]
    why = ask(site, f"/jobs/{job_id}/decision")[1]

    assert (rows[job_id]["final"], rows[job_id]["output"]) == ("SUCCEEDED", OUTPUT)
    assert shown["report"]["images"] == job["images"] == IMAGES
    assert shown["report"]["timeline"]["lanes"]
    assert sum(node["images"] for node in why["nodes"]) == IMAGES


def test_logs_come_from_every_container(site: Site, job: dict[str, Any]) -> None:
    where = f"/jobs/{job['job_id']}/logs"
    found = ask(site, where)[1]["containers"]

    assert {one["role"] for one in found} == {"master", "worker"}
    master = next(one for one in found if one["role"] == "master")
    piece = ask(site, where, container=master["container_id"])[1]
    assert "plan: " in piece["text"]
    assert piece["next"] == len(piece["text"].encode())


def test_a_running_job_is_shown_live_and_ended_by_an_admin(site: Site, tmp_path: Path) -> None:
    # One that does not end of itself meanwhile.
    job_id = json.loads(succeed(site.nodewise("job", "run", "--json", "--", "sleep", "600")))["job_id"]
    until(lambda: ask(site, f"/jobs/{job_id}")[1].get("status"))

    assert ask(site, f"/jobs/{job_id}", "DELETE", token=False)[0] in (401, 403)
    status, body = ask(site, f"/jobs/{job_id}", "DELETE")
    assert (status, body["ending"]["state"]) == (202, "asked")
    ended = until(lambda: found if (found := ask(site, f"/jobs/{job_id}")[1])["ended"] else None)
    assert ended["final"] == "KILLED"
    until(lambda: ask(site, f"/jobs/{job_id}")[1]["ending"]["state"] == "done")
    assert any(f"/jobs/{job_id}" in entry.call for entry in site.client().audit())


def test_what_is_not_there_is_refused(site: Site) -> None:
    assert ask(site, "/path", path="/no/such/path")[0] == 404
    assert ask(site, "/jobs/application_1_0001")[0] == 404
    assert ask(site, "/jobs/one")[0] == 422
