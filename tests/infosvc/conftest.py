"""Real databases, real services on them, and a clock that tests can turn."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pymysql
import pytest

from infosvc.http.server import Server
from infosvc.settings import Clock, Settings
from infosvc.state import claim
from infosvc.state import database as database_module
from infosvc.wire.client import InfoClient
from infosvc.wire.signature import Signature
from tests.ports import free_port

TOKEN = "a-token-for-the-tests"
PASSWORD = "s3cret/of:the@tests"
PATIENCE_SECONDS = 60.0
"""Of the services and clients of tests that are not about patience: on a busy machine anybody may stand still a while,
and a call that is given up too soon fails, or is made twice."""
SBIN = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


@dataclass
class Hands:
    """Clock hands that only move when they are turned."""

    now: float = 1000.0
    epoch: float = 1_700_000_000.0

    def turn(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def clock(self) -> Clock:
        """For create_app."""
        return Clock(lambda: self.now, lambda: self.epoch + self.now)


@dataclass
class MariaDB:
    """One database server of our own: data, socket and log in one directory, one loopback port."""

    directory: Path
    port: int
    options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    made: int = 0

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    _program("mariadbd"),
                    "--no-defaults",
                    f"--datadir={self.directory / 'data'}",
                    f"--socket={self.directory / 'socket'}",
                    f"--pid-file={self.directory / 'pid'}",
                    f"--port={self.port}",
                    "--bind-address=127.0.0.1",
                    f"--tmpdir={self.directory}",
                    "--innodb-buffer-pool-size=32M",
                    *self.options,
                    *_as_root(),
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 120
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail("mariadbd did not start:\n" + (self.directory / "log").read_text()[-2000:])
            time.sleep(0.05)

    def stop(self) -> None:
        """End it as an administrator would."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(120)
            self.process = None

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            self.process = None

    def new_database(self) -> str:
        """The URL, password included, of an empty database; without TLS, which costs 20 ms for each connection."""
        self.made += 1
        name = f"infosvc_{self.made}"
        self.sql(f"CREATE DATABASE {name}", f"GRANT ALL ON {name}.* TO infosvc@localhost IDENTIFIED BY '{PASSWORD}'")
        return f"mysql+pymysql://infosvc:s3cret%2Fof%3Athe%40tests@127.0.0.1:{self.port}/{name}?ssl_disabled=true"

    def sql(self, *statements: str) -> list[Any]:
        """Run statements as root; the rows of the last."""
        return self._ask(pymysql.cursors.Cursor, statements)

    def row(self, statement: str) -> dict[str, Any]:
        """The one row of a statement, by the names of its columns."""
        [found] = self._ask(pymysql.cursors.DictCursor, [statement])
        return dict(found)

    def run(self, program: str, *options: str, said: bytes = b"") -> bytes:
        """What a program prints that speaks to the server as root, and is told something."""
        words = [_program(program), f"--socket={self.directory / 'socket'}", "--user=root", *options]
        return subprocess.run(words, input=said, check=True, stdout=subprocess.PIPE, timeout=240).stdout

    def _ask(self, kind: type[pymysql.cursors.Cursor], statements: Sequence[str]) -> list[Any]:
        connection = pymysql.connect(unix_socket=str(self.directory / "socket"), user="root", connect_timeout=60)
        with connection, connection.cursor(kind) as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


def _program(name: str) -> str:
    found = shutil.which(name, path=SBIN)
    if found is None:
        pytest.fail(f"{name} is not installed: apt-get install mariadb-server")
    return found


def _as_root() -> list[str]:
    return ["--user=root"] if os.getuid() == 0 else []


@contextmanager
def database_server(*options: str) -> Iterator[MariaDB]:
    """A MariaDB server without databases, with further options of mariadbd."""
    # The path of its socket must stay short, which pytest's own directories are not.
    directory = Path(tempfile.mkdtemp(prefix="mariadb-"))
    server = MariaDB(directory, free_port(), options)
    try:
        subprocess.run(
            [
                _program("mariadb-install-db"),
                "--no-defaults",
                f"--datadir={directory / 'data'}",
                f"--tmpdir={directory}",  # of its own: servers that start at once give files in /tmp the same names
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                *_as_root(),
            ],
            check=True,
            capture_output=True,
            timeout=240,
        )
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """A real MariaDB server, for as long as the tests run."""
    with database_server() as server, pytest.MonkeyPatch.context() as patient:
        waits = dict.fromkeys(database_module._CONNECT["mysql"], int(PATIENCE_SECONDS))
        patient.setitem(database_module._CONNECT, "mysql", waits)
        patient.setattr(claim, "_PATIENCE", waits)
        yield server


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of an SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path / 'service' / 'infosvc.db'}"


