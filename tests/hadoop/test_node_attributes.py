"""The script that tells YARN a node's classes, run as the NodeManager runs it, against a running service."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infosvc.http.server import Server
from infosvc.settings import Clock, Settings
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Outcome, Producer, Report, Role, Run

SCRIPT = Path(__file__).resolve().parents[2] / "yarn-plugin" / "attributes" / "node_attributes.py"
TOKEN = "a-token-for-the-tests"
CPU = "capability_class = perf_cpu: high >= 0.8, middle >= 0.4, low"
NODE = "127.0.1.11"

Done = subprocess.CompletedProcess[str]


class Service:
    """A running service with a clock that tests turn, which knows a few names."""

    def __init__(self, directory: Path, open_reading: bool) -> None:
        self.now = 1000.0
        url = f"sqlite:///{directory / 'infosvc.db'}"
        settings = Settings(url, TOKEN, open_reading=open_reading, patience=60.0)
        self.server = Server(settings, "127.0.0.1", 0, Clock(lambda: self.now, lambda: self.now))
        self.url = self.server.url
        self.client = InfoClient(self.url, TOKEN, timeout=60.0)

    def give(self, **values: str | float) -> None:
        """Write values of the node; they count for 10 s."""
        for name, value in values.items():
            self.client.put_producer(Producer(name, "x", 5.0, ttl=10.0))
            self.client.put_value(name, NODE, value)


@contextmanager
def running(directory: Path, open_reading: bool = True) -> Iterator[Service]:
    """A service until the block ends."""
    service = Service(directory, open_reading)
    thread = threading.Thread(target=service.server.run)
    thread.start()
    try:
        service.give(perf_cpu=0.5)
        yield service
    finally:
        service.server.stop()
        thread.join(120)
        assert not thread.is_alive()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service that answers everybody."""
    with running(tmp_path) as made:
        yield made


@pytest.fixture
def rules(tmp_path: Path) -> Callable[..., Path]:
    """rules(URL, *LINES): a file of rules."""

    def write(url: str, *lines: str) -> Path:
        file = tmp_path / "rules.conf"
        file.write_text("\n".join(["# classes of this node", "", f"service = {url}", *lines]) + "\n")
        return file

    return write


def run(*words: object, **environment: str) -> Done:
    """The script with nothing but Python's own library."""
    command = [sys.executable, "-I", "-S", str(SCRIPT), *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=os.environ | environment
    )


def attributes(done: Done) -> dict[str, str]:
    """What the NodeManager makes of its output: name -> value, all of type STRING."""
    assert (done.returncode, done.stderr) == (0, "")
    parts = [line.removeprefix("NODE_ATTRIBUTE:").split(",") for line in done.stdout.splitlines()]
    assert all(kind == "STRING" for _, kind, _ in parts)
    return {name: value for name, _, value in parts}


def refused(done: Done) -> str:
    """The one sentence of a run that failed."""
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("node_attributes: ") and done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.95, "high"), (0.8, "high"), (0.79, "middle"), (0.4, "middle"), (0.39, "low"), (-1e9, "low"), ("1e3", "high")],
)
def test_the_first_class_whose_bound_is_reached_is_the_nodes(
    service: Service, rules: Callable[..., Path], value: str | float, expected: str
) -> None:
    service.give(perf_cpu=value)

    assert attributes(run(rules(service.url, CPU), NODE)) == {"capability_class": expected}


def test_a_value_below_every_bound_gives_no_attribute(service: Service, rules: Callable[..., Path]) -> None:
    file = rules(service.url, "gpu = perf_cpu: good >= 0.9, some >= 0.6", "size = perf_cpu: b >= 0.5, s")

    assert attributes(run(file, NODE)) == {"size": "b"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("12.4", "12.4"),
        ("Tesla T4", "Tesla_T4"),
        ("a,STRING,b\nNODE_ATTRIBUTE:x,STRING,y", "a_STRING_b_NODE_ATTRIBUTE_x_STRING_y"),
        ("  8 ", "8"),
        ("größer", "gr__er"),
        ("x" * 255, "x" * 255),
        # One attribute that YARN refuses would cost the node all of them.
        ("x" * 256, None),
        ("-1", None),
        ("/dev/nvidia0", None),
        ("", None),
        (" ", None),
    ],
)
def test_a_star_takes_the_value_as_far_as_yarn_does(
    service: Service, rules: Callable[..., Path], value: str, expected: str | None
) -> None:
    service.give(gpu_cuda_version=value)

    found = attributes(run(rules(service.url, "cuda = gpu_cuda_version: *", CPU), NODE))

    assert found.pop("cuda", None) == expected
    assert found == {"capability_class": "middle"}


