"""Whole agents as detached processes, against the real service."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from collectors.agent import daemon
from collectors.agent.api import NOTICE
from collectors.agent.run.guard import Guard
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Datum, Kind, Outcome, Producer, Role, State
from tests.collectors.conftest import DEADLINE_SECONDS, TOKEN
from tests.ports import free_port

pytestmark = pytest.mark.timeout(900)  # on a busy machine each start of an agent takes many seconds

Wait = Callable[[Callable[[], Any]], Any]


def alive(pid: int) -> bool:
    """Whether the process still does anything: a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def number_in(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def register(service: InfoClient, name: str, cmd: str, **more: Any) -> None:
    usual = {"time_max": 0.2, "timeout": 60.0, "ttl": 60.0}  # fresh also when a report takes long
    service.put_producer(Producer(data_name=name, cmd=cmd, **(usual | more)))
    service.put_slot("n1", name, running=True)


def value(service: InfoClient, name: str) -> Datum | None:
    try:
        return next(iter(service.data(name, node="n1")), None)
    except NotFound:
        return None


def test_a_detached_agent_listens_runs_its_slots_and_reports(node: Any, service: InfoClient, wait_for: Wait) -> None:
    register(service, "cpu_count", "scripts/cpu_count.sh")
    launched = node.launch()
    assert (launched.returncode, launched.stdout, launched.stderr) == (0, "", "")

    status, health = node.call("GET", "/healthz", key=None)
    assert (status, health["node_name"], health["pid"]) == (200, "n1", node.pid)
    datum = wait_for(lambda: value(service, "cpu_count"))
    assert (datum.state, datum.number()) == (State.FRESH, len(os.sched_getaffinity(0)))
    assert service.nodes()[0].agent_version == health["agent_version"]

    # A changed wish reaches the agent at once, by the service's notice.
    register(service, "load_1m", "scripts/load_1m.sh")
    wait_for(lambda: value(service, "load_1m"))


def test_an_agent_goes_on_with_the_service_that_has_taken_over(
    tmp_path: Path, serving: Any, make_node: Any, wait_for: Wait
) -> None:
    second_port = free_port()
    second = f"http://127.0.0.1:{second_port}"
    with serving(tmp_path) as first, InfoClient(first, TOKEN) as service:
        service.put_node("n1", "127.0.0.1:1")
        _, token = service.create_token("agent of n1", Role.AGENT, node_name="n1")
        node = make_node(f"{first},{second}", token)
        service.put_node("n1", f"127.0.0.1:{node.port}")
        count = 'n=$(cat "$STATE_DIR/n" || echo 0)\necho $((n+1)) | tee "$STATE_DIR/n"'
        register(service, "count", node.script("count.sh", count))
        node.launch()
        wait_for(lambda: value(service, "count"))
    with serving(tmp_path, second_port), InfoClient(second, TOKEN) as service:
        before = value(service, "count")
        assert before is not None
        wait_for(lambda: (now := value(service, "count")) is not None and now.number() > before.number())


def test_a_run_sees_the_fixed_environment_and_nothing_of_the_login(
    node: Any, service: InfoClient, wait_for: Wait
) -> None:
    register(service, "environment", node.script("env.sh", "env | sort | tr '\\n' ' '; pwd"))
    node.launch(NODEWISE_CLUSTER="c1", NODEWISE_TOKEN="x")
    datum = wait_for(lambda: value(service, "environment"))

    seen = dict(word.partition("=")[::2] for word in datum.data_value.split())
    state = str(node.base / "state" / "environment")
    assert seen.keys() - {"PWD", state} == {
        "DATA_NAME", "EMITS", "INFOSVC_URL", "INFOSVC_TOKEN_FILE", "LANG", "NODEWISE_CLUSTER", "NODE_NAME", "PATH",
        "PROC_ROOT", "PROGRAM_DIR", "PYTHONPATH", "STATE_DIR",
    }  # fmt: skip
    assert (seen["NODE_NAME"], seen["STATE_DIR"], seen["NODEWISE_CLUSTER"]) == ("n1", state, "c1")
    assert (seen["DATA_NAME"], seen["EMITS"]) == ("environment", "")
    assert state in seen


def test_a_run_that_emits_several_values_brings_each_of_them(node: Any, service: InfoClient, wait_for: Wait) -> None:
    text = "echo half 0.5; echo model 'Xeon E5'"
    register(service, "several", node.script("several.sh", text), emits=("half", "model", "missing"))
    node.launch()

    assert wait_for(lambda: value(service, "half")).data_value == "0.5"
    assert wait_for(lambda: value(service, "model")).data_value == "Xeon E5"
    assert wait_for(lambda: value(service, "several")).data_value == "2"
    missing = value(service, "missing")
    assert missing is None or missing.data_value is None


def test_every_way_a_run_can_end_reaches_the_service_with_its_reason(
    node: Any, service: InfoClient, wait_for: Wait
) -> None:
    seldom = 1.0  # else they may be in quarantine before they are looked at
    register(service, "failing", node.script("fail.sh", "echo why >&2; exit 2"), time_max=seldom)
    register(service, "silent", node.script("silent.sh", "exit 3"))
    register(service, "slow", node.script("slow.sh", "sleep 600"), time_max=seldom, timeout=0.3)
    register(service, "foreign", "/bin/date")
    register(service, "wrong", node.script("wrong.sh", "echo 1"), sha256="0" * 64)
    node.launch()

    names = ("failing", "silent", "slow", "foreign", "wrong")
    seen = {name: wait_for(partial(value, service, name)) for name in names}
    assert {name: datum.outcome for name, datum in seen.items()} == {
        "failing": Outcome.FAILED,
        "silent": Outcome.NO_DATA,
        "slow": Outcome.TIMEOUT,
        "foreign": Outcome.REFUSED,
        "wrong": Outcome.REFUSED,
    }
    assert "why" in seen["failing"].reason
    assert "--allow" in seen["foreign"].reason
    assert all(datum.data_value is None for datum in seen.values())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_run_outlives_its_agent(node: Any, service: InfoClient, wait_for: Wait, number: int) -> None:
    start = f"sleep 300 & echo $! > {node.base}/child; setsid sh -c 'echo $$ > {node.base}/escaped; sleep 300' & wait"
    register(service, "forking", node.script("fork.sh", f"echo $$ > {node.base}/leader; {start}"), timeout=600)
    node.launch()
    files = [node.base / name for name in ("leader", "child", "escaped")]
    pids = [wait_for(partial(number_in, file)) for file in files]
    agent = node.pid
    assert all(map(alive, [agent, *pids]))

    os.kill(agent, number)

    wait_for(lambda: not any(map(alive, [agent, *pids])))


def test_a_later_agent_takes_the_place_of_the_one_before(node: Any, service: InfoClient, wait_for: Wait) -> None:
    node.launch()
    first = node.pid
    again = node.launch()

    assert (again.returncode, again.stderr) == (0, "")
    assert node.pid != first
    assert not alive(first)
    assert node.launch("--stop").returncode == 0
    assert not (node.base / "agent.pid").exists()
    assert node.launch("--stop").returncode == 0


def test_an_agent_that_had_to_be_killed_leaves_no_pid_file(node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def send(process: int, number: signal.Signals) -> None:
        if number is signal.SIGKILL:
            monkeypatch.setattr(daemon, "STOP_SECONDS", DEADLINE_SECONDS)  # a killed one may take its time
        signal_process(process, number)

    signal_process = signal.pidfd_send_signal
    monkeypatch.setattr(signal, "pidfd_send_signal", send)
    monkeypatch.setattr(daemon, "STOP_SECONDS", 0.5)
    node.launch()
    agent = node.pid
    os.kill(agent, signal.SIGSTOP)  # it hears nothing but the kill

    assert daemon.stop_previous(node.file)
    assert not alive(agent)
    assert not (node.base / "agent.pid").exists()


def test_the_pid_file_of_an_agent_that_a_supervisor_has_started_meanwhile_stays(
    node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.launch()
    monkeypatch.setattr(daemon, "_end", lambda *_: (node.base / "agent.pid").write_text("17\n"))
    agent = node.pid
    try:
        assert daemon.stop_previous(node.file)
        assert node.pid == 17
    finally:
        (node.base / "agent.pid").write_text(str(agent))


def test_an_agent_that_is_asked_to_end_as_soon_as_it_is_ready_leaves_nothing(node: Any, wait_for: Wait) -> None:
    program = (
        "import os, signal, sys; sys.path.insert(0, sys.argv.pop(1)); from collectors.agent import __main__ as agent\n"
        "say = agent.say; agent.say = lambda pipe: (say(pipe), os.kill(os.getpid(), signal.SIGTERM)); agent.main()"
    )
    command = [sys.executable, "-c", program, str(node.program), "--settings", str(node.file), "--detach"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    wait_for(lambda: "agent of n1 ends" in (node.base / "agent.log").read_text())
    wait_for(lambda: not (node.base / "agent.pid").exists())


def test_a_pid_file_that_names_somebody_else_harms_nobody(node: Any) -> None:
    other = subprocess.Popen(["sleep", "300"])
    (node.base / "agent.pid").write_text(str(other.pid))
    try:
        assert node.launch("--stop").returncode == 0
        assert other.poll() is None
    finally:
        (node.base / "agent.pid").unlink()
        other.kill()
        other.wait()


def test_a_pid_file_that_names_this_very_process_is_of_an_earlier_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "_is_agent", lambda *_: True)
    (tmp_path / "agent.pid").write_text(str(os.getpid()))

    assert not daemon.stop_previous(tmp_path / "settings.json")


def test_a_guard_that_is_closed_has_ended(tmp_path: Path) -> None:
    def children() -> set[str]:
        return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())

    before = children()
    guard = Guard.start(tmp_path)
    started = children() - before
    assert len(started) == 1
    guard.close()

    assert not started & children()


def test_the_guard_takes_little_memory_and_keeps_the_mark_of_a_test_cluster(node: Any, wait_for: Wait) -> None:
    node.launch(NODEWISE_CLUSTER="c1")
    children = Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text().split()
    assert len(children) == 1
    private = [line.split()[1] for line in Path(f"/proc/{children[0]}/smaps_rollup").read_text().splitlines()
               if line.startswith("Private")]  # fmt: skip

    assert sum(map(int, private)) < 2048  # kilobytes
    assert Path(f"/proc/{children[0]}/environ").read_bytes() == b"NODEWISE_CLUSTER=c1\0"


def test_a_port_in_use_is_one_sentence(node: Any) -> None:
    with socket.create_server((node.values["host"], node.port)):
        launched = node.launch()

    assert launched.returncode == 1
    assert f"{node.values['host']}:{node.port}" in launched.stderr
    assert "Address already in use" in launched.stderr
    assert "--port" in launched.stderr
    assert launched.stderr.count("\n") == 1
    assert not (node.base / "agent.pid").exists()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda node: node.file.chmod(0o644), "chmod 600"),
        (lambda node: node.write(node.file, "{"), "not JSON"),
        (lambda node: node.configure(colour="red"), "keys among"),
        (lambda node: node.write(node.file, '{"port": 1}'), "not complete"),
        (lambda node: (node.base / "token").unlink(), "token"),
        (lambda node: (node.base / "token").chmod(0o640), "chmod 600"),
        (
            lambda node: node.configure(directory="/nowhere"),
            "cannot start: [Errno 2] No such file or directory: '/nowhere",
        ),
        (lambda node: node.configure(port="8410"), "not a number from 1 to 65535"),
        (lambda node: node.configure(port=65536), "not a number from 1 to 65535"),
        (lambda node: node.configure(host="a..b"), "cannot listen on a..b"),
        (lambda node: node.configure(tls_cert="/cert"), "only one of tls_cert and tls_key"),
        (lambda node: node.configure(tls_cert="/cert", tls_key="/key"), "/cert cannot be used"),
        (lambda node: node.configure(limit_open_files=0), "limit_open_files"),
        (lambda node: node.configure(spool_bytes=None), "spool_bytes"),
    ],
)
def test_bad_settings_are_one_sentence(node: Any, spoil: Callable[[Any], Any], said: str) -> None:
    spoil(node)
    launched = node.launch()

    assert launched.returncode == 1
    assert said in launched.stderr
    assert "Traceback" not in launched.stderr
    assert launched.stderr.count("\n") == 1


