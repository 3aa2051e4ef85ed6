"""The OpenAPI document tells the truth: thousands of calls made from it, right and wrong ones, and their answers."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from html.parser import HTMLParser
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, Response
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance
from schemathesis.transport.serialization import Binary

from infosvc.core.service import components_of
from infosvc.tasks.lifecycle import new_id
from infosvc.wire.alerts.alert_client import AlertClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Kind, Outcome, Producer, Report, Role, Run, Scope
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskProgress
from infosvc.wire.tunnel.frames import DATA, Frame
from infosvc.wire.tunnel.tunnel_end import TunnelCalls
from tests.infosvc.conftest import TOKEN

if TYPE_CHECKING:
    from tests.infosvc.conftest import Heard, Served, Serving

SEED = 20260
schemathesis.serializer.alias("application/x-tar", "application/octet-stream")
CASES = {
    "producers": 1500,
    "nodes": 1500,
    "slots": 1500,
    "data": 1500,
    "tokens": 700,
    "tasks": 1500,
    "files": 300,
    "tunnels": 300,
    "alerts": 300,
    "audit": 300,
    "session": 300,
    "all": 2700,
}
assert sum(CASES.values()) == 12_400
BUDGET = 0.1
"""The part of them that is made without --long."""
AGAIN = 20
"""Of calls that led nowhere, so many more are made until each has led somewhere, in all at most four times as many."""

# Refusals that any call may meet; all others must stand in the document of the call.
ANYWHERE = {403, 405, 413}
STREAMS = ("GET /events", "GET /tunnels/{tunnel_id}")
"""They have no end."""
BY_TICKET = "POST /session/ticket"  # takes a Kerberos, so no generated call succeeds; test_tickets.py makes it
LOG = "GET /nodes/{node_name}/slots/{data_name}/log"
SLOT = "/nodes/{node_name}/slots/{data_name}"
# Of HTTP itself: the server answers what is wrong about them before the service sees the call.
CONNECTION = {"connection", "content-length", "expect", "host", "transfer-encoding", "upgrade"}
COMMANDS: list[dict[str, Any]] = [
    {},
    {"cmd": "x"},
    {"cmd": "x y", "kind": "collector", "emits": ["first", "new"]},
    {"cmd": "x", "kind": "processor", "scope": "cluster", "inputs": ["cpu"]},
]
IN_PATH = re.compile(r"{(\w+)}")
CHECKS = [content_type_conformance, response_schema_conformance]

ARCHIVE = b"an archive" * 1000
FRAMES = Frame(DATA, 1, b"typed").encode()
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()
KEYS = ("first", "second", "third")  # under which there are tasks
ENDED = "ended"

# Names that generated calls use now and then, for most generated ones are registered nowhere.
NAMES = {
    "data_name": ["cpu", "both", "first", "sum", "told", "new"],
    "node_name": ["n1", "n2", "*", "new"],
    "task_id": [new_id("admin", key) for key in (*KEYS, ENDED)],
    "sha256": [SHA256, "0" * 64],
}


@dataclass
class Seen:
    """What the calls of one run were answered with; `own` are the labels of which no other run has more cases."""

    cases: int = 0
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    own: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    @property
    def successful(self) -> set[str]:
        """The labels of the calls that got somewhere at least once."""
        return {label for label, status in self.statuses if status < 300}


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of an SQLite file in memory where there is such a place: thousands of writes wait for no disk there."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        yield f"sqlite:///{directory}/infosvc.db"


@contextmanager
def filled(serve: Serving, database: str, agent: Heard) -> Iterator[Served]:
    """A service without limits, with an agent that answers, and one of everything."""
    policy = Path(database.removeprefix("sqlite:///")).with_name("nodewise-policy.properties")
    policy.write_text("first.score = untouched higher 0..1\n")
    with serve(database, calls_per_second=0, refusals_per_second=0, policy_file=str(policy)) as served:
        fill(served, agent.address)
        for node in ("n1", "n2"):
            served.client.create_token(f"agent of {node}", Role.AGENT, node)
        agent.answers["/api/v1/slots/cpu/log"] = {"runs": [{"ended_at": 1.0, "outcome": "ok", "duration": 0.5}]}
        yield served


def fill(service: Served, address: str, sequence: int = 1) -> None:
    """One of everything, as far as what was called meanwhile allows; nobody calls anything by the name untouched.

    A report with a `sequence` that was there before would be left aside.
    """
    client = service.client
    runs = (Run("cpu", Outcome.OK, 0.1, value="0.5"), Run("both", Outcome.FAILED, 0.1, reason="broken"))
    steps: list[Callable[[], Any]] = [
        partial(client.put_producer, Producer("cpu", "x", 5, keep=3600)),
        partial(client.put_producer, Producer("both", "x", 5, emits=("first", "second"))),
        partial(client.put_producer, Producer("sum", "x", 5, Kind.PROCESSOR, Scope.CLUSTER, inputs=("cpu",))),
        partial(client.put_producer, Producer("told", "", 5, Kind.PROGRAM)),
        partial(client.put_producer, Producer("untouched", "x", 5)),
        *(partial(client.put_node, node, address) for node in ("n1", "n2", "untouched")),
        *(partial(client.put_slot, node, "cpu", True) for node in ("n1", "n2", "untouched")),
        partial(client.put_slot, "n1", "both", True),
        partial(client.put_slot, "*", "sum", True),
        *(partial(client.report, node, Report("b", sequence, runs=runs)) for node in ("n1", "n2")),
        *(partial(client.put_value, name, node, "1") for name in ("cpu", "told") for node in ("n1", "n2")),
        partial(client.put_value, "untouched", "untouched", "still here"),
        *(partial(client.submit_task, TaskSpec(["x"]), key) for key in (*KEYS, ENDED)),
        partial(client.stop_task, new_id("admin", ENDED)),
        partial(AlertClient(client).add, "told > 5", 0, f"http://{address}/told"),
        partial(client.put_task_progress, new_id("admin", KEYS[0]), TaskProgress(1, running=True)),
        partial(components_of(service.server.app).tunnels.open, new_id("admin", KEYS[0]), "admin", "tests"),
    ]
    for step in steps:
        with suppress(InfoError):
            step()


def read_document(service: Served, address: str) -> Any:
    """The service's own document; hooks keep its calls on this machine and lead them to what there is."""
    config = SchemathesisConfig.from_dict({"seed": SEED})
    schema = schemathesis.openapi.from_url(f"{service.url}/api/v1/swagger.json", config=config)

    @schema.hook
    def flatmap_query(_context: Any, query: dict[str, Any] | None) -> Any:
        """Most generated names are registered nowhere."""
        if query and "begin" in query:
            return st.sampled_from([query, query | {"begin": "0"}])
        if not query or "name" not in query:
            return st.just(query)
        known = st.lists(st.sampled_from(NAMES["data_name"]), max_size=3)
        return known.flatmap(lambda names: st.sampled_from([query, query | {"name": names}]))

    @schema.hook
    def map_headers(_context: Any, headers: Any) -> Any:
        return {name: text for name, text in (headers or {}).items() if name.lower() not in CONNECTION}

    @schema.hook
    def flatmap_body(context: Any, body: Any) -> Any:
        if isinstance(body, bytes | Binary):
            return st.sampled_from([FRAMES if "tunnels" in context.operation.tags else ARCHIVE, body])
        return leading(body, address) if isinstance(body, dict) else st.just(body)

    return schema


