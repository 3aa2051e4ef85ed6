"""One slot: its quarantine and how that is lifted, and its log, which the service fetches from the node's agent."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from infosvc.access.roles import sha256
from infosvc.management.agent_client import AgentClient
from infosvc.settings import Settings
from infosvc.wire.answers import PastRun
from infosvc.wire.errors import InvalidInput, NotFound, NotReady
from infosvc.wire.records import Outcome, Producer, Report, Role, Run, Slot

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Heard, Hearing, Served, Serving

CPU = Producer("cpu", "scripts/cpu.sh", 2.0)
LOG = "/api/v1/slots/cpu/log"
RUNS = [
    PastRun(1_700_000_002.5, Outcome.FAILED, 0.25, 1, None, "no such file"),
    PastRun(1_700_000_000.5, Outcome.OK, 0.5, 0, "0.93"),
]


@pytest.fixture
def service(database: str, hands: Hands, serve: Serving) -> Iterator[Served]:
    """A service that waits for agents also on a busy machine."""
    with serve(database, hands, notice_timeout=60.0) as served:
        yield served


@pytest.fixture
def running(service: Served, agent: Heard) -> Served:
    """A service with one slot, whose agent listens."""
    service.client.put_producer(CPU)
    service.client.put_node("n1", agent.address)
    service.client.put_slot("n1", "cpu", True)
    return service


def _slot(service: Served) -> Slot:
    [slot] = service.reader.slots("n1").slots
    return slot


def _quarantine(service: Served, sequence: int = 1) -> None:
    run = Run("cpu", Outcome.QUARANTINED, 0.1, None, "failed 10 times: no such file", skipped=3)
    service.client.report("n1", Report("boot", sequence, "", (run,)))


def test_a_quarantine_shows_until_it_is_lifted_and_then_counts_as_failed(running: Served) -> None:
    _quarantine(running)
    assert (_slot(running).outcome, _slot(running).skipped) == (Outcome.QUARANTINED, 3)
    assert _slot(running).reason == "failed 10 times: no such file"
    version = running.reader.slots("n1").version
    running.client.put_slot("n1", "cpu", True, lift=True)
    lifted = _slot(running)
    assert (lifted.epoch, lifted.running, lifted.outcome) == (1, True, Outcome.FAILED)
    assert running.reader.slots("n1").version > version
    running.client.put_slot("n1", "cpu", True, lift=True)
    assert _slot(running).epoch == 2


def test_starting_stopping_and_timing_keep_the_epoch_and_a_lift_keeps_the_interval(running: Served) -> None:
    running.client.put_slot("n1", "cpu", True, lift=True)
    running.client.put_slot("n1", "cpu", False, interval=9.0)
    assert (_slot(running).epoch, _slot(running).running, _slot(running).interval) == (1, False, 9.0)
    running.client.put_slot("n1", "cpu", True, lift=True)
    assert (_slot(running).epoch, _slot(running).running, _slot(running).interval) == (2, True, 9.0)
    running.client.put_slot("n1", "cpu", True, interval=4.0, lift=True)
    assert (_slot(running).epoch, _slot(running).interval) == (3, 4.0)


def test_a_lift_needs_a_slot_that_is_to_run(running: Served) -> None:
    path = "/api/v1/nodes/n1/slots/cpu"
    answer = running.ask("PUT", path, {"running": False, "lift": True})
    assert (answer.status, answer.error["field"]) == (422, "lift")
    assert running.ask("PUT", path, {"lift": 1}).status == 422
    running.client.delete_slot("n1", "cpu")
    with pytest.raises(NotFound, match="nodewise slot start cpu --node n1"):
        running.client.put_slot("n1", "cpu", True, lift=True)


def test_the_log_of_a_slot_comes_from_its_agent(running: Served, agent: Heard) -> None:
    agent.answers[LOG] = {"runs": [run.to_json() for run in RUNS]}
    assert running.reader.slot_log("n1", "cpu") == RUNS
    assert [call.is_signed_with("") for call in agent.calls if call.path == LOG] == [True]
    _, token = running.client.create_token("agent of n1", Role.AGENT, "n1")
    running.reader.slot_log("n1", "cpu")
    assert [call.is_signed_with(sha256(token)) for call in agent.calls if call.path == LOG] == [False, True]
    answer = running.ask("GET", "/api/v1/nodes/n1/slots/cpu/log").json
    assert answer == {"node_name": "n1", "data_name": "cpu", "runs": [run.to_json() for run in RUNS]}


def test_a_slot_that_its_agent_has_not_run_yet_has_an_empty_log(running: Served) -> None:
    assert running.reader.slot_log("n1", "cpu") == []


def test_a_log_needs_a_slot(running: Served, agent: Heard) -> None:
    for path in ("n1/slots/nothing", "n2/slots/cpu", "*/slots/cpu"):
        assert running.ask("GET", f"/api/v1/nodes/{path}/log").status == 404
    assert not [call for call in agent.calls if call.path == LOG]


@pytest.mark.parametrize(
    "said", [{}, [], "no", {"runs": 5}, {"runs": [5]}, {"runs": [{"ended_at": 1}]}, {"runs": [{"outcome": "odd"}]}]
)
def test_an_agent_that_answers_nonsense_is_one_sentence(sqlite_service: Served, hearing: Hearing, said: Any) -> None:
    with hearing() as agent:
        agent.answers[LOG] = said
        sqlite_service.client.put_producer(CPU)
        sqlite_service.client.put_node("n1", agent.address)
        sqlite_service.client.put_slot("n1", "cpu", True)
        answer = sqlite_service.ask("GET", "/api/v1/nodes/n1/slots/cpu/log")
    assert (answer.status, answer.error["code"]) == (503, "not_ready")
    assert "the agent of n1 sent no log" in answer.error["message"]


def test_an_agent_that_refuses_or_is_away_is_one_sentence(running: Served, agent: Heard) -> None:
    agent.answers[LOG] = {"runs": []}
    agent.status = 403
    impatient = running.ask("GET", "/api/v1/nodes/n1/slots/cpu/log")
    assert impatient.status == 503
    assert f"the agent of n1 at {agent.address} does not answer (it answered 403)" in impatient.error["message"]
    running.client.put_node("n1", "127.0.0.1:1")
    away = running.ask("GET", "/api/v1/nodes/n1/slots/cpu/log")
    assert (away.status, away.error["field"]) == (503, "node_name")
    assert "nodewise node add" in away.error["message"]


@pytest.fixture
def sqlite_service(sqlite_url: str, serve: Serving) -> Any:
    """A service where the kind of database plays no part."""
    with serve(sqlite_url, notice_timeout=60.0) as served:
        yield served


Certificate = tuple[Path, ssl.SSLContext]


@pytest.fixture
def certificate(tmp_path: Path) -> Callable[[str], Certificate]:
    """certificate(NAME): a certificate that vouches for itself, and what a listener shows of it."""

    def make(name: str) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).add_extension(here, critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        signed = builder.not_valid_after(now + datetime.timedelta(days=1)).sign(key, hashes.SHA256())
        cert, secret = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        cert.write_bytes(signed.public_bytes(pem))
        secret.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
        listening = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        listening.load_cert_chain(cert, secret)
        return cert, listening

    return make


def test_with_an_authority_agents_are_called_by_https_and_others_not_at_all(
    sqlite_url: str, serve: Serving, hearing: Hearing, certificate: Callable[[str], Certificate]
) -> None:
    (known, listening), (_, strange) = certificate("known"), certificate("strange")
    with (
        serve(sqlite_url, agent_ca=str(known)) as service,
        hearing(listening) as trusted,
        hearing(strange) as other,
        hearing() as plain,
    ):
        service.client.put_producer(CPU)
        for name, agent in (("n1", trusted), ("n2", other), ("n3", plain)):
            agent.answers[LOG] = {"runs": []}
            service.client.put_node(name, agent.address)
            service.client.put_slot(name, "cpu", True)
        assert service.reader.slot_log("n1", "cpu") == []
        for name in ("n2", "n3"):
            with pytest.raises(NotReady, match=f"the agent of {name} at .* does not answer"):
                service.reader.slot_log(name, "cpu")
    assert any(call.path == LOG for call in trusted.calls)
    assert other.calls == plain.calls == []


def test_an_authority_that_is_none_is_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    for text in (None, "no certificate"):
        if text:
            file.write_text(text)
        with pytest.raises(InvalidInput, match=r"agents' authority .*ca.pem cannot be used"):
            AgentClient(Settings(agent_ca=str(file)))
