"""Whom an agent believes, and what becomes of it when nobody believes it any more: real agents, services, TLS."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Datum, Kind, Producer, Role

Wait = Callable[[Callable[[], Any]], Any]


def alive(pid: int) -> bool:
    """Whether the process still does anything: a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def start(service: InfoClient, name: str, cmd: str, interval: float = 0.2) -> None:
    service.put_producer(Producer(name, cmd, interval, timeout=600))
    service.put_slot("n1", name, running=True)


def value(service: InfoClient, name: str) -> Datum | None:
    try:
        return next((datum for datum in service.data(name, node="n1") if datum.data_value), None)
    except NotFound:
        return None


def pid_in(file: Path) -> int:
    return int(file.read_text()) if file.exists() and file.read_text().strip() else 0


def test_an_agent_whose_node_is_forgotten_ends_itself_and_its_runs(
    node: Any, service: InfoClient, wait_for: Wait
) -> None:
    start(service, "long", node.script("long.sh", f"echo $$ >{node.base}/run; sleep 300"))
    node.launch()
    agent, run = node.pid, wait_for(lambda: pid_in(node.base / "run"))
    # Nobody can call this agent: what it learns, it learns from the answer to its own report.
    service.put_node("n1", "127.0.0.1:1")
    service.delete_node("n1")

    wait_for(lambda: not alive(agent) and not alive(run))
    assert "revoked" in (node.base / "agent.log").read_text()
    assert not (node.base / "agent.pid").exists()


def test_an_agent_that_is_not_known_goes_on_and_reports_once_it_is(
    node: Any, service: InfoClient, wait_for: Wait
) -> None:
    right = node.token
    node.write(node.base / "token", "nw_agent_of_nobody")
    start(service, "a", node.script("a.sh", "echo 1"))
    node.launch()
    agent = node.pid
    wait_for(lambda: "does not take reports" in (node.base / "agent.log").read_text())
    assert alive(agent)

    node.write(node.base / "token", right)
    node.launch()
    assert wait_for(lambda: value(service, "a")).data_value == "1"


def test_the_log_of_a_slot_is_asked_from_its_agent_and_outlives_it(
    node: Any, service: InfoClient, wait_for: Wait
) -> None:
    start(service, "bad", node.script("bad.sh", "echo why >&2; exit 2"))
    node.launch()
    wait_for(lambda: len(service.slot_log("n1", "bad")) > 2)
    os.kill(node.pid, signal.SIGKILL)
    service.put_slot("n1", "bad", running=False)
    node.launch()

    runs = service.slot_log("n1", "bad")
    assert {(run.outcome, run.exit_status, run.stderr) for run in runs} == {("failed", 2, "why\n")}
    assert [run.ended_at for run in runs] == sorted((run.ended_at for run in runs), reverse=True)
    status, answer = node.call("GET", "/api/v1/slots/bad/log")
    assert (status, answer["node_name"], answer["data_name"], len(answer["runs"])) == (200, "n1", "bad", len(runs))


def test_with_certificates_both_sides_speak_tls_and_check_each_other(
    tmp_path: Path, serving: Any, make_node: Any, certificate: tuple[Path, Path], wait_for: Wait
) -> None:
    cert, key = map(str, certificate)
    trusting = ssl.create_default_context(cafile=cert)
    with serving(tmp_path, tls_cert=cert, tls_key=key, agent_ca=cert) as url:
        service = InfoClient(url, "a-token-of-the-tests", 60, ca_file=cert)
        service.put_node("n1", "127.0.0.1:1")
        node = make_node(url, service.create_token("agent of n1", Role.AGENT, node_name="n1")[1])
        service.put_node("n1", f"127.0.78.11:{node.port}")
        node.configure(tls_cert=cert, tls_key=key, ca_file=cert)
        assert node.launch().returncode == 0

        with pytest.raises((OSError, http.client.HTTPException)):
            node.call("GET", "/healthz")
        with pytest.raises(ssl.SSLCertVerificationError):
            node.call("GET", "/healthz", tls=ssl.create_default_context())
        assert node.call("GET", "/healthz", tls=trusting)[0] == 200
        start(service, "a", node.script("a.sh", "echo $NODEWISE_CA_FILE"))
        assert wait_for(lambda: value(service, "a")).data_value == cert
        assert service.slot_log("n1", "a")  # the service's own call, by https
        service.put_producer(Producer("cpu_free_ratio", "", 60, kind=Kind.PROGRAM))
        service.put_producer(Producer("speed", "", 60, kind=Kind.PROGRAM))
        service.put_value("cpu_free_ratio", "n1", 0.2)
        service.put_value("speed", "n1", 42.5)
        start(service, "perf_cpu", "processors/perf_cpu.py 0.5")
        start(service, "perf_history", "processors/perf_history.py speed")
        assert wait_for(lambda: value(service, "perf_cpu")).data_value == "0.4000"
        assert wait_for(lambda: value(service, "perf_history")).data_value == "42.5"
        service.close()


def test_a_service_that_the_authority_does_not_know_gets_nothing(
    tmp_path: Path, serving: Any, make_node: Any, certificate: tuple[Path, Path], wait_for: Wait
) -> None:
    cert, key = map(str, certificate)
    with serving(tmp_path, tls_cert=cert, tls_key=key) as url:
        node = make_node(url)
        assert node.launch().returncode == 0
        wait_for(lambda: "not trusted" in (node.base / "agent.log").read_text())


def test_a_caller_who_never_shakes_hands_keeps_nobody_waiting(make_node: Any, certificate: tuple[Path, Path]) -> None:
    cert, key = map(str, certificate)
    node = make_node("http://127.0.0.1:9")
    node.configure(tls_cert=cert, tls_key=key)
    assert node.launch().returncode == 0
    with socket.create_connection(("127.0.78.11", node.port)):
        assert node.call("GET", "/healthz", tls=ssl.create_default_context(cafile=cert))[0] == 200