def leading(body: dict[str, Any], address: str) -> st.SearchStrategy[dict[str, Any]]:
    """The body as it is or changed so that it gets somewhere; with no address that leads away from this machine."""
    if isinstance(body.get("address"), str):
        harmless = re.sub(r"(?s)^.+:\d+\s*$", address, body["address"])
        return st.sampled_from([address, harmless]).map(lambda chosen: body | {"address": chosen})
    if set(body) == {"task_id"}:
        return st.sampled_from([body, {"task_id": new_id("admin", KEYS[0])}])
    if isinstance(body.get("argv"), list):
        body = body | {"notify": told_at(body.get("notify"), address)}
        return st.sampled_from([body, body | {"files": None, "after": []}])
    if "condition" in body:
        body = body | {"notify": told_at(body.get("notify"), address)}
        return st.sampled_from([body, body | {"condition": "told * 2 < 7"}, body | {"condition": "node lost"}])
    if isinstance(body.get("runs"), list):
        return st.sampled_from([*NAMES["data_name"], None]).map(lambda name: body | {"runs": about(name, body["runs"])})
    if set(body) == {"token"}:
        return st.sampled_from([TOKEN, body["token"]]).map(lambda shown: {"token": shown})
    if "time_max" in body:
        return st.sampled_from(COMMANDS).map(lambda command: body | command)
    return st.just(body)


def told_at(url: Any, address: str) -> Any:
    """The web address, or one of this machine in place of one that may lead away from it."""
    return f"http://{address}/told" if isinstance(url, str) and url.startswith("http") else url


def about(data_name: str | None, runs: list[Any]) -> list[Any]:
    """The runs, as those of one name."""
    return [run | {"data_name": data_name} if data_name and isinstance(run, dict) else run for run in runs]


