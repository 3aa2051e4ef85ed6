"""What a call does not know is refused by its name, but never in an agent's report, whose version may be another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from infosvc.wire.records import Kind, Outcome, Producer, Report, Role, Run

if TYPE_CHECKING:
    from tests.infosvc.conftest import Answer, Served, Serving


@pytest.fixture
def service(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A service that knows a name with a history on one node."""
    with serve(sqlite_url) as served:
        served.client.put_producer(Producer("cpu", "x", 1, keep=60))
        served.client.put_producer(Producer("told", "", 1, Kind.PROGRAM))
        served.client.put_node("n1", "127.0.0.1:9")
        yield served


def _refused(answer: Answer, field: str, status: int = 422) -> None:
    assert (answer.status, answer.error["field"]) == (status, field), answer.text
    assert field in answer.error["message"]


BODIES: dict[str, dict[str, Any]] = {
    "/api/v1/producers/new": {"cmd": "x", "time_max": 1},
    "/api/v1/nodes/n2": {"address": "127.0.0.1:9"},
    "/api/v1/nodes/n1/slots/cpu": {"running": False},
    "/api/v1/data/told/n1": {"data_value": "1"},
    "/api/v1/tokens": {"name": "a", "role": "reader"},
    "/api/v1/session": {"token": "a-token-for-the-tests"},
}


@pytest.mark.parametrize("path", BODIES)
def test_a_field_that_no_call_knows_is_refused_by_name(service: Served, path: str) -> None:
    method = "POST" if path in ("/api/v1/tokens", "/api/v1/session") else "PUT"
    _refused(service.ask(method, path, BODIES[path] | {"tll": 100}), "tll")
    assert service.client.tokens() == [] and [one.node_name for one in service.client.nodes()] == ["n1"]
    twice = "{" + ", ".join(f'"{name}": 1, "{name}": 1' for name in BODIES[path]) + "}"
    _refused(service.ask(method, path, twice), next(iter(BODIES[path])))
    assert service.ask(method, path, BODIES[path]).status in (200, 201, 204)


def test_an_answer_may_be_changed_and_sent_back(service: Served) -> None:
    for path in ("/api/v1/producers/cpu", "/api/v1/nodes/n1"):
        assert service.ask("PUT", path, service.ask("GET", path).json).status == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PUT", "/api/v1/nodes/n2", {"address": "127.0.0.1:9", "agent_version": None}, "agent_version"),
        ("POST", "/api/v1/tokens", {"name": "a", "role": "agent", "node_name": "n1", "replace": None}, "replace"),
    ],
)
def test_null_is_refused_where_nothing_can_be_null(
    service: Served, method: str, path: str, body: dict[str, Any], field: str
) -> None:
    _refused(service.ask(method, path, body), field)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/v1/nodes?state=lost", "state"),
        ("/api/v1/data/cpu?maxage=1", "maxage"),
        ("/api/v1/data?name=cpu&nodes=n1", "nodes"),
        ("/api/v1/data/cpu?max_age=1&max_age=2", "max_age"),
        ("/api/v1/data/cpu/n1?node=n2", "node"),
        ("/api/v1/audit?offset=2", "offset"),
        ("/api/v1/events?types=node", "types"),
        ("/api/v1/data/cpu?node=a%20b", "node"),
        ("/api/v1/data?name=cpu&node=", "node"),
        ("/api/v1/data/cpu/a%20b/history", "node_name"),
    ],
)
def test_a_parameter_that_is_not_known_or_no_node_is_refused(service: Served, path: str, field: str) -> None:
    _refused(service.ask("GET", path), field)


def test_what_is_known_goes_on(service: Served) -> None:
    for path in ("/api/v1/data?name=cpu&name=told", "/api/v1/data/cpu?node=n1&max_age=5", "/api/v1/audit?since=1",
                 "/metrics?from=prometheus", "/?theme=dark", "/api/v1/?docExpansion=none"):  # fmt: skip
        assert service.ask("GET", path).status == 200, path


def test_a_report_of_another_version_is_taken_and_counted(service: Served) -> None:
    _, agent = service.client.create_token("agent", Role.AGENT, "n1")
    service.client.put_slot("n1", "cpu", True)
    run = Run("cpu", Outcome.OK, 0.1, value="1").to_json()
    for sequence, extra in enumerate(({}, {"colour": "red"}), 1):
        body = Report("b", sequence).to_json() | {"runs": [run | extra]} | extra
        assert service.ask("POST", "/api/v1/nodes/n1/report?more=1", body, agent).status == 200
    wrong = Report("b", 3).to_json() | {"runs": 5, "colour": "red"}
    assert service.ask("POST", "/api/v1/nodes/n1/report", wrong, agent).status == 422
    assert service.client.data("cpu")[0].data_value == "1"
    counted = re.findall(r"(?m)^nodewise_reports_with_unknown_fields_total (\S+)", service.ask("GET", "/metrics").text)
    assert counted == ["1.0"]