@pytest.fixture(params=["sqlite", "mariadb"])
def database(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return str(request.getfixturevalue("sqlite_url"))
    return str(request.getfixturevalue("mariadb").new_database())


@dataclass
class Answer:
    """What came back over HTTP."""

    status: int
    headers: dict[str, str]
    text: str
    content: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.text)

    @property
    def error(self) -> dict[str, Any]:
        """The error object, which must be all there is."""
        assert set(self.json) == {"error"}
        found: dict[str, Any] = self.json["error"]
        assert set(found) == {"code", "message", "field"}
        return found


@dataclass
class Served:
    """One running service."""

    url: str
    server: Server
    client: InfoClient = field(init=False)
    reader: InfoClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = InfoClient(self.url, TOKEN, timeout=PATIENCE_SECONDS)
        self.reader = InfoClient(self.url, timeout=PATIENCE_SECONDS)

    def ask(
        self, method: str, path: str, body: Any = None, token: str | None = TOKEN, headers: dict[str, str] | None = None
    ) -> Answer:
        """One call as any program makes it; a str body goes as it is, anything else as JSON."""
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body)
        connection = http.client.HTTPConnection(str(urlsplit(self.url).hostname), urlsplit(self.url).port, timeout=60)
        try:
            connection.request(method, path, data, sent | (headers or {}))
            response = connection.getresponse()
            content = response.read()
            return Answer(response.status, dict(response.getheaders()), content.decode(errors="replace"), content)
        finally:
            connection.close()


Serving = Callable[..., Any]


@contextmanager
def serving(database: str, hands: Hands | None = None, port: int = 0, **settings: Any) -> Iterator[Served]:
    """A service on a database, on a free port if none is given, until the block ends."""
    clock = hands.clock() if hands else None
    settings = {"patience": PATIENCE_SECONDS} | settings
    server = Server(Settings(database=database, token=TOKEN, **settings), "127.0.0.1", port, clock)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield Served(server.url, server)
    finally:
        server.stop()
        thread.join(120)
        assert not thread.is_alive()


@pytest.fixture
def serve() -> Serving:
    """serve(DATABASE, HANDS, PORT, **SETTINGS): a context manager with a running service."""
    return serving


@pytest.fixture
def hands() -> Hands:
    """The clock of `service`."""
    return Hands()


@pytest.fixture
def service(database: str, hands: Hands) -> Iterator[Served]:
    """A running service on each kind of database."""
    with serving(database, hands) as served:
        yield served


@pytest.fixture(scope="module", params=["sqlite", "mariadb"])
def shared_service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A running service on each kind of database, for those tests of a module after which it is as it was before."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('shared') / 'infosvc.db'}"
    else:
        url = request.getfixturevalue("mariadb").new_database()
    with serving(url, Hands()) as served:
        yield served


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """eventually(CONDITION): wait until it holds, at most two minutes."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true within 120 s"
            time.sleep(0.02)

    return wait


class Call(NamedTuple):
    """One call that an agent got."""

    path: str
    method: str
    authorization: str
    body: bytes

    def is_signed_with(self, key: str) -> bool:
        """Whether the holder of this key, mostly a token's hash, made this call."""
        return Signature.read(self.authorization).is_by(key, self.method, self.path, self.body)


class Heard:
    """Listens where an agent would: `calls` is what it was told, `answers` what it says to a GET, by path.

    Who signs with another key than the one it `believes`, if it is told one, gets 401.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.calls: list[Call] = []
        self.answers: dict[str, Any] = {}
        self.status = 200
        self.believes: str | None = None
        heard = self

        class Agent(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self._answer(body, heard.status, {})

            def do_GET(self) -> None:
                found = heard.answers.get(self.path)
                self._answer(b"", heard.status if found is not None else 404, found)

            def _answer(self, body: bytes, status: int, said: Any) -> None:
                call = Call(self.path, self.command, self.headers["Authorization"], body)
                heard.calls.append(call)
                is_believed = heard.believes is None or call.is_signed_with(heard.believes)
                self.send_response(status if is_believed else 401)
                self.end_headers()
                self.wfile.write(json.dumps(said).encode())

            def log_message(self, *_said: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
        self.address = f"127.0.0.1:{self.server.server_port}"
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)


@contextmanager
def hearing(tls: ssl.SSLContext | None = None) -> Iterator[Heard]:
    """Something that listens where an agent would, until the block ends."""
    heard = Heard(tls)
    thread = threading.Thread(target=heard.server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield heard
    finally:
        heard.server.shutdown()
        thread.join()
        heard.server.server_close()


Hearing = Callable[..., AbstractContextManager[Heard]]


@pytest.fixture(name="hearing")
def hearing_fixture() -> Hearing:
    """hearing(TLS): a context manager with something that listens where an agent would."""
    return hearing


@pytest.fixture
def agent() -> Iterator[Heard]:
    """Something that listens where an agent would."""
    with hearing() as heard:
        yield heard


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """For what a test opens in its middle and must close in the end."""
    with ExitStack() as held:
        yield held
