"""Every call times every kind of caller, taken from the service's own list of calls."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from flask import Flask

from infosvc.access.roles import needs, open_to_all, required_roles
from infosvc.core.service import components_of
from infosvc.wire.errors import Forbidden
from infosvc.wire.records import Producer, Role
from infosvc.wire.task_spec import TaskSpec

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

METHODS = ("GET", "HEAD", "OPTIONS", "PUT", "POST", "DELETE")
READING = ("GET", "HEAD", "OPTIONS")
TASK = {"task_id": "task_0123456789abcdef", "sha256": "0" * 64}
OTHERS = {"filename": "swagger-ui.css", "call": "x", "tunnel_id": "0f" * 16, "alert_id": "alert_" + "0f" * 8}
NAMES = {"data_name": "cpu", "node_name": "n1"} | OTHERS | TASK
SPEC = TaskSpec(["train"])
MLFLOW = ("/api/2.0/mlflow", "/api/3.0/mlflow")

# What a reader of one node may read.
OF_ONE_NODE = (
    "/api/v1/data/<data_name>/<node_name>",
    "/api/v1/data/<data_name>/<node_name>/history",
    "/api/v1/data/<data_name>/<node_name>/hour",
    "/api/v1/nodes/<node_name>",
    "/api/v1/nodes/<node_name>/hour",
)

# A body that every call would take.
BODY = {
    "cmd": "x",
    "time_max": 1,
    "address": "127.0.0.1:1",
    "running": False,
    "data_value": "2",
    "boot": "b",
    "sequence": 9,
    "runs": [],
    "name": "another",
    "role": "admin",
    "argv": ["x"],
    "state": "running",
}


@dataclass(frozen=True)
class Holder:
    """Somebody who calls: what the token is, and what it makes of its holder; no role for one that does not count."""

    name: str
    token: str | None
    role: Role | None


def expected(path: str, method: str) -> set[Role] | None:
    """Who may do what, said a second time and by path alone; None when everybody may."""
    if not path.startswith(MLFLOW):
        return expected_of_our_own(path, method)
    return {Role.USER, Role.ADMIN} | (set() if path.endswith("runs/delete") else {Role.TASK})


def expected_of_our_own(path: str, method: str) -> set[Role] | None:
    """The same of all but the calls of MLflow's client."""
    if path in ("/healthz", "/", "/web/<path:filename>", "/api/v1/session") or (path, method) == (
        "/api/v1/session/ticket",
        "POST",
    ):
        return None
    if path in ("/api/v1/tokens", "/api/v1/audit"):
        return {Role.ADMIN}
    if path.startswith("/api/v1/tasks"):
        return expected_of_tasks(path, method)
    if path.startswith("/api/v1/tunnels"):
        return expected_of_tunnels(path, method)
    if method in READING:
        return set(Role)
    if method == "POST" and path.endswith("/report"):
        return {Role.AGENT, Role.ADMIN}
    if path.startswith("/api/v1/data/"):
        return {Role.PROCESSOR, Role.SCHEDULER, Role.ADMIN} | ({Role.SUBMITTER} if method == "PUT" else set())
    if "/slots/" in path or path.endswith("/placement"):
        return {Role.SCHEDULER, Role.ADMIN}
    return {Role.ADMIN} | ({Role.SUBMITTER} if (method, path) == ("PUT", "/api/v1/producers/<data_name>") else set())


def expected_of_tasks(path: str, method: str) -> set[Role]:
    """The same of the calls about tasks."""
    writing = ("/stop", "/again", "/news", "/token", "/progress", "/gone/<task_id>")
    if method == "OPTIONS" and path.endswith(writing):
        return set(Role)  # nothing can be read there
    if "/gone" in path:
        return {Role.SUBMITTER, Role.ADMIN}
    if path.endswith(("/news", "/token")) and method in ("PUT", "POST"):
        return {Role.SUBMITTER, Role.ADMIN}
    if path.endswith("/progress") and method == "PUT":
        return {Role.TASK, Role.ADMIN}
    return {Role.USER, Role.ADMIN} | ({Role.SUBMITTER} if method in READING else set())


def expected_of_tunnels(path: str, method: str) -> set[Role]:
    """The same of the calls about tunnels."""
    if path.endswith("<tunnel_id>"):
        return {Role.USER, Role.TASK, Role.ADMIN}
    return {Role.SUBMITTER, Role.TASK, Role.ADMIN} if method in READING else {Role.USER, Role.ADMIN}