def cases(schema: Any, tag: str, known: dict[str, list[str]], only: Collection[str]) -> st.SearchStrategy[Case[Any]]:
    """Cases of all calls with a tag, or of those among `only`: what the document allows, and what it does not.

    In most of them the path leads to something, which generated names hardly ever do.
    """
    found = []
    for result in schema.get_all_operations():
        call = result.ok()
        if call.label in STREAMS or tag not in ("all", *call.tags) or (only and call.label not in only):
            continue
        kinds = [call.as_strategy(generation_mode=GenerationMode.POSITIVE)]
        if call.body or list(call.iter_parameters()):
            kinds.append(call.as_strategy(generation_mode=GenerationMode.NEGATIVE))
        names = st.fixed_dictionaries({name: st.sampled_from(known[name]) for name in IN_PATH.findall(call.path)})
        found += [st.builds(lead, kind, st.none() | names | names | names) for kind in kinds]
    return st.one_of(found)


def lead(case: Case[Any], names: dict[str, str] | None) -> Case[Any]:
    """The case with other names in its path, if there are any."""
    if names:
        case.path_parameters = names
    return case


def faults(case: Case[Any], answer: Response) -> list[str]:
    """What is wrong about an answer, beside what the document says."""
    status, call = answer.status_code, case.operation
    if status >= 500:
        away = status == 503 and call.label == LOG and "does not answer" in answer.text
        return [] if away else [f"{status}, a fault of the service's own"]
    if str(status) not in call.responses.status_codes and status not in ANYWHERE:
        return [f"{status} is not in the document"]
    if status in (200, 201) and call.label.endswith(SLOT) and "replicas" in answer.json():
        return []  # a placement in place of a slot, as the document says in words
    try:
        case.validate_response(answer, checks=CHECKS)
    except FailureGroup as failures:
        return [f"{failure.title}: {failure.message}" for failure in failures.exceptions]
    return []


def stored(service: Served) -> Any:
    """All that the service knows, less what its clock has a part in."""
    latest = components_of(service.server.app).latest
    values = {
        (name, node): (value.text, value.outcome, value.reason, value.sequence, value.skipped)
        for name in latest.current_values.names()
        for node, value in latest.current_values.rows(name)
    }
    configuration = latest.configuration
    nodes = {name: (found.address, found.version, found.sequence) for name, found in configuration.nodes.items()}
    return (
        configuration.producers,
        nodes,
        {k: v for k, v in configuration.slots.items() if v},
        configuration.tokens,
        configuration.tasks,
        configuration.alerts,
        values,
    )


def make_calls(
    service: Served, address: str, tag: str, number: int, seed: int, seen: Seen, only: Collection[str] = ()
) -> None:
    """Make so many cases of a tag, or of these calls of it alone, over one connection."""
    schema, known = (
        read_document(service, address),
        NAMES
        | {"token_id": [one.token_id for one in service.client.tokens()]}
        | {"alert_id": [one.alert_id for one in AlertClient(service.client).all()] or ["alert_" + "0" * 16]}
        | {"tunnel_id": [one.tunnel_id for one in TunnelCalls(service.client).waiting()] or ["0" * 32]},
    )
    token = components_of(service.server.app).settings.token
    session = requests.Session()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # no call goes on from a login

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases(schema, tag, known, only))
    def call(case: Case[Any]) -> None:
        if seen.cases % 50 == 0:
            fill(service, address, seen.cases + 2)  # what was deleted comes back, or most calls would lead nowhere soon
        answer = case.call(session=session, headers={"Authorization": f"Bearer {token}"}, timeout=120)
        seen.cases += 1
        seen.statuses[case.operation.label, answer.status_code] += 1
        if tag != "all" or not CASES.keys() & set(case.operation.tags):
            seen.own.add(case.operation.label)
        seen.wrong += [f"{said}\n{case.as_curl_command()}\n{answer.text[:500]}" for said in faults(case, answer)]

    with session:
        call()


