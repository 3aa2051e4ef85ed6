"""The OpenAPI document of the board is true: each schema allows what is answered, and no answer that lacks a field."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from infosvc.http.openapi.schemas import answer_schema
from infosvc.wire.fields import answer_of
from infosvc.wire.tasks import EXAMPLE_ID
from jobs.application.job_record import JobRecord
from jobs.application.status import ContainerStatus, JobStatus, NodeStatus
from jobs.dashboard.document import DESCRIBED
from jobs.dashboard.path_answers import FailedPlan, ShownPath
from jobs.dashboard.planning import plans
from jobs.dashboard.routes import ROUTES
from jobs.reports.report import Failure, InputValue, Phase
from locality.policies import POLICIES
from locality.types import Plan, PlanError, Terms
from tests.infosvc.schemas import against
from tests.jobs.decisions import NODES, WEIGHTS, decide, make_blocks
from tests.jobs.played import JOB, WAITING, WORKER, Hadoop, ended_app, make_report, running_app

WHERE = f"/jobs/{JOB}"
FORMS = Path(__file__).resolve().parents[1] / "fixtures" / "board_forms.json"
"""By call, what was answered before the schemas were made from records: each value's type in its place."""
BY_NAME = {"kinds", "loads", "section", "values"}
"""Objects of which each key is a name, so that the document cannot tell which ones there are."""


def test_every_call_of_the_list_is_described_and_no_other() -> None:
    assert {route.name for route in ROUTES} == set(DESCRIBED)


def run(hadoop: Hadoop) -> None:
    """The job runs: nothing is to be changed."""


def report(hadoop: Hadoop) -> None:
    hadoop.app |= {"state": "FINISHED", "finalStatus": "SUCCEEDED", "finishedTime": 1_700_000_060_000}
    made = replace(
        make_report(),
        failures=(Failure("alpha", WORKER, "lost node", 1.0),),
        phases=(
            Phase("container", -1.0, -0.5, "alpha"),
            Phase("network", -0.5, 0.0, "alpha"),
            Phase("network", -0.5, 0.0, "beta"),
        ),
        inputs=(InputValue("weight", "alpha", "1", 1.0),),
    )
    hadoop.stored["/out/a/report.json"] = json.dumps(made.to_json()).encode()


def fail(hadoop: Hadoop) -> None:
    hadoop.app |= {"state": "FINISHED", "finalStatus": "FAILED", "diagnostics": "no node\nat all"}


def leave_record(hadoop: Hadoop) -> None:
    hadoop.app |= {"state": "FINISHED", "finalStatus": "SUCCEEDED", "applicationTags": ""}
    status = JobStatus(
        *(JOB, "succeeded", 1, 1, 1, 0, 2.0, None),
        (NodeStatus("alpha", "done", 1, 1, 0, 0, 0, 0.0, said="exit code 0"),),
        news=("a copy ended",),
        kind="command",
        unit="copies",
        containers=(ContainerStatus("copy", 0, "alpha", WORKER, hadoop.address),),
        section={"Program": "./program"},
    )
    hadoop.stored[f"/user/me/.nodewise/records/{JOB}.json"] = JobRecord(status, "it ended").to_bytes()


def decided(hadoop: Hadoop) -> None:
    made = decide(speeds={"alpha": 2.0, "beta": 2.0, "gamma": 4.0})
    hadoop.stored[f"/user/me/.nodewise/decisions/{JOB}.json"] = made.to_bytes()


def reported(hadoop: Hadoop) -> None:
    note = b'{"at":1700000000.000,"name":"loss","step":1,"value":0.5}\n'
    hadoop.stored[f"/user/me/.nodewise/tasks/{EXAMPLE_ID}/values.1"] = note


def wait(hadoop: Hadoop) -> None:
    """The job waits, and may have what it asks for after others that ended."""
    hadoop.app |= WAITING | {"applicationTags": f"task:{EXAMPLE_ID}"}
    hadoop.others = [running_app(10, NODES[0], 1536)]
    hadoop.ended = [ended_app(number) for number in range(10)]


