"""The board's calls: what they read of Hadoop's answers, and how they refuse; Hadoop is played over real HTTP."""

from __future__ import annotations

import json

import pytest
from flask.testing import FlaskClient

from hadoop.rest.pages import Limits
from infosvc.wire.records import Role
from jobs.application.job_record import JobRecord
from jobs.application.status import ContainerStatus, JobStatus, NodeStatus
from jobs.dashboard.sources.site import Place, Site
from locality.policies import POLICIES
from tests.jobs.decisions import NODES, decide
from tests.jobs.played import JOB, MASTER, WORKER, Hadoop, make_report


def test_reading_takes_a_reader_of_tasks_a_user_and_ending_a_job_an_admin(
    board: FlaskClient, declared: dict[str, Role]
) -> None:
    assert declared.pop("end") is Role.ADMIN
    of_tasks = ("task_log", "task_values", "task_decision", "task_outputs", "task_output_file")
    assert {declared.pop(name) for name in ("queue", "infer", "give", *of_tasks)} == {Role.USER}
    assert set(declared) == {"path", "jobs", "job", "logs", "decision", "pools", "pool"}
    assert set(declared.values()) == {Role.READER}


@pytest.mark.parametrize("call", ["/path?path=/data", "/jobs", f"/jobs/{JOB}", f"/jobs/{JOB}/logs"])
def test_without_a_cluster_every_call_says_what_to_set(board: FlaskClient, call: str) -> None:
    answer = board.get(f"/api/v1{call}")

    assert answer.status_code == 503
    assert "set HADOOP_CONF_DIR" in answer.get_json()["error"]["message"]


REFUSED = {
    "relative": ("/path?path=data", 422, "path"),
    "nothing": ("/path", 422, "path"),
    "upwards": ("/path?path=/a/../b", 422, "path"),
    "capability": ("/path?path=/data&capability=a%20b", 422, "capability"),
    "strange path": ("/path?path=/nowhere", 404, None),
    "no id": ("/jobs/job_1", 422, "job_id"),
    "strange id": ("/jobs/application_1_0009", 404, None),
    "strange container": (f"/jobs/{JOB}/logs?container=container_9", 404, "container"),
    "stream": (f"/jobs/{JOB}/logs?container={MASTER}&stream=syslog", 422, "stream"),
    "offset": (f"/jobs/{JOB}/logs?container={MASTER}&offset=-1", 422, "offset"),
    "no decision": (f"/jobs/{JOB}/decision", 404, None),
}