@pytest.mark.timeout(1800)  # a busy machine makes it slow, and that is not a fault
@pytest.mark.parametrize("tag", CASES)
def test_generated_calls_are_answered_as_the_document_says(
    serve: Serving, url: str, agent: Heard, tag: str, request: pytest.FixtureRequest
) -> None:
    print(f"seed {SEED}")
    number = CASES[tag] if request.config.getoption("--long") else round(BUDGET * CASES[tag])
    with filled(serve, url, agent) as service:
        seen = Seen()
        make_calls(service, agent.address, tag, number, SEED, seen)
        for seed in range(SEED + 1, SEED + 4 * CASES[tag] // AGAIN):
            if not (missing := seen.own - {BY_TICKET} - seen.successful):
                break
            fill(service, agent.address, seen.cases + 2)
            make_calls(service, agent.address, tag, AGAIN, seed, seen, missing)
        print(seen.cases, sorted(seen.statuses.items()))
        assert not seen.wrong, f"{len(seen.wrong)} wrong answers, for example:\n" + "\n\n".join(seen.wrong[:20])
        assert seen.cases >= number
        assert seen.own - {BY_TICKET} <= seen.successful
        assert service.ask("GET", "/readyz").status == 200
        assert service.client.data("untouched")[0].data_value == "still here"
    before = stored(service)  # once it is down: what it still moved between nodes has a part in it
    with serve(url) as service:
        assert stored(service) == before


def described(service: Served) -> list[tuple[str, Any, list[Any]]]:
    """Each call of the document: its label, what is said of it, and its parameters with those of its path."""
    paths = service.ask("GET", "/api/v1/swagger.json").json["paths"]
    return [
        (f"{method.upper()} {path}", call, calls.get("parameters", []) + call.get("parameters", []))
        for path, calls in paths.items()
        for method, call in calls.items()
        if method != "parameters"
    ]


@pytest.fixture
def service(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """An empty service."""
    with serve(sqlite_url) as served:
        yield served


def test_every_call_is_described(service: Served) -> None:
    for label, call, _ in described(service):
        assert call["summary"] and call["description"], label


def test_every_answer_is_described(service: Served) -> None:
    without_body = {"204", "304"}
    for label, call, _ in described(service):
        answers = call["responses"]
        assert any(code.startswith("2") for code in answers) and "default" not in answers, label
        for code, said in answers.items():
            assert said["description"], (label, code)
            bare = code in without_body or "text/event-stream" in call.get("produces", [])
            if int(code) >= 400:
                assert said["schema"] == {"$ref": "#/definitions/Refusal"}, (label, code)
            else:
                assert ("schema" in said) != bare, (label, code)


def test_every_parameter_has_a_type_and_an_example(service: Served) -> None:
    for label, _, parameters in described(service):
        for found in parameters:
            assert found["description" if found["in"] != "body" else "schema"], (label, found)
            if found["in"] != "body":
                assert found["type"] in ("string", "integer", "number", "array"), (label, found)
                assert {"x-example", "default", "enum"} & set(found), (label, found)


def test_every_field_that_is_sent_has_a_type(service: Served) -> None:
    definitions = service.ask("GET", "/api/v1/swagger.json").json["definitions"]
    assert {"ProducerBody", "NodeBody", "SlotBody", "ValueBody", "TokenBody", "Report", "Run"} <= set(definitions)
    for name, model in definitions.items():
        for part in model.get("allOf", [model]):
            for key, found in part.get("properties", {}).items():
                assert {"type", "$ref", "allOf"} & set(found), (name, key)


def test_numbers_near_the_largest_have_a_mean_and_percentiles(service: Served) -> None:
    service.client.put_producer(Producer("far", "", 5, Kind.PROGRAM, keep=3600))
    for number in (-1.7e308, 1.7e308, 1.7e308):
        service.client.put_value("far", "n1", number)
    found = service.client.history("far", "n1")
    assert (found.min, found.p50, found.max) == (-1.7e308, 1.7e308, 1.7e308)
    assert found.mean == pytest.approx(1.7e308 / 3)
    for number in (1.7e308, 1.7e308, 1.7e308, -1.7e308, -1.7e308):
        service.client.put_value("far", "n2", number)
    assert service.client.history("far", "n2").mean == pytest.approx(1.7e308 / 5)
    service.client.put_value("far", "n3", -1.7e308)
    service.client.put_value("far", "n3", 1.7e308)
    assert service.client.history("far", "n3").p50 == 0


class _Loaded(HTMLParser):
    """The addresses of all that a page loads."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ("src", "href") and value]


def test_swagger_ui_loads_nothing_from_elsewhere(service: Served) -> None:
    page = service.ask("GET", "/api/v1/", token=None).text
    loaded = _Loaded(page).found
    assert [path for path in loaded if path.endswith("swagger-ui-bundle.js")]
    for path in loaded:
        assert path.startswith("/swaggerui/"), path
        answer = service.ask("GET", path, token=None)
        assert answer.status == 200, path
        if path.endswith(".css"):
            for file in re.findall(r"url\(['\"]?((?!data:)[^)'\"]+)", answer.text):
                assert service.ask("GET", f"/swaggerui/{file.removeprefix('./')}", token=None).status == 200, file
    assert 'url: "/api/v1/swagger.json"' in page
    assert 'validatorUrl: "" || null' in page