def test_only_the_holder_of_the_token_s_hash_is_answered(node: Any) -> None:
    node.launch()
    token = (node.base / "token").read_text()

    for key in (None, "wrong", token):
        assert node.call("POST", NOTICE, key=key)[0] == 401
        assert node.call("GET", "/api/v1/slots/a/log", key=key)[0] == 401
    assert alive(node.pid)
    assert node.call("POST", NOTICE) == (200, {"node_name": "n1"})
    assert node.call("GET", "/api/v1/slots/a/log")[1]["runs"] == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/", None, 404),
        ("POST", "/api/v1/unknown", b"{}", 404),
        ("POST", "/api/v1/wanted", b"{}", 404),
        ("POST", "/api/v1/stop", b'{"node_name": "n1"}', 404),
        ("GET", "/api/v1/slots/..%2Fa/log", None, 422),
        ("POST", NOTICE, b"x" * (1024 + 1), 413),
    ],
)
def test_a_wrong_call_is_answered_with_a_sentence(
    node: Any, method: str, path: str, body: bytes | None, status: int
) -> None:
    node.launch()
    try:
        answered, answer = node.call(method, path, body)
    except BrokenPipeError:
        answered, answer = 413, {"error": {"message": "the agent hung up before the whole body was sent"}}

    assert answered == status
    assert answer["error"]["message"]
    assert node.call("GET", "/healthz")[0] == 200


