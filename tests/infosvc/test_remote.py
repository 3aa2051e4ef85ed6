"""Enrolment over a real, unprivileged sshd, up to fresh values in a real service."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from infosvc.app import Server
from infosvc.bundle import Bundle, build, catalog
from infosvc.client import InfoClient
from infosvc.errors import Conflict, InfoError, InvalidInput, NotReady, Unauthorized, Unreachable
from infosvc.records import Datum, State
from infosvc.remote import Enrolled, Machine, RemoteOptions, enrol
from infosvc.settings import Settings

HOSTS = ("127.0.77.11", "127.0.77.12")
TOKEN = "a-token-of-the-tests"
DEADLINE_SECONDS = 60.0

CONFIG = """\
{listen}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/id.pub
PidFile none
StrictModes no
UsePAM no
AuthenticationMethods publickey
Subsystem sftp internal-sftp
"""


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (answer := condition()):
        assert time.monotonic() < deadline, "this never came"
        time.sleep(0.05)
    return answer


def keygen(file: Path) -> str:
    """Make a key pair; the public half as known_hosts writes it."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    return " ".join(file.with_suffix(".pub").read_text().split()[:2])


def free_port(host: str) -> int:
    with socket.create_server((host, 0)) as server:
        port: int = server.getsockname()[1]
        return port