def test_a_star_may_have_a_bound(service: Service, rules: Callable[..., Path]) -> None:
    service.give(gpus=4, disks=0)

    file = rules(service.url, "gpus = gpus: * >= 1, none", "disks = disks: * >= 1, none")

    assert attributes(run(file, NODE)) == {"gpus": "4", "disks": "none"}


def test_text_where_a_bound_needs_a_number_gives_no_attribute(service: Service, rules: Callable[..., Path]) -> None:
    service.give(perf_cpu="unknown")

    assert attributes(run(rules(service.url, CPU), NODE)) == {}


def test_a_value_that_is_missing_stale_or_failed_gives_no_attribute(
    service: Service, rules: Callable[..., Path]
) -> None:
    service.give(old=1, broken=1)
    service.now += 10.5
    service.client.put_producer(Producer("missing", "x", 5.0))
    service.client.put_node(NODE, "127.0.0.1:9")
    service.client.put_slot(NODE, "broken", True)
    failed = (Run("broken", Outcome.OK, 0.1, "1"), Run("broken", Outcome.FAILED, 0.1, None, "no device"))
    service.client.report(NODE, Report("b", 1, "1", failed))
    service.give(perf_cpu=0.9)

    file = rules(service.url, "a = old: *", "b = missing: *", "c = broken: *", CPU)

    assert attributes(run(file, NODE)) == {"capability_class": "high"}


def test_only_the_nodes_own_values_count(service: Service, rules: Callable[..., Path]) -> None:
    assert attributes(run(rules(service.url, CPU), "127.0.1.12")) == {}


def test_without_arguments_it_reads_the_file_beside_it_and_asks_for_the_machine(
    service: Service, rules: Callable[..., Path], tmp_path: Path
) -> None:
    script = tmp_path / SCRIPT.name
    script.write_bytes(SCRIPT.read_bytes())
    script.chmod(SCRIPT.stat().st_mode)
    rules(service.url, CPU).rename(script.with_suffix(".conf"))
    service.client.put_value("perf_cpu", socket.getfqdn(), 0.9)

    done = subprocess.run([script], capture_output=True, text=True, timeout=60, check=False)

    assert attributes(done) == {"capability_class": "high"}


def test_a_proxy_of_the_environment_stays_out_of_the_way(service: Service, rules: Callable[..., Path]) -> None:
    done = run(rules(service.url, CPU), NODE, http_proxy="http://127.0.0.1:1", no_proxy="")

    assert attributes(done) == {"capability_class": "middle"}


def test_the_token_comes_from_its_file(tmp_path: Path, rules: Callable[..., Path]) -> None:
    token = tmp_path / "token"
    with running(tmp_path, open_reading=False) as service:
        file = rules(service.url, f"token-file = {token}", CPU)
        assert f"{token} cannot be read: " in refused(run(file, NODE))
        token.write_text("nw_reader_wrong\n")
        assert f"{service.url} says 401: " in refused(run(file, NODE))
        _, text = service.client.create_token("attributes", Role.READER)
        token.write_text(f"{text}\n")
        assert attributes(run(file, NODE)) == {"capability_class": "middle"}


@pytest.mark.parametrize("text", ["", "secret\nsecret", "secret word", "sécret"])
def test_a_file_without_a_token_is_named_and_not_shown(rules: Callable[..., Path], tmp_path: Path, text: str) -> None:
    token = tmp_path / "token"
    token.write_text(text)

    said = refused(run(rules("http://127.0.0.1:1", f"token-file = {token}", CPU), NODE))

    assert f"{token} holds no token" in said
    assert "secret" not in said and "cret" not in said