def calls(app: Flask) -> list[tuple[str, str]]:
    """Every path of the service with every method it takes."""
    rules = [rule for rule in app.url_map.iter_rules() if rule.methods]
    return sorted({(rule.rule, method) for rule in rules for method in METHODS if method in (rule.methods or ())})


def filled(path: str, names: dict[str, str]) -> str:
    """A path with names in its places."""
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: names[found[1]], path)


def status(service: Served, method: str, path: str, token: str | None, body: Any) -> int:
    """What a call is answered with; the rest of the answer is left unread, for some of them never end."""
    sent = {"Authorization": f"Bearer {token}"} if token else {}
    connection = http.client.HTTPConnection(str(urlsplit(service.url).hostname), urlsplit(service.url).port, timeout=60)
    try:
        connection.request(method, path, None if method in READING else json.dumps(body), sent)
        return connection.getresponse().status
    finally:
        connection.close()


def known(service: Served) -> Any:
    """All that a call could have changed but the audit log."""
    latest = components_of(service.server.app).latest
    configuration, current_values = latest.configuration, latest.current_values
    values = [(name, current_values.rows(name)) for name in sorted(current_values.names())]
    rows = configuration.producers, configuration.nodes, configuration.slots, configuration.tokens, configuration.tasks
    return *rows, configuration.experiments, configuration.runs, values


@pytest.fixture(params=[True, False], ids=["open", "closed"])
def service(request: pytest.FixtureRequest, sqlite_url: str, serve: Serving, hands: Hands) -> Iterator[Served]:
    """A service with one of everything, whose clock stands still, reading open or not."""
    limits = {"calls_per_second": 0, "refusals_per_second": 0}
    with serve(sqlite_url, hands, open_reading=request.param, **limits) as served:
        served.client.put_producer(Producer("cpu", "x", 1))
        served.client.put_node("n1", "127.0.0.1:9")
        served.client.put_node("n2", "127.0.0.1:9")
        served.client.put_slot("n1", "cpu", False)
        served.client.put_value("cpu", "n1", 1)
        yield served


@pytest.fixture
def holders(service: Served, hands: Hands) -> list[Holder]:
    """One caller of each kind; the last are those that must get nowhere."""

    def made(name: str, role: Role, node: str | None = None, expires_in: float | None = None) -> tuple[str, str]:
        token, text = service.client.create_token(name, role, node, expires_in)
        return token.token_id, text

    found = [Holder(role, made(role, role)[1], role) for role in Role if role not in (Role.AGENT, Role.TASK)]
    found.append(Holder("another task", service.client.task_token(service.client.submit_task(SPEC).task_id), Role.TASK))
    found.append(Holder("agent", made("agent", Role.AGENT, "n1")[1], Role.AGENT))
    found.append(Holder("agent of another node", made("other", Role.AGENT, "n2")[1], Role.AGENT))
    found.append(Holder("reader of n1", made("one", Role.READER, "n1")[1], Role.READER))
    found.append(Holder("reader of another node", made("one other", Role.READER, "n2")[1], Role.READER))
    expired = made("expired", Role.ADMIN, expires_in=5)[1]
    hands.turn(6)
    token_id, revoked = made("revoked", Role.ADMIN)
    service.client.revoke_token(token_id)
    for name, text in (("nobody", None), ("expired", expired), ("revoked", revoked), ("wrong", "nw_admin_wrong")):
        found.append(Holder(name, text, None))
    return found


def allowed(service: Served, holder: Holder, path: str, method: str) -> bool:
    """Whether a call of a holder is to be let through."""
    roles = expected(path, method)
    if roles is None:
        return True
    if holder.name == "nobody":
        settings = components_of(service.server.app).settings
        return bool(settings.open_reading) and roles == set(Role)
    if holder.name == "agent of another node" and roles == {Role.AGENT, Role.ADMIN}:
        return False
    if holder.name == "another task" and (
        roles == {Role.TASK, Role.ADMIN} or (path == "/api/v1/tunnels" and method != "OPTIONS")
    ):
        return False  # the runner of a task asks for its own tunnels
    if holder.name.startswith("reader of"):
        return holder.name == "reader of n1" and method in READING and path in OF_ONE_NODE
    return holder.role in roles