CALLS: dict[str, tuple[str, str, Callable[[Hadoop], None]]] = {
    "path with plans": ("/path", "/path?path=/data&capability=weight", run),
    "path without plans": ("/path", "/path?path=/data", run),
    "jobs": ("/jobs", "/jobs", run),
    "running job": ("/jobs/{job_id}", WHERE, run),
    "reported job": ("/jobs/{job_id}", WHERE, report),
    "failed job": ("/jobs/{job_id}", WHERE, fail),
    "recorded job": ("/jobs/{job_id}", WHERE, leave_record),
    "containers": ("/jobs/{job_id}/logs", f"{WHERE}/logs", run),
    "piece of a log": ("/jobs/{job_id}/logs", f"{WHERE}/logs?container={WORKER}", run),
    "decision": ("/jobs/{job_id}/decision", f"{WHERE}/decision", decided),
    "queues": ("/queue", "/queue", wait),
    "values of a task": ("/tasks/{task_id}/values", f"/tasks/{EXAMPLE_ID}/values", reported),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_schema_allows_what_is_answered_and_nothing_less(
    known: FlaskClient, hadoop: Hadoop, document: dict[str, Any], name: str
) -> None:
    path, call, prepare = CALLS[name]
    prepare(hadoop)

    answer = known.get(f"/api/v1{call}")

    assert answer.status_code == 200
    check(document, path, "get", 200, answer.get_json())


@pytest.mark.parametrize("name", CALLS)
def test_names_and_types_are_those_that_callers_know(known: FlaskClient, hadoop: Hadoop, name: str) -> None:
    _, call, prepare = CALLS[name]
    prepare(hadoop)

    assert form(known.get(f"/api/v1{call}").get_json()) == json.loads(FORMS.read_text())[name]


def test_a_path_that_is_being_listed_is_answered_by_its_schema(
    known: FlaskClient, hadoop: Hadoop, document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.dashboard.calls.LISTING_WAIT_SECONDS", 0.0)
    may_answer, hdfs = threading.Event(), hadoop.hdfs
    monkeypatch.setattr(hadoop, "hdfs", lambda *asked: may_answer.wait(60) and hdfs(*asked))

    answer = known.get("/api/v1/path?path=/data")

    may_answer.set()
    assert answer.status_code == 202
    check(document, "/path", "get", 202, answer.get_json())


def test_a_job_that_is_asked_to_end_says_so_by_its_schema(known: FlaskClient, document: dict[str, Any]) -> None:
    answer = known.delete(f"/api/v1{WHERE}")

    assert answer.status_code == 202
    check(document, "/jobs/{job_id}", "delete", 202, answer.get_json())
    deadline = time.monotonic() + 100
    while (job := known.get(f"/api/v1{WHERE}").get_json())["ending"]["state"] == "asked":
        assert time.monotonic() < deadline
        time.sleep(0.2)
    check(document, "/jobs/{job_id}", "get", 200, job)
    assert job["ending"]["state"] == "failed", "there is no cluster that the command could ask"


def test_a_policy_that_cannot_plan_says_why_by_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Plan:
        raise PlanError("it divides nothing")

    monkeypatch.setitem(POLICIES, "mine", refuse)
    made = plans(make_blocks(), WEIGHTS, Terms())
    models: dict[str, Any] = {}
    answer_schema(models, ShownPath)
    items = models["ShownPath"]["properties"]["plans"]["items"]

    assert made[-1] == FailedPlan("mine", "it divides nothing")
    for plan in map(answer_of, made):
        assert against(items, plan, models, closed=True) == []
        assert [key for key in plan if not against(items, {**plan, key: [[]]}, models)] == []


def test_every_field_of_an_answer_says_what_it_is(document: dict[str, Any]) -> None:
    assert len(document["definitions"]) > 25
    for name, model in document["definitions"].items():
        if name.endswith("Body"):  # it is sent, and no answer
            continue
        assert model["required"] == list(model["properties"]), name
        for key, said in model["properties"].items():
            assert {"type", "$ref", "allOf"} & set(said), (name, key)
    seconds = document["definitions"]["NodePlan"]["properties"]["moved_bytes"]
    assert (seconds["x-unit"], seconds["description"]) == ("bytes", "bytes that it reads from others")


def test_every_example_is_one_that_its_schema_allows(document: dict[str, Any]) -> None:
    for path, calls in document["paths"].items():
        for method, call in calls.items():
            for code, said in call["responses"].items() if method != "parameters" else ():
                if code.startswith("2") and said["schema"] != {"type": "file"}:
                    example = said["examples"]["application/json"]
                    assert against(said["schema"], example, document["definitions"], closed=True) == [], (path, code)


def check(document: Mapping[str, Any], path: str, method: str, status: int, answer: Any) -> None:
    """What was answered has every field that its schema names and no other, and each of them counts."""
    schema, models = document["paths"][path][method]["responses"][str(status)]["schema"], document["definitions"]

    assert against(schema, answer, models, closed=True) == []
    for where, broken in lacking(answer):
        assert against(schema, broken, models), f"without {where} it is allowed"


def form(said: Any) -> Any:
    """What was said with types for values, and of a list only the first item."""
    if isinstance(said, list):
        return [form(one) for one in said[:1]]
    if isinstance(said, dict):
        return {key: form(value) for key, value in said.items()}
    return type(said).__name__


def lacking(said: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """What was said without one of its fields, each in turn; of a list only the first item."""
    if isinstance(said, list) and said:
        for name, broken in lacking(said[0], f"{where}[]"):
            yield name, [broken, *said[1:]]
    if isinstance(said, dict):
        for key, value in said.items():
            if where.rpartition(".")[2] not in BY_NAME:
                yield f"{where}.{key}", {name: one for name, one in said.items() if name != key}
            for name, broken in lacking(value, f"{where}.{key}"):
                yield name, said | {key: broken}


def test_a_call_that_may_be_made_without_a_token_says_so(document: dict[str, Any]) -> None:
    for path, calls in document["paths"].items():
        for method, call in calls.items():
            if method != "parameters":
                assert (call.get("security") == []) == (
                    method == "get" and "/tasks/" not in path and path != "/queue"
                ), path