def test_processors_judge_a_node_by_what_the_service_knows(node: Any, service: InfoClient, wait_for: Wait) -> None:
    service.put_producer(Producer("cpu_free_ratio", "", 60, kind=Kind.PROGRAM))
    service.put_producer(Producer("images_per_second:x", "", 60, kind=Kind.PROGRAM))
    register(service, "perf_cpu", "processors/perf_cpu.py 0.5", kind=Kind.PROCESSOR)
    register(service, "perf_even", "processors/perf_even.py 1 n1=2.5", kind=Kind.PROCESSOR)
    register(service, "perf_history", "processors/perf_history.py images_per_second:x", kind=Kind.PROCESSOR)
    node.launch()

    def ended(name: str, outcome: Outcome, text: str | None) -> bool:
        datum = value(service, name)
        return datum is not None and (datum.outcome, datum.data_value) == (outcome, text)

    wait_for(lambda: ended("perf_cpu", Outcome.NO_DATA, None))
    wait_for(lambda: ended("perf_history", Outcome.NO_DATA, None))
    wait_for(lambda: ended("perf_even", Outcome.OK, "2.5"))
    service.put_value("cpu_free_ratio", "n1", 0.2)
    service.put_value("images_per_second:x", "n1", 42.5)
    wait_for(lambda: ended("perf_cpu", Outcome.OK, "0.4000"))
    wait_for(lambda: ended("perf_history", Outcome.OK, "42.5"))
