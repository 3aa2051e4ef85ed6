"""The commands, run as people run them, against a running service."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from infosvc.commands.producer import put
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Unreachable
from infosvc.wire.fields import fields_of
from infosvc.wire.records import Outcome, Producer, Report, Run
from infosvc.wire.terminal_text import sparkline
from tests.in_process import nodewise

if TYPE_CHECKING:
    from tests.infosvc.conftest import MariaDB, Served, Serving

pytestmark = pytest.mark.timeout(900)  # on a busy machine each command takes many seconds

Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]

NODEWISE = (sys.executable, "-m", "nodewise")
DEAF = (
    sys.executable,
    "-c",
    "import runpy, signal, threading\n"
    "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
    "runpy.run_module('nodewise', run_name='__main__', alter_sys=True)",
)
"""The same, but SIGTERM goes to another thread than the main one, which sleeps on as when it came just too early."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home."""
    return tmp_path / "home"


@pytest.fixture
def served(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A running service with one node that has reported, which it takes for ready however long commands take."""
    with serve(sqlite_url, heartbeat=1000.0, lost_after=4000.0) as service:
        service.client.put_producer(Producer("cpu", "scripts/cpu.sh", 2.0, ttl=3600.0, unit="ratio"))
        service.client.put_node("n1", "127.0.0.1:9")
        service.client.put_slot("n1", "cpu", True)
        runs = (Run("cpu", Outcome.OK, 0.1, "0.5"), Run("cpu", Outcome.FAILED, 0.1, None, "[red]no\x1b[31m file"))
        service.client.report("n1", Report("b", 1, "1.0", runs))
        yield service


@pytest.fixture
def command(home: Path, served: Served) -> Command:
    """command(*WORDS): one run of nodewise with its output, against `served`."""
    token = home / "service" / "token"
    token.parent.mkdir(parents=True)
    token.write_text("a-token-for-the-tests\n")
    token.chmod(0o600)

    def run(*words: str, **environment: str) -> Done:
        settings = {"NODEWISE_URL": served.url, "NODEWISE_HOME": str(home), "COLUMNS": "80"} | environment
        return nodewise(*words, env=os.environ | settings)

    return run


def _fine(done: Done) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _refused(done: Done) -> str:
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_producers_are_put_changed_shown_and_removed(command: Command, served: Served) -> None:
    assert "version 1" in _fine(command("producer", "put", "load", "--cmd", "scripts/load.sh", "--time-max", "5"))
    assert "every 10 s, stale after 30 s" in _fine(command("producer", "put", "load", "--time-max", "10"))
    _fine(command("producer", "put", "load", "--ttl", "7", "--unit", "processes"))
    _fine(command("producer", "put", "load", "--time-max", "4"))
    shown = json.loads(_fine(command("producer", "show", "load", "--json")))
    assert (shown["cmd"], shown["time_max"], shown["ttl"], shown["unit"]) == ("scripts/load.sh", 4.0, 7.0, "processes")
    assert "scripts/load.sh" in _fine(command("producer", "list"))
    assert [row["data_name"] for row in json.loads(_fine(command("producer", "list", "--json")))] == ["cpu", "load"]
    _fine(command("producer", "put", "speed", "--kind", "program", "--time-max", "60"))
    assert "forgotten" in _fine(command("producer", "rm", "load", "speed"))
    assert "give --cmd and --time-max" in _refused(command("producer", "put", "new", "--cmd", "x"))
    assert "finite" in _refused(command("producer", "put", "cpu", "--time-max", "nan"))
    assert "'a b' is not allowed" in _refused(command("producer", "put", "a b", "--cmd", "x", "--time-max", "1"))


def test_the_options_of_a_producer_say_and_allow_what_its_body_does() -> None:
    options = {one.name: one for one in put.params if isinstance(one, click.Option)}
    for one in fields_of(Producer):
        assert one.described.text[1:] in (options[one.name].help or "") if one.described.sent else True, one.name
    given = put.make_context("put", ["load", "--time-max", "1.5m", "--ttl", "10m", "--replicas", "100000"]).params
    assert (given["time_max"], given["ttl"], given["replicas"], given["timeout"]) == (90.0, 600.0, 100_000, None)


@pytest.mark.parametrize(
    "words", ["--replicas 100001", "--timeout 0", "--keep -1", "--time-max 2h1", "--kind other", "--scope x"]
)
def test_an_option_that_no_body_may_hold_is_refused_before_the_service_is_asked(words: str) -> None:
    with pytest.raises(click.BadParameter):
        put.make_context("put", ["load", *words.split()])


def test_removing_many_goes_on_after_one_that_fails(command: Command, served: Served) -> None:
    done = command("producer", "rm", "nothing", "cpu")
    assert (done.returncode, done.stdout) == (1, "cpu: forgotten\n")
    assert done.stderr.startswith("nothing: no producer")


def test_data_is_put_read_and_removed(command: Command, served: Served) -> None:
    assert _fine(command("data", "put", "cpu", "n2", "0.25")) == "cpu on n2: 0.25\n"
    table = _fine(command("data", "get", "cpu")).splitlines()
    assert table[0].split() == ["node", "value", "unit", "age", "state", "reason"]
    assert table[1].split()[:3] == ["n1", "0.5", "ratio"] and "failed" in table[1]
    assert table[2].split()[:3] == ["n2", "0.25", "ratio"] and "fresh" in table[2]
    found = json.loads(_fine(command("data", "get", "cpu", "--node", "n2", "--json")))
    assert [(row["node_name"], row["data_value"], row["state"]) for row in found] == [("n2", "0.25", "fresh")]
    assert "no value that fits" in _fine(command("data", "get", "cpu", "--node", "n9"))
    assert "close to it: cpu" in _refused(command("data", "get", "cpus"))
    assert _fine(command("data", "rm", "cpu", "n2")) == "cpu on n2: forgotten\n"
    assert "nothing to forget" in _refused(command("data", "rm", "cpu", "n2"))


def test_several_names_are_read_at_once(command: Command, served: Served) -> None:
    served.client.put_producer(Producer("load", "x", 5.0))
    served.client.put_value("load", "n2", 3)
    table = _fine(command("data", "get", "load", "cpu")).splitlines()
    assert table[0].split()[:3] == ["data_name", "node", "value"]
    assert [row.split()[:3] for row in table[1:]] == [["load", "n2", "3"], ["cpu", "n1", "0.5"]]
    found = json.loads(_fine(command("data", "get", "load", "cpu", "--node", "n2", "--json")))
    assert [(row["data_name"], row["node_name"]) for row in found] == [("load", "n2")]


def test_a_watch_shows_the_present_values_and_then_each_new_one(command: Command, served: Served) -> None:
    with _watching(served, "cpu", "--count", "2", "--json") as process:
        assert process.stdout is not None
        present = process.stdout.readline()  # what comes before it is read may be shown twice
        for number in (1, 2):
            served.client.put_value("cpu", "n2", number)
        said, complaint = process.communicate(timeout=240)
    rows = [json.loads(line) for line in (present + said).splitlines()]
    assert (process.returncode, complaint) == (0, "")
    assert [(row["node_name"], row["data_value"], row["outcome"]) for row in rows] == [
        ("n1", "0.5", "failed"),
        ("n2", "1", "ok"),
        ("n2", "2", "ok"),
    ]


def test_a_watch_ends_well_at_ctrl_c_and_shows_only_the_nodes_asked_for(command: Command, served: Served) -> None:
    served.client.put_value("cpu", "n2", "two\x1b[31m")
    with _watching(served, "cpu", "--node", "n2") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=240)[1] == ""
    assert process.returncode == 0
    assert line.split()[1:] == ["cpu", "n2", "two\N{REPLACEMENT CHARACTER}[31m", "ok"]
    assert "close to it: cpu" in _refused(command("data", "watch", "cpus"))


def _watching(served: Served, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*NODEWISE, "--home", "/nowhere", "data", "watch", *words, "--url", served.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_history_of_a_name_is_shown_in_numbers_and_bars(command: Command, served: Served) -> None:
    assert "no value from this time is stored" in _fine(command("data", "history", "cpu", "n2"))
    shown = _fine(command("data", "history", "cpu", "n1")).splitlines()  # nothing is kept, so out of the last hour
    assert shown[2].split() == ["1", *["0.5"] * 6]
    served.client.put_producer(Producer("cpu", "scripts/cpu.sh", 2.0, unit="ratio", keep=3600.0))
    for number in (1, 2, 9):
        served.client.put_value("cpu", "n2", number)
    shown = _fine(command("data", "history", "cpu", "n2", "--since", "1h")).splitlines()
    assert shown[0].startswith("cpu on n2, ")
    assert shown[1].split() == ["count", "min", "max", "mean", "p50", "p90", "p99"]
    assert shown[2].split()[:5] == ["3", "1", "9", "4", "2"]
    assert shown[3].endswith("ratio")
    found = json.loads(_fine(command("data", "history", "cpu", "n2", "--json")))
    assert [value for _, value in found["points"]] == ["1", "2", "9"]
    assert command("data", "history", "cpu", "n2", "--since", "soon").returncode == 2


@pytest.mark.parametrize(
    ("points", "line"),
    [
        ([], ""),
        ([(0.0, "text")], ""),
        ([(0.0, "5"), (59.0, "5")], "▁" + " " * 58 + "▁"),
        ([(0.0, "-1e308"), (59.0, "1e308")], "▁" + " " * 58 + "▁"),
        ([(0.0, "0"), (30.0, "7"), (30.1, "7"), (59.9, "14"), (60.0, "14")], "▁" + " " * 29 + "▅" + " " * 28 + "█"),
    ],
)
def test_a_sparkline_shows_numbers_over_time(points: list[tuple[float, str]], line: str) -> None:
    assert sparkline(points, 0.0, 60.0) == line


def test_what_a_node_printed_neither_styles_nor_steers_the_terminal(command: Command) -> None:
    shown = _fine(command("data", "get", "cpu"))
    assert "[red]no\N{REPLACEMENT CHARACTER}[31m file" in shown


def test_slots_start_stop_and_are_listed(command: Command, served: Served) -> None:
    served.client.put_producer(Producer("load", "x", 5.0))
    assert _fine(command("slot", "start", "load", "--interval", "9")) == "n1: load runs every 9 s\n"
    assert "stopped" in _fine(command("slot", "stop", "load"))
    slots = {slot.data_name: slot for slot in served.reader.slots("n1").slots}
    assert (slots["load"].running, slots["load"].interval) == (False, 9.0)
    listed = json.loads(_fine(command("slot", "list", "--json")))
    assert [(row["node_name"], row["data_name"], row["running"]) for row in listed] == [
        ("n1", "cpu", True),
        ("n1", "load", False),
    ]
    assert "failed" in _fine(command("slot", "list", "--node", "n1"))
    assert "nodewise node add n9" in _refused(command("slot", "start", "cpu", "--node", "n9"))
    assert "no producer" in _refused(command("slot", "stop", "none"))


def test_nodes_are_listed_and_removed(command: Command, served: Served) -> None:
    assert "n1" in _fine(command("node", "list")) and "ready" in _fine(command("node", "list"))
    assert [row["node_name"] for row in json.loads(_fine(command("node", "list", "--json")))] == ["n1"]
    assert _fine(command("node", "rm", "n1")) == "n1: forgotten\n"
    assert "nodewise node add" in _fine(command("node", "list"))


def test_without_the_token_commands_read_and_say_what_writing_needs(command: Command, home: Path) -> None:
    (home / "service" / "token").unlink()
    assert "cpu" in _fine(command("producer", "list"))
    assert "--token-file" in _refused(command("data", "put", "cpu", "n1", "1"))
    assert "--token-file" in _refused(command("data", "put", "cpu", "n1", "1", "--token-file", "/nowhere"))
    assert "token" in _refused(command("node", "add", "n9"))


def test_a_service_that_is_not_there_is_one_sentence(command: Command) -> None:
    with socket.socket() as taken:  # nobody listens there, and nobody else can
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert "nodewise serve" in _refused(command("data", "get", "cpu", NODEWISE_URL=url))
    assert "http://HOST:PORT" in _refused(command("data", "get", "cpu", "--url", "ftp://x"))


class Running:
    """`nodewise serve` in a process of its own."""

    def __init__(self, home: Path, *words: str, program: Sequence[str] = NODEWISE, **environment: str) -> None:
        settings = os.environ | {"NODEWISE_HOME": str(home)} | environment
        self.process = subprocess.Popen(
            [*program, "serve", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=settings
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        self.url = self.line.removeprefix("listening on ").split(",")[0]

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=120)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit status and stderr after a signal."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=120)
        return self.process.returncode, said


def test_serve_makes_a_token_says_where_it_listens_and_ends_on_sigterm(home: Path) -> None:
    with Running(home, "--port", "0") as running:
        token = home / "service" / "token"
        assert running.line.strip() == (
            f"listening on {running.url}, database sqlite:///{home}/service/infosvc.db, token file {token}"
        )
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        assert token.read_text().strip() not in running.line
        client = InfoClient.from_token_file(running.url, token)
        client.put_producer(Producer("cpu", "x", 1))
        client.put_value("cpu", "n1", 7)
        assert running.end() == (0, "")
        with pytest.raises(Unreachable):
            client.data("cpu")
    with Running(home, "--port", "0") as running:
        client = InfoClient.from_token_file(running.url, token)
        assert [datum.data_value for datum in client.data("cpu")] == ["7"]
        client.put_value("cpu", "n1", 8)
        assert running.end(signal.SIGINT) == (0, "")


def test_serve_ends_when_the_signal_comes_just_before_it_falls_asleep(home: Path) -> None:
    with Running(home, "--port", "0", program=DEAF) as running:
        assert InfoClient(running.url).producers() == []
        assert running.end() == (0, "")


def test_a_killed_service_has_what_it_acknowledged(home: Path, database: str) -> None:
    with Running(home, "--port", "0", "--database", database) as running:
        client = InfoClient.from_token_file(running.url, home / "service" / "token")
        client.put_producer(Producer("cpu", "x", 1))
        for number in range(10):
            client.put_value("cpu", "n1", number)
    with Running(home, "--port", "0", "--database", database) as running:
        assert [datum.data_value for datum in InfoClient(running.url).data("cpu")] == ["9"]


def test_serve_takes_the_databases_password_from_a_file_or_the_environment(
    home: Path, tmp_path: Path, mariadb: MariaDB
) -> None:
    url = mariadb.new_database().replace(":s3cret%2Fof%3Athe%40tests@", "@")
    password = tmp_path / "password"
    password.write_text("s3cret/of:the@tests\n")
    for words, environment in (
        (["--database-password-file", str(password)], {}),
        ([], {"NODEWISE_DATABASE_PASSWORD": "s3cret/of:the@tests"}),
    ):
        with Running(home, "--port", "0", "--database", url, *words, **environment) as running:
            assert "infosvc" in running.line and "s3cret" not in running.line
            assert running.end() == (0, "")


def test_serve_refuses_what_it_cannot_use_in_one_sentence(home: Path, tmp_path: Path, mariadb: MariaDB) -> None:
    def refused(*words: str) -> str:
        done = subprocess.run(
            [*NODEWISE, "--home", str(home), "serve", *words], capture_output=True, text=True, timeout=240, check=False
        )
        return _refused(done)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused("--port", str(taken.getsockname()[1]))
    assert "Address already in use" in said and "--port" in said
    assert "cannot listen" in refused("--host", "192.0.2.1")
    assert "cannot listen" in refused("--host", "a..b")
    assert "sqlite:////absolute/path.db" in refused("--database", "oracle://u:hidden@h/d")
    wrong = refused("--port", "0", "--database", mariadb.new_database().replace("s3cret", "wr0ng"))
    assert "Access denied" in wrong and "wr0ng" not in wrong
    assert "does not answer" in refused("--port", "0", "--database", "mysql+pymysql://u:hidden@127.0.0.1:1/d")
    bad = tmp_path / "bad-token"
    bad.write_text("a-token-that-everybody-reads")
    bad.chmod(0o644)
    assert f"chmod 600 {bad}" in refused("--token-file", str(bad))
    bad.write_text("short")
    bad.chmod(0o600)
    assert "holds no token" in refused("--token-file", str(bad))
    assert "cannot be used" in refused("--token-file", str(bad / "token"))


def test_serve_beyond_this_machine_warns(home: Path) -> None:
    with Running(home, "--port", "0", "--host", "0.0.0.0") as running:
        status, said = running.end()
    assert status == 0
    assert "Warning: 0.0.0.0 can be reached from other machines" in said


def test_serve_ends_while_requests_wait(home: Path, stack: ExitStack) -> None:
    with Running(home, "--port", "0") as running:
        # A caller that never finishes its request must not keep the service from ending.
        host, port = running.url.removeprefix("http://").split(":")
        idle = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
        idle.sendall(b"PUT /api/v1/data/cpu/n1 HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        InfoClient(running.url).producers()
        assert running.end()[0] == 0