def test_every_wrong_caller_is_refused_and_changes_nothing(service: Served, holders: list[Holder]) -> None:
    token_id = service.client.tokens()[0].token_id
    before, wrong = known(service), []
    for path, method in calls(service.server.app):
        for holder in holders:
            if allowed(service, holder, path, method):
                continue
            got = status(service, method, filled(path, NAMES | {"token_id": token_id}), holder.token, BODY)
            if got != (401 if holder.role is None else 403):
                wrong.append((method, path, holder.name, got))
    assert wrong == []
    assert known(service) == before


def test_every_right_caller_is_let_in(service: Served, holders: list[Holder]) -> None:
    # Names that are not there, for what is there must stay until the last call.
    gone = {"data_name": "gone", "node_name": "n1", "token_id": "gone"} | OTHERS | TASK | {"filename": "gone"}
    wrong = []
    for path, method in calls(service.server.app):
        names = gone | {"node_name": "gone"} if (method, path) == ("DELETE", "/api/v1/nodes/<node_name>") else gone
        for holder in holders:
            if allowed(service, holder, path, method):
                got = status(service, method, filled(path, names), holder.token, {})
                if got in (401, 403, 500):
                    wrong.append((method, path, holder.name, got))
    assert wrong == []


def test_every_call_that_is_listed_declares_what_it_needs(service: Served) -> None:
    app = service.server.app
    missing = []
    for rule in app.url_map.iter_rules():
        resource = getattr(app.view_functions[rule.endpoint], "view_class", None)
        for method in ("get", "put", "post", "delete"):
            found = getattr(resource, method, None) if rule.endpoint != "api.specs" else None
            if found is not None and not hasattr(found, "needs"):
                missing.append((rule.rule, method))
    assert missing == []


def test_a_new_call_without_a_declaration_is_for_admins_only(service: Served, holders: list[Holder]) -> None:
    app = service.server.app
    app._got_first_request = False  # a running application takes no more paths, and this test brings one late
    app.add_url_rule("/new", "new", lambda: "said", methods=["GET", "POST"])
    for method in ("GET", "HEAD", "OPTIONS", "POST"):
        for holder in holders:
            got = status(service, method, "/new", holder.token, {})
            assert got == (200 if holder.role is Role.ADMIN else 401 if holder.role is None else 403), (method, holder)


def test_what_a_refused_role_would_need_is_said(service: Served) -> None:
    token, text = service.client.create_token("r", Role.READER)
    answer = service.ask("PUT", "/api/v1/data/cpu/n1", BODY, text)
    assert (answer.status, answer.error["code"]) == (403, "forbidden")
    assert "this call needs a token of role processor, scheduler, submitter, admin" in answer.error["message"]
    assert token.role is Role.READER


def test_a_reader_of_one_node_reads_its_values_and_nothing_else(service: Served) -> None:
    _, text = service.client.create_token("attributes", Role.READER, "n1")
    service.client.put_value("cpu", "n2", 2)
    said = [
        service.ask("GET", f"/api/v1/data{query}", None, text)
        for query in ("/cpu/n1", "/cpu?node=n1", "?name=cpu&node=n1")
    ]
    refused = [
        service.ask("GET", f"/api/v1/{path}", None, text).status
        for path in ("data/cpu/n2", "data/cpu", "data/cpu?node=n2", "data?name=cpu", "nodes", "nodes?node=n1", "tokens")
    ]

    assert [answer.status for answer in said] == [200] * 3
    assert "n2" not in "".join(answer.text for answer in said)
    assert refused == [403] * 7
    assert service.ask("GET", "/api/v1/data/cpu?node=n1&node=n2", None, text).status == 422


def test_an_agent_is_told_whose_report_it_may_not_send(service: Served) -> None:
    _, text = service.client.create_token("n2", Role.AGENT, "n2")
    answer = service.ask("POST", "/api/v1/nodes/n1/report", BODY, text)
    assert (answer.status, answer.error["code"]) == (403, Forbidden.code)
    assert answer.error["message"] == "the token of n2's agent may not report for n1"


def test_a_declaration_counts_for_its_method_alone() -> None:
    class Resource:
        @needs(Role.READER)
        def get(self) -> None: ...

        def put(self) -> None: ...

    def view() -> None: ...

    def page() -> None: ...

    view.__dict__["view_class"] = Resource
    assert required_roles("x", view, "HEAD") == required_roles("x", view, "OPTIONS") == (Role.READER,)
    assert (
        required_roles("x", view, "PUT")
        == required_roles("x", view, "PATCH")
        == required_roles("x", page, "GET")
        == (Role.ADMIN,)
    )
    assert required_roles("x", open_to_all(page), "GET") is None
