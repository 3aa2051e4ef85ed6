"""The OpenAPI document shows how: examples that its schemas allow and the service takes, and refusals that happen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from infosvc.http.openapi.examples import NoExample, example_of
from infosvc.wire.records import Kind, Producer, Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import EXAMPLE_ID, EXAMPLE_KEY
from tests.infosvc.conftest import TOKEN
from tests.infosvc.schemas import against

if TYPE_CHECKING:
    from infosvc.wire.task_spec import TaskSpec
    from infosvc.wire.tasks import EXAMPLE_ID, EXAMPLE_KEY
from tests.infosvc.conftest import Answer, Heard, Served, Serving

NAME, NODE = "load_1m", "127.0.1.11"  # of the document's examples
UNKNOWN = "nobody"
CHANGES = {"put", "post", "delete"}


@dataclass(frozen=True)
class Call:
    """One call of the document; `parameters` are its own and those of its path."""

    method: str
    path: str
    said: dict[str, Any]
    parameters: list[dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def model(self) -> str | None:
        """The name of its body's model, None when it has no body."""
        schemas = [one["schema"] for one in self.parameters if one["in"] == "body" and "$ref" in one["schema"]]
        return schemas[0]["$ref"].rpartition("/")[2] if schemas else None  # a file has none

    def address(self, **names: str) -> str:
        """Where it is called: its path with these names, else those of its examples, and what it must be asked with."""
        path, query = self.path, dict[str, Any]()
        for one in self.parameters:
            shown = names.get(one["name"], one.get("x-example"))
            if one["in"] == "path":
                path = path.replace(f"{{{one['name']}}}", str(shown))
            elif one["in"] == "query" and one.get("required"):
                query[one["name"]] = shown
        return f"/api/v1{path}" + (f"?{urlencode(query, doseq=True)}" if query else "")


@dataclass(frozen=True)
class Document:
    """What the service says of its calls, and the service."""

    service: Served
    calls: list[Call]
    models: dict[str, Any]

    def example(self, call: Call) -> Any:
        """The body that the document shows for a call, None when it takes none."""
        return self.models[call.model]["example"] if call.model else None

    def ask(self, call: Call, body: Any, token: str = TOKEN, **names: str) -> Answer:
        """Make a call, as the first admin if no other token is given."""
        return self.service.ask(call.method.upper(), call.address(**names), body, token)


@pytest.fixture
def document(sqlite_url: str, serve: Serving) -> Iterator[Document]:
    """A service that knows nothing and refuses nobody for calling often."""
    with serve(sqlite_url, calls_per_second=0, refusals_per_second=0) as service:
        found = service.ask("GET", "/api/v1/swagger.json").json
        calls = [
            Call(method, path, said, methods.get("parameters", []) + said.get("parameters", []))
            for path, methods in found["paths"].items()
            for method, said in methods.items()
            if method != "parameters" and said["tags"] != ["session"]  # whose caller is who shows the cookie
        ]
        yield Document(service, calls, found["definitions"])


def allows(document: Document, schema: Any, example: Any) -> list[str]:
    """What a schema of the document has against an example."""
    return against(schema, example, document.models)


def fill(document: Document, agent: Heard) -> None:
    """What the examples speak of."""
    client = document.service.client
    for name in (NAME, "cpu_free_ratio"):
        client.put_producer(Producer(name, f"scripts/{name}.sh", 5))
    client.put_node(NODE, agent.address)
    assert client.submit_task(TaskSpec(["x"]), EXAMPLE_KEY).task_id == EXAMPLE_ID


def test_every_call_says_in_a_line_and_at_length_what_it_does(document: Document) -> None:
    for call in document.calls:
        assert call.said["summary"], call
        assert len(call.said["description"]) > 20, call


def test_every_body_has_an_example_that_its_schema_allows(document: Document) -> None:
    with_body = [call for call in document.calls if call.model]

    assert {call.method for call in with_body} == {"put", "post"}
    for call in with_body:
        model = document.models[call.model or ""]
        assert allows(document, model, model["example"]) == [], call
        parts = [part for one in model.get("allOf", [model]) for part in one.get("properties", {})]
        assert set(model["example"]) == set(parts), f"{call}: its example shows every field"


def test_every_answer_has_an_example_that_its_schema_allows(document: Document) -> None:
    for call in document.calls:
        for code, answer in call.said["responses"].items():
            if "schema" in answer and answer["schema"] != {"type": "file"}:
                assert allows(document, answer["schema"], answer["examples"]["application/json"]) == [], (call, code)
    (events,) = [call for call in document.calls if call.path == "/events"]
    assert "event: node" in events.said["responses"]["200"]["examples"]["text/event-stream"]