def test_a_service_that_is_away_is_said_in_one_sentence(rules: Callable[..., Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    assert f"{url} does not answer: " in refused(run(rules(url, CPU), NODE))


def test_a_service_that_never_answers_is_given_up(rules: Callable[..., Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        assert "does not answer: timed out" in refused(run(rules(url, CPU), NODE))


def test_of_two_services_the_other_is_asked_when_one_is_away(service: Service, rules: Callable[..., Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        away = f"http://127.0.0.1:{listener.getsockname()[1]}"

    assert attributes(run(rules(f"{away},{service.url}", CPU), NODE)) == {"capability_class": "middle"}
    assert attributes(run(rules(f"{service.url}/, {away}/", CPU), NODE)) == {"capability_class": "middle"}
    said = refused(run(rules(f"{away},{away}", CPU), NODE))
    assert said.count(f"{away} does not answer: ") == 2


@pytest.mark.parametrize(("status", "goes_on"), [("503 Follows", True), ("404 Unknown", False)])
def test_another_service_is_asked_only_when_one_cannot_tell_now(
    service: Service, rules: Callable[..., Path], status: str, goes_on: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=_say_once, args=(listener, f"HTTP/1.0 {status}\r\n\r\n"))
        thread.start()
        done = run(rules(f"{url},{service.url}", CPU), NODE)
        thread.join()

    if goes_on:
        assert attributes(done) == {"capability_class": "middle"}
    else:
        assert f"{url} says 404: Unknown" in refused(done)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ("SSH-2.0-OpenSSH_9.2\r\n", "does not answer: "),
        ("HTTP/1.0 200 OK\r\nContent-Length: 99\r\n\r\n{", "does not answer: "),
        ("HTTP/1.0 200 OK\r\n\r\n<html>", "not as the information service does"),
        ("HTTP/1.0 200 OK\r\n\r\n[]", "not as the information service does"),
        ('HTTP/1.0 200 OK\r\n\r\n{"data": [{"values": [1]}]}', "not as the information service does"),
        ("HTTP/1.0 503 Away\r\n\r\n<html>", "says 503: Away"),
    ],
)
def test_nonsense_is_said_in_one_sentence(rules: Callable[..., Path], answer: str, complaint: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_say_once, args=(listener, answer))
        thread.start()
        done = run(rules(f"http://127.0.0.1:{listener.getsockname()[1]}", CPU), NODE)
        thread.join()

    assert complaint in refused(done)


def _say_once(listener: socket.socket, answer: str) -> None:
    listener.settimeout(30)
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(answer.encode())


def test_a_name_that_is_not_registered_is_named(service: Service, rules: Callable[..., Path]) -> None:
    said = refused(run(rules(service.url, CPU, "gpu = gpus_free: *"), NODE))

    assert "says 404: " in said and "gpus_free" in said


@pytest.mark.parametrize(
    "line",
    [
        "capability_class",
        "capability_class = perf_cpu",
        "capability_class = perf_cpu high",
        "capability_class = perf cpu: high",
        "_class = perf_cpu: high",
        "my.class = perf_cpu: high",
        "nm.yarn.io/class = perf_cpu: high",
        f"{'x' * 256} = perf_cpu: high",
        "= perf_cpu: high",
        "capability_class = perf_cpu: high > 0.8",
        "capability_class = perf_cpu: high >= much, low",
        "capability_class = perf_cpu: high >= nan",
        "capability_class = perf_cpu: high >= inf",
        "capability_class = perf_cpu: high >= 0.8,",
        "capability_class = perf_cpu: -high >= 0.8",
        "capability_class = perf_cpu: very high >= 0.8",
        "capability_class = perf_cpu: high*",
        "capability_class = perf_cpu: low, high >= 0.8",
        "capability_class = perf_cpu: middle >= 0.4, high >= 0.8",
        "capability_class = perf_cpu: low, lowest",
        "token-file =",
        "service = http://127.0.0.1:2",
        "size = perf_cpu: big",
    ],
)
def test_a_wrong_rule_is_told_with_its_line(rules: Callable[..., Path], line: str) -> None:
    # The third line is the service's, and the fourth is one that the last of these says again.
    said = refused(run(rules("http://127.0.0.1:1", "size = perf_cpu: small", line), NODE))

    assert said.startswith("node_attributes: line 5 ")


@pytest.mark.parametrize(
    ("url", "lines"),
    [
        ("localhost:8400", [CPU]),
        ("file:///etc", [CPU]),
        ("http://h:1/path", [CPU]),
        ("http://h:1,other:1", [CPU]),
        ("http://h:1", []),
    ],
)
def test_what_must_be_there_is_asked_for(rules: Callable[..., Path], url: str, lines: list[str]) -> None:
    assert "there must be a line like: " in refused(run(rules(url, *lines), NODE))


def test_rules_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    file = tmp_path / "none.conf"
    assert f"{file} cannot be read: " in refused(run(file, NODE))
    file.write_bytes(b"service = \xff")
    assert f"{file} cannot be read: " in refused(run(file, NODE))


def test_it_needs_no_more_than_an_old_python_and_its_library() -> None:
    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 6))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    taken = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert {name.partition(".")[0] for name in imported | taken} <= sys.stdlib_module_names
    assert "__future__" not in taken  # what is worth importing from there is younger
