"""Runs the real collectors as a slot would, and real agents against a real service."""

from __future__ import annotations

import datetime
import hashlib
import http.client
import ipaddress
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from collectors.agent.run.child import Child
from collectors.agent.run.guard import Guard
from collectors.agent.run.process import Started
from collectors.agent.run.trust import Refused
from collectors.agent.slot import Ended, RunSlot
from infosvc.http.server import Server
from infosvc.settings import Settings
from infosvc.shipping.bundle import Bundle, build
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Role, Run, Slot
from infosvc.wire.signature import sign
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-of-the-tests"
OWN = "the hash of the agent's own token"
HOST = "127.0.78.11"
DEADLINE_SECONDS = 90.0
CALL_SECONDS = 60.0
PATIENT = {"lost_after": 600.0, "patience": CALL_SECONDS, "notice_timeout": 20.0}
"""Settings of a service that takes no agent for lost, and gives up no call, because the machine is busy."""

Collect = Callable[..., "subprocess.CompletedProcess[str]"]


def wait_for(condition: Callable[[], Any]) -> Any:
    """The first true answer of `condition`, asked until the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (answer := condition()):
        assert time.monotonic() < deadline, "this never came"
        time.sleep(0.02)
    return answer


@pytest.fixture(name="wait_for")
def wait_for_fixture() -> Callable[[Callable[[], Any]], Any]:
    return wait_for


@pytest.fixture
def collect(tmp_path: Path) -> Collect:
    """collect(SCRIPT, *arguments, proc=FIXTURE): one run under sh, keeping its sample between calls."""
    state = tmp_path / "state"
    state.mkdir()

    def run(script: str, *arguments: str, proc: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "STATE_DIR": str(state), "LANG": "C"}
        if proc is not None:
            environment["PROC_ROOT"] = str(ROOT / "tests" / "fixtures" / f"proc_{proc}")
        command = ["sh", str(ROOT / "collectors" / "scripts" / script), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """What would be pushed to a node."""
    return build(tmp_path_factory.mktemp("bundle") / "files")


@contextmanager
def serving(directory: Path, port: int = 0, **settings: Any) -> Iterator[str]:
    """A real information service on the database in a directory; its URL."""
    given = PATIENT | settings
    server = Server(Settings(database=f"sqlite:///{directory}/infosvc.db", token=TOKEN, **given), "127.0.0.1", port)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.url
    finally:
        server.stop()
        thread.join()


@pytest.fixture(name="serving")
def serving_fixture() -> Callable[..., AbstractContextManager[str]]:
    return serving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InfoClient]:
    """A real information service, spoken to with its token."""
    with serving(tmp_path) as url, InfoClient(url, TOKEN, CALL_SECONDS) as client:
        yield client


class Node:
    """An agent's files, and the agent while it runs."""

    def __init__(self, base: Path, bundle: Bundle, url: str, token: str = TOKEN) -> None:
        self.port = free_port(HOST)
        self.base = base
        self.bin = base / "bin"
        self.bin.mkdir(parents=True)
        self.file = base / "settings.json"
        self.program = bundle.directory / "agent.pyz"
        self.values: dict[str, Any] = {
            "node_name": "n1",
            "host": HOST,
            "port": self.port,
            "service_url": url,
            "token_file": str(base / "token"),
            "directory": str(bundle.directory),
            "state_dir": str(base / "state"),
            "allow": [str(self.bin)],
        }
        self.token = token
        self.write(base / "token", token)
        self.configure()

    def write(self, file: Path, text: str, mode: int = 0o600) -> Path:
        file.write_text(text)
        file.chmod(mode)
        return file

    def configure(self, **changed: Any) -> None:
        self.values |= changed
        self.write(self.file, json.dumps(self.values))

    def script(self, name: str, text: str) -> str:
        """An own program in the allowed directory."""
        return str(self.write(self.bin / name, f"#!/bin/sh\n{text}\n", 0o755))

    def launch(self, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(self.program), "--settings", str(self.file), *(options or ["--detach"])]
        surroundings = {"PATH": os.environ["PATH"], "SECRET_OF_THE_LOGIN": "x"} | environment
        return subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=120, check=False)

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        key: str | None = OWN,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[int, Any]:
        """Ask the agent as the service does, which signs with the hash of the agent's token."""
        plain = http.client.HTTPConnection(HOST, self.port, timeout=30)
        connection = http.client.HTTPSConnection(HOST, self.port, timeout=30, context=tls) if tls else plain
        key = hashlib.sha256(self.token.encode()).hexdigest() if key == OWN else key
        try:
            headers = {"Authorization": sign(key, method, path, body or b"")} if key else {}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    @property
    def pid(self) -> int:
        return int((self.base / "agent.pid").read_text())

    def kill(self) -> None:
        """End the agent if it runs, without asking, and nobody who has its number by now."""
        with suppress(OSError, ValueError):
            if str(self.file).encode() in Path(f"/proc/{self.pid}/cmdline").read_bytes().split(b"\0"):
                os.kill(self.pid, signal.SIGKILL)


@pytest.fixture
def node(tmp_path: Path, bundle: Bundle, service: InfoClient) -> Iterator[Node]:
    """A node known to the service, with a token of its own; its agent is not started yet."""
    service.put_node("n1", f"{HOST}:1")
    _, token = service.create_token("agent of n1", Role.AGENT, node_name="n1")
    made = Node(tmp_path / "node", bundle, service.url, token)
    service.put_node("n1", f"{HOST}:{made.port}")
    yield made
    made.kill()


@pytest.fixture
def make_node(tmp_path: Path, bundle: Bundle) -> Iterator[Callable[[str, str], Node]]:
    """make_node(URL, TOKEN): the files of a node whose agent reports to a service of the test's own."""
    made: list[Node] = []

    def make(url: str, token: str = TOKEN) -> Node:
        made.append(Node(tmp_path / f"node{len(made)}", bundle, url, token))
        return made[-1]

    yield make
    for node in made:
        node.kill()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for the addresses of this test that is its own authority, and its key."""
    directory = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nodewise tests")])
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "127.0.78.11")]
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (directory / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (directory / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
    (directory / "key.pem").chmod(0o600)
    return directory / "cert.pem", directory / "key.pem"


class NoGuard(Guard):
    """The tests of the guard itself run a whole agent."""

    def __init__(self) -> None:
        """Nothing to tell."""

    def _tell(self, line: str) -> None:
        pass


class Shell:
    """Starts `sh -c CMD`, which no agent would do, and counts the starts."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.starts: list[str] = []

    def start(self, slot: Slot) -> Child:
        self.starts.append(slot.data_name)
        if slot.cmd == "refuse":
            raise Refused("not here")
        if slot.cmd == "missing":
            raise FileNotFoundError(2, "No such file or directory")
        if slot.cmd == "unlimited":
            raise subprocess.SubprocessError("Exception occurred in preexec_fn.")
        state = self.state / slot.data_name
        state.mkdir(exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "STATE_DIR": str(state)}
        return Child(partial(Started, ["sh", "-c", slot.cmd], environment), state, NoGuard())


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def finish(wait_for: Callable[[Callable[[], Any]], Any]) -> Callable[[RunSlot, float], Run]:
    """finish(SLOT, NOW): step at one instant until the run that is under way has ended."""

    def step(slot: RunSlot, now: float) -> Run:
        ended: Ended = wait_for(lambda: slot.step(now))
        return ended.run

    return step