def test_the_examples_are_taken_as_they_stand(document: Document, agent: Heard) -> None:
    fill(document, agent)
    # What a slot brings may not be written over, so the value comes before the slot.
    for call in sorted((call for call in document.calls if call.model), key=lambda call: "/slots" in call.path):
        body = document.example(call)
        if body.get("notify"):
            body = body | {"notify": f"http://{agent.address}/"}
        if "address" in body:  # no test calls a machine that it has not made
            body = body | {"address": agent.address}
        answer = document.ask(call, body)
        assert answer.status in (200, 201), f"{call}: {answer.text}"
        assert str(answer.status) in call.said["responses"], call


def test_every_call_names_the_refusals_that_may_befall_it(document: Document) -> None:
    for call in document.calls:
        expected = {"400", "401", "411", "422", "429"}
        assert "default" not in call.said["responses"], "it would hide what is not documented"
        if call.method in CHANGES:
            expected |= {"403", "503"}
        if call.model:
            expected |= {"400", "411", "413", "422"}
        assert expected <= set(call.said["responses"]), call
        for code, answer in call.said["responses"].items():
            if code.startswith("4"):
                shown = answer["examples"]["application/json"]["error"]
                assert shown["message"] == answer["description"] and shown["code"], (call, code)


def test_who_is_not_known_is_refused_as_the_document_says(document: Document) -> None:
    for call in document.calls:
        answer = document.ask(call, document.example(call), "no-token-of-this-service")
        assert (answer.status, answer.error["code"]) == (401, shown(call, 401)["code"]), call


def test_what_a_reader_may_not_do_is_refused_as_the_document_says(document: Document) -> None:
    _, reader = document.service.client.create_token("viewer", Role.READER)
    forbidden = [call for call in document.calls if "403" in call.said["responses"]]
    for call in forbidden:
        answer = document.ask(call, document.example(call), reader)
        assert (answer.status, answer.error["code"]) == (403, "forbidden"), call
    for call in document.calls:
        if call not in forbidden and call.path != "/events":  # a stream has no end
            assert document.ask(call, None, reader).status != 403, call


def test_names_that_nobody_has_are_refused_as_the_document_says(document: Document) -> None:
    names = dict.fromkeys(("data_name", "node_name", "token_id", "name", "task_id", "alert_id"), UNKNOWN)
    found = [call for call in document.calls if "404" in call.said["responses"]]

    assert len(found) > 10
    for call in found:
        answer = document.ask(call, document.example(call), **names)
        assert (answer.status, answer.error["code"]) == (404, "not_found"), f"{call}: {answer.text}"


@pytest.mark.parametrize(("status", "body"), [(400, "{"), (422, None)], ids=["no JSON", "wrong fields"])
def test_bodies_that_are_wrong_are_refused_as_the_document_says(
    document: Document, agent: Heard, status: int, body: str | None
) -> None:
    fill(document, agent)
    for call in document.calls:
        if call.model:
            sent: Any = body or {field: [[]] for field in document.example(call)}
            answer = document.ask(call, sent)
            assert answer.status == status, f"{call}: {answer.text}"
            assert answer.error["code"] == shown(call, status)["code"], call


def shown(call: Call, status: int) -> dict[str, Any]:
    """The refusal that the document shows."""
    found: dict[str, Any] = call.said["responses"][str(status)]["examples"]["application/json"]["error"]
    return found


def test_the_browsers_session_is_shown_with_an_example_that_it_takes(document: Document) -> None:
    said = document.service.ask("GET", "/api/v1/swagger.json").json
    calls = said["paths"]["/session"]
    shown_who = calls["get"]["responses"]["200"]["examples"]["application/json"]
    given = said["definitions"]["LogIn"]["example"]

    assert set(calls) == {"get", "post", "delete"}
    assert set(document.service.ask("GET", "/api/v1/session").json) == set(shown_who)
    assert document.service.ask("POST", "/api/v1/session", given).status == 401  # nobody's token
    assert document.service.ask("POST", "/api/v1/session", given | {"token": TOKEN}).status == 204


def test_a_model_whose_field_has_no_example_is_found() -> None:
    models = {"Body": {"properties": {"name": {"type": "string", "example": "a"}, "size": {"type": "number"}}}}

    with pytest.raises(NoExample, match=r"Body\.size has no example"):
        example_of({"$ref": "#/definitions/Body"}, models)


def test_what_may_be_null_and_shows_nothing_else_is_null() -> None:
    assert example_of({"type": "string", "x-nullable": True}, {}) is None


def test_a_producer_of_the_examples_is_one_that_runs(document: Document) -> None:
    (call,) = [call for call in document.calls if str(call) == "PUT /producers/{data_name}"]

    assert document.example(call)["kind"] in [kind.value for kind in Kind if kind.in_slot]