@pytest.mark.parametrize(("call", "status", "field"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(known: FlaskClient, call: str, status: int, field: str | None) -> None:
    answer = known.get(f"/api/v1{call}")

    assert answer.status_code == status
    assert answer.get_json()["error"]["field"] == field


def test_a_path_is_shown_with_its_nodes_and_every_policy(known: FlaskClient) -> None:
    body = known.get("/api/v1/path?path=hdfs:///data&capability=weight").get_json()

    assert (body["state"], body["path"], body["files"], body["blocks"]) == ("ready", "/data", 6, 6)
    assert [(node["node_name"], node["blocks"], node["takes_work"]) for node in body["nodes"]] == [
        (node, 2, True) for node in NODES
    ]
    assert body["replicas"] == [{"replicas": 1, "blocks": 6}]
    assert [plan["policy"] for plan in body["plans"]] == list(POLICIES)
    for plan in body["plans"]:
        assert sum(node["images"] for node in plan["nodes"]) == 6
        assert sum(node["moved_bytes"] for node in plan["nodes"]) == plan["bytes_moved"]
        assert max(node["makespan"] for node in plan["nodes"]) == pytest.approx(plan["makespan_seconds"])
    assert not body["access_cost"]["measured"]
    assert len(body["access_cost"]["entries"]) == 9


@pytest.mark.parametrize(("asked", "said"), [("", "name a capability"), ("&capability=other", "other")])
def test_without_values_the_blocks_are_shown_and_why_nothing_is_planned(
    known: FlaskClient, asked: str, said: str
) -> None:
    body = known.get(f"/api/v1/path?path=/data{asked}").get_json()

    assert body["blocks"] == 6
    assert body["plans"] == []
    assert said in body["no_plans"]


def test_a_running_job_is_shown_live(known: FlaskClient) -> None:
    (listed,) = known.get("/api/v1/jobs").get_json()["jobs"]
    job = known.get(f"/api/v1/jobs/{JOB}").get_json()

    assert (listed["job_id"], listed["progress"], listed["output"]) == (JOB, 0.25, "/out/a")
    assert (listed["started_at"], listed["finished_at"]) == (1_700_000_000.0, None)
    assert {key: job[key] for key in listed} == listed
    assert job["headline"] == "works"
    assert job["status"]["nodes"][0]["beyond_plan"] == 3
    assert (job["report"], job["no_report"], job["ending"]) == (None, None, None)


@pytest.mark.parametrize("limits", [Limits(size_bytes=10), Limits(seconds=0)], ids=["size", "time"])
def test_an_application_master_that_goes_on_and_on_says_nothing(
    known: FlaskClient, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    monkeypatch.setattr("jobs.dashboard.sources.yarn.STATUS_LIMITS", limits)

    job = known.get(f"/api/v1/jobs/{JOB}").get_json()

    assert (job["job_id"], job["status"]) == (JOB, None)


def test_a_job_that_succeeded_has_its_report(known: FlaskClient, hadoop: Hadoop) -> None:
    hadoop.app |= {"state": "FINISHED", "finalStatus": "SUCCEEDED", "finishedTime": 1_700_000_060_000}
    hadoop.stored["/out/a/report.json"] = json.dumps(make_report().to_json()).encode()

    job = known.get(f"/api/v1/jobs/{JOB}").get_json()

    assert job["status"] is None
    assert job["headline"] == "succeeded"
    assert job["report"]["images"] == 4
    assert job["finished_at"] == 1_700_000_060.0


def test_a_report_that_a_later_job_wrote_there_is_not_shown(known: FlaskClient, hadoop: Hadoop) -> None:
    hadoop.app |= {"state": "FINISHED", "finalStatus": "SUCCEEDED"}
    later = make_report().to_json() | {"application_id": "application_1700000000000_0002"}
    hadoop.stored["/out/a/report.json"] = json.dumps(later).encode()

    job = known.get(f"/api/v1/jobs/{JOB}").get_json()

    assert job["report"] is None
    assert "application_1700000000000_0002" in job["no_report"]


def test_a_job_without_output_that_was_killed_is_shown_as_killed(known: FlaskClient, hadoop: Hadoop) -> None:
    hadoop.app |= {"state": "KILLED", "finalStatus": "KILLED", "applicationTags": "kind=command"}
    running = JobStatus(JOB, "running", 1, 2, 1, 0, 3.0, 3.0, (NodeStatus("n1", "working", 1, 0, 0, 0, 0, 0.0),))
    hadoop.stored[f"/user/me/.nodewise/records/{JOB}.json"] = JobRecord(running).to_bytes()

    record = known.get(f"/api/v1/jobs/{JOB}").get_json()["record"]

    assert (record["state"], record["done"], record["seconds_left"]) == ("killed", 1, None)
    assert record["nodes"][0]["state"] == "ended"


def test_a_job_without_output_is_shown_as_its_application_master_left_it(known: FlaskClient, hadoop: Hadoop) -> None:
    hadoop.app |= {"state": "FINISHED", "finalStatus": "SUCCEEDED", "applicationTags": ""}
    nodes = (NodeStatus("alpha", "done", 1, 1, 0, 0, 0, 0.0, said="exit code 0"),)
    containers = (ContainerStatus("copy", 0, "alpha", WORKER, hadoop.address),)
    status = JobStatus(
        JOB, "succeeded", 1, 1, 1, 0, 2.0, None, nodes, kind="command", unit="copies", containers=containers
    )
    record = JobRecord(status, "1 copies ended with exit code 0")
    hadoop.stored[f"/user/me/.nodewise/records/{JOB}.json"] = record.to_bytes()
    hadoop.logs[MASTER, "stdout"] = "nothing about containers\n"

    job = known.get(f"/api/v1/jobs/{JOB}").get_json()
    logs = known.get(f"/api/v1/jobs/{JOB}/logs").get_json()

    assert (job["report"], job["no_report"], job["record"]["unit"]) == (None, None, "copies")
    assert job["record"]["nodes"][0]["said"] == "exit code 0"
    assert [(one["container_id"], one["role"]) for one in logs["containers"]] == [(MASTER, "master"), (WORKER, "copy")]


def test_a_decision_is_explained_by_the_job_s_id(known: FlaskClient, hadoop: Hadoop) -> None:
    hadoop.stored[f"/user/me/.nodewise/decisions/{JOB}.json"] = decide().to_bytes()

    body = known.get(f"/api/v1/jobs/{JOB}/decision").get_json()

    assert [node["node_name"] for node in body["nodes"]] == list(NODES)
    assert body["heading"][0].startswith(JOB)


def test_logs_come_piece_by_piece_in_whole_lines(known: FlaskClient, hadoop: Hadoop) -> None:
    where = f"/api/v1/jobs/{JOB}/logs"
    found = known.get(where).get_json()["containers"]
    first = known.get(f"{where}?container={WORKER}").get_json()
    hadoop.logs[WORKER, "stdout"] += "ee\n"
    second = known.get(f"{where}?container={WORKER}&offset={first['next']}").get_json()

    assert [(one["container_id"], one["role"]) for one in found] == [(MASTER, "master"), (WORKER, "worker")]
    assert (first["text"], first["next"], first["more"]) == ("one\ntwo\n", 8, False)
    assert second["text"] == "three\n"


def test_of_a_long_log_the_end_is_answered(known: FlaskClient, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.dashboard.log_pieces.MOST_TAIL", 8)
    hadoop.logs[WORKER, "stdout"] = "one\ntwo\nthree\n"
    where = f"/api/v1/jobs/{JOB}/logs?container={WORKER}"

    for asked in (0, 3, 99):
        piece = known.get(f"{where}&offset={asked}").get_json()
        assert (piece["offset"], piece["next"], piece["text"]) == (6, 14, "o\nthree\n")
    assert known.get(f"{where}&offset=8").get_json()["text"] == "three\n"


@pytest.mark.parametrize(
    ("collects", "state", "status"), [(True, "FINISHED", 404), (True, "RUNNING", 200), (False, "FINISHED", 200)]
)
def test_of_a_log_that_yarn_has_collected_it_is_told_who_reads_it(
    collects: bool, state: str, status: int, known: FlaskClient, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    http = f"http://{hadoop.address}"
    monkeypatch.setattr(Site, "place", lambda self: Place(self.home, http, http, "me", collects_logs=collects))
    hadoop.app |= {"state": state}

    answer = known.get(f"/api/v1/jobs/{JOB}/logs?container={WORKER}&stream=stderr")

    assert answer.status_code == status
    if status == 404:
        said = answer.get_json()["error"]["message"]
        assert f"does not have the stderr of {WORKER} any more, as YARN has collected it" in said
        assert f"`nodewise job logs {JOB}` reads it" in said


def test_what_a_job_prints_leads_to_no_other_pages(known: FlaskClient, hadoop: Hadoop) -> None:
    own = WORKER[:-1]
    hadoop.logs[MASTER, "stdout"] += "".join(
        f"started {container} at {where}\n"
        for container, where in (
            ("container_1/../../jmx", hadoop.address),
            ("container_1700000000000_0002_01_000001", hadoop.address),
            (f"{own}\N{SUPERSCRIPT TWO}", hadoop.address),
            (f"{own}3", f"{hadoop.address}/jmx?x=:1"),
            (f"{own}4", "192.0.2.1:80"),
            (f"{own}5", "127.0.0.1:99999"),
        )
    )

    found = known.get(f"/api/v1/jobs/{JOB}/logs").get_json()["containers"]

    assert [one["container_id"] for one in found] == [MASTER, WORKER]


@pytest.mark.parametrize("kind", ["SPARK", None])
def test_what_is_no_job_of_ours_is_neither_shown_nor_ended(known: FlaskClient, hadoop: Hadoop, kind: str) -> None:
    hadoop.app["applicationType"] = kind
    where = f"/api/v1/jobs/{JOB}"

    for answer in (known.get(where), known.get(f"{where}/logs?container={MASTER}"), known.delete(where)):
        assert answer.status_code == 404
        assert "not a job of nodewise" in answer.get_json()["error"]["message"]


def test_an_answer_that_would_fill_the_memory_is_not_read_to_its_end(
    known: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hadoop.rest.webhdfs.LIMITS", Limits(size_bytes=100))

    answer = known.get("/api/v1/path?path=/data")

    assert answer.status_code == 503
    assert "/webhdfs/v1/data is more than" in answer.get_json()["error"]["message"]


def test_a_job_that_has_ended_is_not_ended_again(known: FlaskClient, hadoop: Hadoop) -> None:
    hadoop.app |= {"state": "KILLED", "finalStatus": "KILLED"}

    answer = known.delete(f"/api/v1/jobs/{JOB}")

    assert answer.status_code == 409


def test_hadoop_that_is_away_is_said_to_be(known: FlaskClient, hadoop: Hadoop) -> None:
    hadoop.close()

    answer = known.get("/api/v1/jobs")

    assert answer.status_code == 503
    assert "does not answer" in answer.get_json()["error"]["message"]
