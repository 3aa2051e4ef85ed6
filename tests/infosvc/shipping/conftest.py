"""Machines to ship to: a real, unprivileged sshd on several loopback addresses, and a real service."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from infosvc.commands.node import node
from infosvc.commands.push import push
from infosvc.shipping.bundle import Bundle, build
from infosvc.shipping.remote import RemoteOptions
from tests.ports import free_port

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving

HOSTS = ("127.0.77.11", "127.0.77.12")
DEADLINE_SECONDS = 120.0
MOST_ADDRESSES = 16  # that one sshd listens on

CONFIG = """\
{listen}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/id.pub
PidFile none
StrictModes no
UsePAM no
MaxStartups 200
AuthenticationMethods publickey
Subsystem sftp internal-sftp
"""


def answers(host: str, port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def is_there(file: Path) -> bool:
    """Whether the process of this agent.pid is; an agent that is ended before it works leaves its file."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{int(file.read_text())}/status").read_text()
    except (OSError, ValueError):
        return False


def end_agents(agents: Path) -> None:
    """End every agent whose directory is there, and wait for that."""
    files = list(agents.glob("*/agent.pid"))
    for file in files:
        with suppress(ProcessLookupError, FileNotFoundError, ValueError):
            os.kill(int(file.read_text()), signal.SIGTERM)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while any(is_there(file) for file in files):
        assert time.monotonic() < deadline, "an agent does not end"
        time.sleep(0.05)


class Sshd:
    """A server on loopback addresses, with its keys and the client's files."""

    def __init__(self, directory: Path, hosts: Sequence[str] = HOSTS, extra: str = "") -> None:
        self.directory = directory
        self.hosts = hosts
        self.port = free_port(hosts[0])
        self.host_key = self.keygen(directory / "host_key")
        self.keygen(directory / "id")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where sshd as root locks itself in
        parts = [hosts[first : first + MOST_ADDRESSES] for first in range(0, len(hosts), MOST_ADDRESSES)]
        self.processes = [self._start(part, extra) for part in parts]
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not all(answers(host, self.port) for part in parts for host in (part[0], part[-1])):
            assert time.monotonic() < deadline, "sshd does not answer"
            time.sleep(0.05)

    def __enter__(self) -> Sshd:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.terminate()
            process.wait()

    def _start(self, hosts: Sequence[str], extra: str) -> subprocess.Popen[bytes]:
        listen = "\n".join(f"ListenAddress {host}:{self.port}" for host in hosts)
        file = self.directory / f"sshd_config.{hosts[0]}"
        file.write_text(CONFIG.format(listen=listen, directory=self.directory) + extra)
        program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
        assert program, "sshd is missing: apt-get install openssh-server"
        return subprocess.Popen([program, "-D", "-f", str(file), "-E", str(self.directory / "log")])

    @staticmethod
    def keygen(file: Path) -> str:
        """Make a key pair; the public half as known_hosts writes it."""
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
        return " ".join(file.with_suffix(".pub").read_text().split()[:2])

    def options(self, directory: Path, **changed: Any) -> RemoteOptions:
        """How to enrol the hosts, each with a directory of its own below `directory`."""
        known = self.directory / "known_hosts"
        known.write_text("".join(f"[{host}]:{self.port} {self.host_key}\n" for host in self.hosts))
        config = self.directory / "config"
        config.write_text(f"Host 127.0.*\n  Port {self.port}\n  User {getpass.getuser()}\n")
        given: dict[str, Any] = {
            "ssh_config": config,
            "identity": self.directory / "id",
            "known_hosts": known,
            "directory": f"{directory}/{{node}}",
            "agent_port": free_port(self.hosts[0]),
        }
        return RemoteOptions(**(given | changed))


@contextmanager
def patience() -> Iterator[None]:
    """A busy machine takes longer to log in, and to start an agent that answers; who waits in vain sets how long."""
    with pytest.MonkeyPatch.context() as patient:
        patient.setattr("infosvc.shipping.ssh.CONNECT_SECONDS", 60.0)
        patient.setattr("infosvc.shipping.ssh.ANSWER_SECONDS", 240.0)
        patient.setattr("infosvc.shipping.remote.HEALTH_SECONDS", 120.0)
        patient.setattr("infosvc.shipping.remote._PROBE_SECONDS", 30.0)
        yield


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    """All tests here have patience."""
    with patience():
        yield


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Two machines."""
    with Sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def more_sshd() -> type[Sshd]:
    """more_sshd(DIRECTORY, HOSTS, EXTRA): a context manager with machines of another kind."""
    return Sshd


@pytest.fixture
def ending() -> Callable[[Path], None]:
    """ending(AGENTS): end the agents in this directory."""
    return end_agents


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """What ships."""
    return build(tmp_path_factory.mktemp("bundle") / "files")


@pytest.fixture
def other_bundle(tmp_path: Path) -> Bundle:
    """What ships, and one script more."""
    scripts = tmp_path / "own" / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "answer.sh").write_text("echo 42\n")
    return build(tmp_path / "other", tmp_path / "own")


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """Where the agents' directories are."""
    return tmp_path / "agents"


@pytest.fixture
def options(sshd: Sshd, agents: Path) -> Iterator[RemoteOptions]:
    """How to reach the two machines; their agents are ended with the test."""
    yield sshd.options(agents)
    end_agents(agents)


@pytest.fixture
def served(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A running service that knows nothing, and takes a node for ready for 30 s after its agent was heard."""
    with serve(sqlite_url, heartbeat=10.0, lost_after=60.0) as service:
        yield service


@dataclass
class Hand:
    """An operator's command line."""

    service: Served
    options: RemoteOptions
    home: Path

    def add(self, *words: str) -> Result:
        """`nodewise node add`."""
        port = str(self.options.agent_port)
        return CliRunner().invoke(node, ["add", "--port", port, *self._reaching(), *words], obj=self.home)

    def push(self, *words: str) -> Result:
        """`nodewise producer push`."""
        return CliRunner().invoke(push, [*self._reaching(), *words], obj=self.home)

    def _reaching(self) -> list[str]:
        options = self.options
        words = ["-F", options.ssh_config, "--identity", options.identity, "--known-hosts", options.known_hosts]
        return [str(word) for word in (*words, "--directory", options.directory, "--url", self.service.url)]


@pytest.fixture
def hand(served: Served, options: RemoteOptions, tmp_path: Path) -> Hand:
    """The commands, told how to reach the machines and the service."""
    home = tmp_path / "home"
    (home / "service").mkdir(parents=True)
    (home / "service" / "token").write_text("a-token-for-the-tests\n")
    return Hand(served, options, home)
