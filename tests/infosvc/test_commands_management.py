"""`nodewise producer` and `nodewise slot`, run as people run them, against a running service."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from infosvc.commands.options import Moment
from infosvc.commands.spans import Span
from infosvc.wire.answers import PastRun
from infosvc.wire.records import Kind, Outcome, Producer, Report, Run, Scope
from tests.in_process import nodewise

if TYPE_CHECKING:
    from tests.infosvc.conftest import Heard, Served, Serving

pytestmark = pytest.mark.timeout(900)  # on a busy machine each command takes many seconds

Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]


@pytest.fixture
def served(sqlite_url: str, serve: Serving, agent: Heard) -> Iterator[Served]:
    """A running service with one slot on a node that listens and has reported."""
    with serve(sqlite_url, notice_timeout=30.0) as service:
        service.client.put_producer(Producer("cpu", "scripts/cpu.sh", 2.0, unit="ratio"))
        service.client.put_node("n1", agent.address)
        service.client.put_slot("n1", "cpu", True)
        service.client.report("n1", Report("b", 1, "1.0", (Run("cpu", Outcome.OK, 0.1, "0.5"),)))
        yield service


@pytest.fixture
def command(tmp_path: Path, served: Served) -> Command:
    """command(*WORDS): one run of nodewise with its output, against `served`."""
    token = tmp_path / "home" / "service" / "token"
    token.parent.mkdir(parents=True)
    token.write_text("a-token-for-the-tests\n")
    token.chmod(0o600)
    settings = {"NODEWISE_URL": served.url, "NODEWISE_HOME": str(tmp_path / "home"), "COLUMNS": "80"}

    def run(*words: str) -> Done:
        return nodewise(*words, env=os.environ | settings)

    return run


def _fine(done: Done) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _refused(done: Done) -> str:
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_a_producer_is_put_with_what_it_emits_reads_and_keeps(command: Command, served: Served) -> None:
    words = ("producer", "put", "disk", "--cmd", "d", "--time-max", "5", "--emits", "free", "--emits", "used")
    assert "version 1" in _fine(command(*words, "--input", "cpu", "--keep", "1.5h"))
    found = served.reader.producer("disk")
    assert (found.emits, found.inputs, found.keep) == (("free", "used"), ("cpu",), 5400.0)
    assert served.reader.producer("free").kind is Kind.EMITTED
    shown = _fine(command("producer", "show", "disk"))
    assert "free, used" in shown
    _fine(command("producer", "put", "free", "--unit", "bytes"))
    _fine(command("producer", "put", "disk", "--input", "", "--keep", "0"))
    found = served.reader.producer("disk")
    assert (found.emits, found.inputs, found.keep) == (("free", "used"), (), 0.0)
    assert served.reader.producer("free").unit == "bytes"
    assert "needed by disk" in command("producer", "rm", "free").stderr
    assert command("producer", "put", "disk", "--keep", "soon").returncode == 2


def test_a_new_producer_takes_no_name_that_is_taken(command: Command, served: Served) -> None:
    words = ("--new", "--cmd", "x", "--time-max", "1")
    said = _refused(command("producer", "put", "cpu", *words))
    assert said.startswith("Error: already registered: cpu has version 1") or "already registered: cpu" in said
    assert served.reader.producer("cpu").cmd == "scripts/cpu.sh"
    assert "version 1" in _fine(command("producer", "put", "other", *words))


def test_the_log_of_a_slot_is_shown_newest_first(command: Command, agent: Heard, served: Served) -> None:
    assert "cpu has not run on n1 yet" in _fine(command("slot", "log", "n1", "cpu"))
    runs = [PastRun(1_700_000_002.5, Outcome.FAILED, 0.25, 1, None, "no\nsuch file"), PastRun(1.0, Outcome.OK, 0.5, 0)]
    agent.answers["/api/v1/slots/cpu/log"] = {"runs": [run.to_json() for run in runs]}
    assert json.loads(_fine(command("slot", "log", "n1", "cpu", "--json"))) == [run.to_json() for run in runs]
    table = _fine(command("slot", "log", "n1", "cpu"))
    assert table.splitlines()[0].split() == ["ended", "outcome", "took", "exit", "value", "stderr"]
    assert [line.split()[2] for line in table.splitlines()[1:]] == ["failed", "ok"]
    assert "no / such file" in table
    served.client.put_node("n1", "127.0.0.1:1")
    assert "the agent of n1 at 127.0.0.1:1 does not answer" in _refused(command("slot", "log", "n1", "cpu"))


def test_a_quarantine_is_seen_and_lifted(command: Command, served: Served) -> None:
    bad = Run("cpu", Outcome.QUARANTINED, 0.1, None, "failed 10 times in a row; nodewise slot lift n1 cpu", skipped=7)
    assert "no slot has gone wrong" in _fine(command("slot", "list", "--bad"))
    served.client.report("n1", Report("b", 2, "1.0", (bad,)))
    listed = _fine(command("slot", "list", "--bad"))
    assert "quarantined" in listed and "nodewise slot lift n1 cpu" in listed and " 7 " in listed
    assert _fine(command("slot", "lift", "n1", "cpu")) == "n1: cpu was in quarantine and starts afresh\n"
    [slot] = json.loads(_fine(command("slot", "list", "--json")))
    assert (slot["epoch"], slot["skipped"], slot["outcome"]) == (1, 7, "failed")
    assert "was not in quarantine" in _fine(command("slot", "lift", "n1", "cpu"))
    assert "has no slot for load" in _refused(command("slot", "lift", "n1", "load"))


def test_a_cluster_producer_starts_where_the_service_chooses(command: Command, served: Served) -> None:
    served.client.put_producer(Producer("dist", "d", 5.0, scope=Scope.CLUSTER))
    said = _fine(command("slot", "start", "dist", "--interval", "30"))
    assert said == "dist runs every 30 s on one node of the service's choice: see `nodewise slot list`\n"
    assert served.ask("GET", "/api/v1/nodes/*/slots/dist").json["nodes"] == ["n1"]
    assert _fine(command("slot", "stop", "dist")) == "dist is stopped where the service ran it\n"
    assert served.ask("GET", "/api/v1/nodes/*/slots/dist").status == 404
    assert "has no slot on any node" in _refused(command("slot", "stop", "dist"))
    assert _fine(command("slot", "start", "dist", "--node", "n1")) == "n1: dist runs every 5 s\n"
    assert _fine(command("slot", "stop", "dist")) == "n1: dist is stopped\n"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("12h", 43_200.0), ("30d", 2_592_000.0), ("1w", 604_800.0)],
)
def test_a_span_of_time_is_written_in_one_way_everywhere(text: str, seconds: float) -> None:
    assert Span().convert(text, None, None) == seconds
    before = time.time()
    moment = Moment().convert(text, None, None)
    if text.isdigit():
        assert moment == seconds  # Unix seconds
    else:
        assert before - seconds <= moment <= time.time() - seconds


@pytest.mark.parametrize("text", ["", "soon", "-5", "1y", "h", "1e9", "9" * 11, "\N{ARABIC-INDIC DIGIT FIVE}"])
@pytest.mark.parametrize("kind", [Span(), Moment()])
def test_what_is_no_span_of_time_is_refused(kind: click.ParamType[float], text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a span of time"):
        kind.convert(text, None, None)


def test_a_token_may_be_good_for_a_week(command: Command, served: Served) -> None:
    _fine(command("token", "create", "ci", "--role", "reader", "--expires-in", "1w"))
    [token] = served.client.tokens()
    assert token.expires_at == token.created_at + 604_800
