"""What the pages show of the information service, with real agents on two machines."""

from __future__ import annotations

import json
import select
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

import pyarrow as pa
import pytest

from infosvc.shipping.remote import RemoteOptions
from infosvc.wire.client import InfoClient
from infosvc.wire.records import State
from tests.infosvc.conftest import TOKEN, Served, serving
from tests.infosvc.shipping.conftest import HOSTS, Hand, Sshd, end_agents, patience
from tests.recipes.pages import ROOT, block
from tests.recipes.shell import Shell, changed, stop

pytestmark = pytest.mark.timeout(900)  # a busy machine takes minutes to start agents

SHOWN = "http://127.0.0.1:8400"
DEADLINE_SECONDS = 240.0


@dataclass(frozen=True)
class Enrolled:
    """A service whose machines run what ships, a shell that knows it, and how ssh reaches the machines."""

    service: Served
    shell: Shell
    reaching: str

    def data(self, name: str, node: str) -> list[str | None]:
        """The fresh values of a name on a node."""
        return [one.data_value for one in self.service.client.data(name, node=node) if one.state is State.FRESH]


@pytest.fixture(scope="module")
def enrolled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enrolled]:
    """Two machines, one of which the pages call worker1."""
    place = tmp_path_factory.mktemp("agents")
    token = place / "home" / "service" / "token"
    token.parent.mkdir(parents=True)
    token.write_text(TOKEN + "\n")
    (place / "sshd").mkdir()
    with serving(f"sqlite:///{place / 'infosvc.db'}") as service, Sshd(place / "sshd") as sshd:
        options = sshd.options(place / "nodes")
        told = {"NODEWISE_URL": service.url, "NODEWISE_TOKEN_FILE": str(token)}
        try:
            with patience():
                done = Hand(service, options, place / "home").add(*HOSTS)
            assert done.exit_code == 0, done.output
            made = Enrolled(service, Shell(place / "reader", place / "work", told), _reaching(options))
            until(lambda: made.data("perf_cpu", HOSTS[0]) and made.data("cpu_free_ratio", HOSTS[1]))
            yield made
        finally:
            end_agents(place / "nodes")


T = TypeVar("T")


def _reaching(options: RemoteOptions) -> str:
    """The words that lead `node add` to the machines of the tests."""
    files = f"-F {options.ssh_config} --identity {options.identity} --known-hosts {options.known_hosts}"
    return f"{files} --directory '{options.directory}' --port {options.agent_port}"


def until(condition: Callable[[], T]) -> T:
    """The first true answer, at most four minutes later."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.1)
    return found


def test_the_commands_show_what_is_known(enrolled: Enrolled) -> None:
    text = changed(
        block("info-commands"),
        ("data watch cpu_free_ratio", "data watch cpu_free_ratio --count 2"),  # else it ends with Ctrl-C
        ("worker1", HOSTS[0]),
    )

    said = enrolled.shell.run(text)

    assert HOSTS[0] in said and HOSTS[1] in said


def _passes(client: InfoClient, output: IO[str]) -> bool:
    """A node comes and goes; whether whoever listens has said something of it."""
    for change in (lambda: client.put_node("passing", "127.0.0.1:9"), lambda: client.delete_node("passing")):
        change()
        if select.select([output], [], [], 2.0)[0]:
            return True
    return False


def test_the_program_in_python_reads_values_and_follows_events(enrolled: Enrolled) -> None:
    program = enrolled.shell.folder / "program.py"
    program.write_text(changed(block("info-python"), (SHOWN, enrolled.service.url)))
    running = enrolled.shell.start("exec python3 program.py")
    try:
        assert running.stdout
        until(partial(_passes, enrolled.service.client, running.stdout))
        line = running.stdout.readline()
    finally:
        stop(running)

    name, state = line.split()
    assert name in ("passing", *HOSTS) and state.isalpha()


def _first_value(shell: Shell, call: str) -> str:
    """The line that says that a value has come; the test's own time limit is the deadline."""
    running = shell.start(f"exec {changed(call, ('curl -N', 'curl -N -s'))}")
    try:
        assert running.stdout
        return next(line for line in running.stdout if line.startswith("event: value"))
    finally:
        stop(running)


def test_curl_reads_values_events_and_metrics(enrolled: Enrolled) -> None:
    shell = enrolled.shell
    lines = [line.partition(" #")[0].strip() for line in block("info-curl").splitlines()]
    said = {}
    until(lambda: all(enrolled.data("load_1m", host) for host in HOSTS))
    for line in lines:
        call = changed(line, (SHOWN, enrolled.service.url)).replace("worker1", HOSTS[0])
        # A stream of events has no end.
        said[line.rpartition(SHOWN)[2]] = _first_value(shell, call) if "/events" in call else shell.run(call)

    assert json.loads(said["/api/v1/data/cpu_free_ratio"])["data_name"] == "cpu_free_ratio"
    with pa.ipc.open_stream((shell.folder / "load.arrow").read_bytes()) as stream:
        assert set(stream.read_all()["node_name"].to_pylist()) >= set(HOSTS)
    assert any(json.loads(said["/api/v1/data/load_1m/worker1/hour"])["numbers"])
    assert "event: value" in said["/api/v1/events?type=value"]
    assert "nodewise_" in said["/metrics"]
    assert len(said) == len(lines)


def test_a_program_of_an_allowed_folder_is_started(enrolled: Enrolled, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    shutil.copy(ROOT / "examples" / "getCpuUsage.sh", tmp_path)
    text = changed(
        block("allowed-program"),
        ("node add worker1", f"node add {enrolled.reaching} {HOSTS[1]}"),
        ("/usr/Apps/bin", str(tmp_path)),
    )

    enrolled.shell.run(text)

    (value,) = until(lambda: enrolled.data("getCpuUsage", HOSTS[1]))
    assert 0 <= float(value or "nan") <= 1


def test_the_reader_of_the_page_needs_no_token_on_this_machine(enrolled: Enrolled) -> None:
    with InfoClient(enrolled.service.url) as client:
        assert {node.node_name for node in client.nodes()} >= set(HOSTS)
