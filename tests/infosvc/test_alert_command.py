"""`nodewise alert` and the options of `nodewise serve` about messages, run as people run them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infosvc.alerts import watching
from infosvc.core.service import components_of
from infosvc.wire.records import Kind, Producer
from tests.in_process import nodewise
from tests.infosvc.conftest import TOKEN
from tests.infosvc.receiver import receiving

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving

pytestmark = pytest.mark.timeout(900)  # on a busy machine each command takes many seconds

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at alerts but these tests."""
    monkeypatch.setattr(watching, "STEP_SECONDS", 3600.0)


@pytest.fixture
def served(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A running service with a name of which n1 has a value."""
    with serve(sqlite_url) as service:
        service.client.put_producer(Producer("free", "", 5.0, Kind.PROGRAM, ttl=3600.0))
        service.client.put_node("n1", "127.0.0.1:9")
        service.client.put_value("free", "n1", 3)
        yield service


@pytest.fixture
def command(tmp_path: Path, served: Served) -> Command:
    """command(*WORDS): one run of nodewise with its output, against `served`."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    settings = {"NODEWISE_URL": served.url, "NODEWISE_TOKEN_FILE": str(token), "NODEWISE_HOME": str(tmp_path / "home")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return nodewise(*words, env=os.environ | settings)

    return run


def test_an_alert_is_added_shown_tried_and_removed(
    command: Command, served: Served, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    with receiving() as receiver:
        added = command("alert", "add", "free < 5", "--for", "0s", "--notify", receiver.url, "--json")
        alert_id = json.loads(added.stdout)["alert_id"]
        components_of(served.server.app).alerts.step()
        eventually(lambda: len(receiver.got) == 1)  # that it is on, or else the postman could get the answer below
        listed = command("alert", "list").stdout
        assert alert_id in listed and "free < 5" in listed and "n1" in listed
        shown = command("alert", "show", alert_id).stdout
        assert "free < 5, told to http://127.0.0.1" in shown and "free 3" in shown
        assert json.loads(command("alert", "show", alert_id, "--json").stdout)["on"][0]["about"] == "n1"
        assert command("alert", "test", alert_id).stdout == "delivered\n"
        receiver.answers = [410]
        refused = command("alert", "test", alert_id)
        assert (refused.returncode, refused.stderr) == (1, "not delivered: it answered 410\n")
    assert command("alert", "rm", alert_id).stdout == f"{alert_id}: removed\n"
    gone = command("alert", "rm", alert_id)
    assert gone.returncode == 1 and "`nodewise alert list` shows those that there are" in gone.stderr


WRONG = [
    (("free <", "--for", "5m"), "is wrong at its end: a number or a data name must stand here"),
    (("fre < 5",), "no producer is registered under 'fre'"),
    (("free < 5", "--for", "soon"), "'soon' is not a span of time"),
    (("free < 5", "--notify", "http://example.org/"), "http://example.org/... is not https"),
    (("job failed", "--for", "5m"), "a job fails at one moment: leave the time (--for) out"),
]


@pytest.mark.parametrize(("words", "complaint"), WRONG, ids=lambda one: str(one[0]))
def test_bad_input_is_one_sentence(command: Command, words: tuple[str, ...], complaint: str) -> None:
    done = command("alert", "add", *words)
    assert done.returncode != 0 and complaint in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "mode", "complaint"),
    [("short", 0o600, "has fewer than 16 characters"), ("long enough a word", 0o644, "can be read by others")],
)
def test_a_secret_that_is_none_is_refused(tmp_path: Path, text: str, mode: int, complaint: str) -> None:
    file = tmp_path / "secret"
    file.write_text(text)
    file.chmod(mode)
    settings = {"NODEWISE_HOME": str(tmp_path / "home")}
    done = nodewise("serve", "--port", "0", "--notify-secret-file", str(file), env=os.environ | settings)
    assert done.returncode == 1 and complaint in done.stderr and f"chmod 600 {file}" in done.stderr