def alive(pid: int) -> bool:
    """Whether the process still does anything: a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


class Sshd:
    """A server on two loopback addresses, with its keys and the client's files."""

    def __init__(self, directory: Path, extra: str = "") -> None:
        self.directory = directory
        self.port = free_port(HOSTS[0])
        self.host_key = keygen(directory / "host_key")
        keygen(directory / "id")
        listen = "\n".join(f"ListenAddress {host}:{self.port}" for host in HOSTS)
        (directory / "sshd_config").write_text(CONFIG.format(listen=listen, directory=directory) + extra)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where sshd as root locks itself in
        program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
        assert program, "sshd is missing: apt-get install openssh-server"
        self.process = subprocess.Popen(
            [program, "-D", "-f", str(directory / "sshd_config"), "-E", str(directory / "log")]
        )
        wait_for(lambda: answers(HOSTS[0], self.port))

    def options(self, directory: Path, **changed: Any) -> RemoteOptions:
        """How to enrol both hosts, each with a directory of its own below `directory`."""
        known = self.directory / "known_hosts"
        known.write_text("".join(f"[{host}]:{self.port} {self.host_key}\n" for host in HOSTS))
        config = self.directory / "config"
        config.write_text(f"Host 127.0.77.*\n  Port {self.port}\n  User {getpass.getuser()}\n")
        given: dict[str, Any] = {
            "ssh_config": config,
            "identity": self.directory / "id",
            "known_hosts": known,
            "directory": f"{directory}/{{node}}",
            "agent_port": free_port(HOSTS[0]),
        }
        return RemoteOptions(**(given | changed))


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.process.terminate()
    server.process.wait()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return build(tmp_path_factory.mktemp("bundle") / "files")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InfoClient]:
    server = Server(Settings(database=f"sqlite:///{tmp_path}/infosvc.db", token=TOKEN), "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    yield InfoClient(server.url, TOKEN)
    server.stop()
    thread.join()


@pytest.fixture
def options(sshd: Sshd, tmp_path: Path) -> Iterator[RemoteOptions]:
    made = sshd.options(tmp_path / "agents")
    yield made
    for host in HOSTS:
        with Machine(host, made) as machine:
            machine.stop()


def failure(results: dict[str, Any], host: str = HOSTS[0]) -> InfoError:
    error = results[host]
    assert isinstance(error, InfoError), error
    assert "\n" not in error.message
    return error


def fresh(service: InfoClient, name: str, host: str) -> bool:
    found: list[Datum] = service.data(name, node=host)
    return bool(found) and found[0].state is State.FRESH


def test_enrolled_nodes_run_the_whole_catalogue(
    options: RemoteOptions, bundle: Bundle, service: InfoClient, tmp_path: Path
) -> None:
    done: list[str] = []
    results = enrol(HOSTS, options, bundle, service.url, TOKEN, lambda host, _: done.append(host))
    expected = {host: Enrolled(host, f"{host}:{options.agent_port}", bundle.version) for host in HOSTS}
    assert results == expected
    assert sorted(done) == sorted(HOSTS)

    started = [entry.producer for entry in catalog() if entry.autostart]
    for producer in started:
        service.put_producer(producer)
    for host, enrolled in expected.items():
        service.put_node(host, enrolled.address, enrolled.agent_version)
        for producer in started:
            service.put_slot(host, producer.data_name, running=True)

    for name in ("cpu_free_ratio", "cpu_count", "memory_available_bytes", "perf_cpu", "perf_even"):
        for host in HOSTS:
            wait_for(partial(fresh, service, name, host))
    outcomes = {slot.data_name: slot.outcome for slot in service.slots(HOSTS[0]).slots}
    assert "failed" not in outcomes.values()
    assert "refused" not in outcomes.values()


def test_secrets_on_the_node_are_its_owner_s_alone(options: RemoteOptions, bundle: Bundle, tmp_path: Path) -> None:
    enrol(HOSTS[:1], options, bundle, "http://127.0.0.1:9", TOKEN)
    base = tmp_path / "agents" / HOSTS[0]

    modes = {name: stat.S_IMODE((base / name).stat().st_mode) for name in ("", "token", "settings.json", "agent.log")}
    assert modes == {"": 0o700, "token": 0o600, "settings.json": 0o600, "agent.log": 0o600}
    assert TOKEN not in (base / "settings.json").read_text()


def test_enrolling_again_replaces_the_agent_and_keeps_one_release(
    options: RemoteOptions, bundle: Bundle, tmp_path: Path
) -> None:
    base = tmp_path / "agents" / HOSTS[0]
    enrol(HOSTS[:1], options, bundle, "http://127.0.0.1:9", TOKEN)
    first, release = int((base / "agent.pid").read_text()), (base / "current").resolve()
    again = enrol(HOSTS[:1], options, bundle, "http://127.0.0.1:9", TOKEN)

    assert isinstance(again[HOSTS[0]], Enrolled)
    assert int((base / "agent.pid").read_text()) != first
    assert not alive(first)
    assert [(base / "current").resolve()] == list((base / "releases").iterdir())
    assert (base / "current").resolve() != release


def test_enrolling_again_keeps_what_was_allowed_unless_told_anew(
    options: RemoteOptions, bundle: Bundle, tmp_path: Path
) -> None:
    def allowed(*directories: str) -> list[str]:
        enrol(HOSTS[:1], replace(options, allow=directories), bundle, "http://127.0.0.1:9", TOKEN)
        found: list[str] = json.loads((tmp_path / "agents" / HOSTS[0] / "settings.json").read_text())["allow"]
        return found

    assert allowed("/opt/one") == ["/opt/one"]
    assert allowed() == ["/opt/one"]
    assert allowed("/opt/two") == ["/opt/two"]


def test_an_agent_that_cannot_be_reached_is_not_left_running(
    options: RemoteOptions, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids: list[int] = []

    def unreachable(*_: object) -> dict[str, object]:
        pids.append(int((tmp_path / "agents" / HOSTS[0] / "agent.pid").read_text()))
        raise TimeoutError

    monkeypatch.setattr("infosvc.remote._health", unreachable)
    monkeypatch.setattr("infosvc.remote.HEALTH_SECONDS", 0.3)

    assert isinstance(failure(enrol(HOSTS[:1], options, bundle, "http://127.0.0.1:9", TOKEN)), Unreachable)
    assert not alive(pids[0])


def test_a_name_that_cannot_be_a_host_s_does_not_stop_the_others(options: RemoteOptions, bundle: Bundle) -> None:
    results = enrol(("127.0.77..13", HOSTS[0]), options, bundle, "http://127.0.0.1:9", TOKEN)

    assert "127.0.77..13" in failure(results, "127.0.77..13").message
    assert isinstance(results[HOSTS[0]], Enrolled)


def test_a_node_that_is_forgotten_has_its_agent_ended(
    options: RemoteOptions, bundle: Bundle, service: InfoClient, tmp_path: Path
) -> None:
    enrolled = enrol(HOSTS[:1], options, bundle, service.url, TOKEN)[HOSTS[0]]
    assert isinstance(enrolled, Enrolled)
    service.put_node(HOSTS[0], enrolled.address)
    pid = int((tmp_path / "agents" / HOSTS[0] / "agent.pid").read_text())

    service.delete_node(HOSTS[0])

    wait_for(lambda: not alive(pid))


def test_one_host_that_fails_does_not_stop_the_others(options: RemoteOptions, bundle: Bundle) -> None:
    with socket.create_server((HOSTS[0], options.agent_port)):
        results = enrol(HOSTS, options, bundle, "http://127.0.0.1:9", TOKEN)

    assert isinstance(failure(results), NotReady)
    assert f"{HOSTS[0]}:{options.agent_port}" in failure(results).message
    assert isinstance(results[HOSTS[1]], Enrolled)


def test_a_machine_whose_host_key_is_unknown_is_never_logged_into(
    options: RemoteOptions, bundle: Bundle, tmp_path: Path
) -> None:
    empty = tmp_path / "known_hosts"
    empty.write_text("")
    error = failure(enrol(HOSTS[:1], replace(options, known_hosts=empty), bundle, "http://127.0.0.1:9", TOKEN))

    assert isinstance(error, Conflict)
    assert "ssh-keyscan" in error.message
    assert empty.read_text() == ""
    assert not (tmp_path / "agents").exists()


def test_a_machine_that_shows_another_host_key_is_never_logged_into(
    options: RemoteOptions, bundle: Bundle, tmp_path: Path, sshd: Sshd
) -> None:
    other = tmp_path / "known_hosts"
    other.write_text(f"[{HOSTS[0]}]:{sshd.port} {keygen(tmp_path / 'other')}\n")
    error = failure(enrol(HOSTS[:1], replace(options, known_hosts=other), bundle, "http://127.0.0.1:9", TOKEN))

    assert isinstance(error, Conflict)
    assert "another host key" in error.message
    assert not (tmp_path / "agents").exists()


def test_a_key_that_the_machine_does_not_know_is_refused(
    options: RemoteOptions, bundle: Bundle, tmp_path: Path
) -> None:
    keygen(tmp_path / "stranger")
    options = replace(options, identity=tmp_path / "stranger")
    error = failure(enrol(HOSTS[:1], options, bundle, "http://127.0.0.1:9", TOKEN))

    assert isinstance(error, Unauthorized)
    assert "identity" in error.message


def test_a_machine_that_does_not_answer_is_unreachable(options: RemoteOptions, bundle: Bundle) -> None:
    error = failure(enrol(["127.0.77.13"], options, bundle, "http://127.0.0.1:9", TOKEN), "127.0.77.13")

    assert isinstance(error, Unreachable)
    assert "sshd" in error.message


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"identity": Path("/nowhere/id")}, "/nowhere/id"),
        ({"known_hosts": Path("/nowhere/known_hosts")}, "/nowhere/known_hosts"),
        ({"ssh_config": Path("/nowhere/config")}, "/nowhere/config"),
        ({"allow": ("relative/bin",)}, "relative/bin"),
    ],
)
def test_a_wrong_option_is_named(options: RemoteOptions, bundle: Bundle, changed: dict[str, Any], said: str) -> None:
    error = failure(enrol(HOSTS[:1], replace(options, **changed), bundle, "http://127.0.0.1:9", TOKEN))

    assert isinstance(error, InvalidInput)
    assert said in error.message


def test_a_directory_that_cannot_be_made_is_one_sentence(
    options: RemoteOptions, bundle: Bundle, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    options = replace(options, directory=f"{tmp_path}/file/{{node}}")
    error = failure(enrol(HOSTS[:1], options, bundle, "http://127.0.0.1:9", TOKEN))

    assert isinstance(error, NotReady)
    assert f"{tmp_path}/file" in error.message


def test_a_file_that_arrives_changed_is_never_switched_to(
    options: RemoteOptions, bundle: Bundle, tmp_path: Path
) -> None:
    wrong = replace(bundle, manifest=bundle.manifest | {"scripts/load_1m.sh": "0" * 64})
    error = failure(enrol(HOSTS[:1], options, wrong, "http://127.0.0.1:9", TOKEN))

    assert isinstance(error, Conflict)
    assert "scripts/load_1m.sh arrived changed" in error.message
    assert not (tmp_path / "agents" / HOSTS[0] / "current").exists()


@pytest.mark.parametrize(
    ("python", "said"),
    [
        (None, "has no python3"),
        ("#!/bin/sh\necho hello\n", "text of its own"),
        ("#!/bin/sh\necho '{\"python\": [3, 8]}'\n", "has python3 3.8"),
    ],
)
def test_a_machine_without_a_fit_python_is_told_what_it_lacks(
    tmp_path: Path, bundle: Bundle, python: str | None, said: str
) -> None:
    (tmp_path / "bin").mkdir()
    if python is not None:
        (tmp_path / "bin" / "python3").write_text(python)
        (tmp_path / "bin" / "python3").chmod(0o755)
    (tmp_path / "sshd").mkdir()
    server = Sshd(tmp_path / "sshd", f'ForceCommand PATH={tmp_path}/bin /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
    try:
        options = server.options(tmp_path / "agents")
        error = failure(enrol(HOSTS[:1], options, bundle, "http://127.0.0.1:9", TOKEN))
    finally:
        server.process.terminate()
        server.process.wait()

    assert isinstance(error, NotReady)
    assert said in error.message


def test_an_agent_that_was_killed_can_be_enrolled_again(options: RemoteOptions, bundle: Bundle, tmp_path: Path) -> None:
    enrol(HOSTS[:1], options, bundle, "http://127.0.0.1:9", TOKEN)
    settings = json.loads((tmp_path / "agents" / HOSTS[0] / "settings.json").read_text())
    assert (settings["node_name"], settings["host"]) == (HOSTS[0], HOSTS[0])
    pid = int((tmp_path / "agents" / HOSTS[0] / "agent.pid").read_text())
    os.kill(pid, 9)
    wait_for(lambda: not answers(HOSTS[0], options.agent_port))

    assert isinstance(enrol(HOSTS[:1], options, bundle, "http://127.0.0.1:9", TOKEN)[HOSTS[0]], Enrolled)
