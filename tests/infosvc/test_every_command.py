"""What holds for every command of the service, so that a new one holds it too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from infosvc.wire.alerts.alert_client import AlertClient
from infosvc.wire.records import Outcome, Producer, Report, Role, Run
from nodewise.__main__ import cli, main
from tests.infosvc.conftest import TOKEN, Serving
from tests.ports import free_port

GIVEN = {
    "alert_id": "alert_0f0f0f0f0f0f0f0f",
    "alert_ids": "alert_0f0f0f0f0f0f0f0f",
    "before": "1h",
    "condition": "cpu < 1",
    "hosts": "127.0.0.1",
    "name": "cpu",
    "names": "cpu",
    "node": "n1",
    "node_name": "n1",
    "role": "reader",
    "token_ids": "t1",
    "value": "1",
}
"""A word for each required argument or option."""

MORE = {"producer push": ("--all",), "producer put": ("--cmd", "x", "--time-max", "5")}
LISTINGS = (
    "node list",
    "slot list",
    "producer list",
    "token list",
    "alert list",
    "audit list",
    "data get cpu",
    "top cpu",
)


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


def calls() -> Iterator[tuple[str, ...]]:
    """Every command that asks the service, with what it cannot do without."""
    for words, command in commands(cli):
        module = getattr(command.callback, "__module__", "")
        if module.startswith("infosvc.") and any("--url" in param.opts for param in command.params):
            required = [param for param in command.params if param.required]
            options = [
                (param.opts[0], GIVEN[param.name or ""]) for param in required if isinstance(param, click.Option)
            ]
            arguments = [GIVEN[param.name or ""] for param in required if isinstance(param, click.Argument)]
            yield (*words, *(word for pair in options for word in pair), *arguments, *MORE.get(" ".join(words), ()))


Ran = Callable[..., tuple[object, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Ran:
    """run(URL, *WORDS): exit status, output and complaint of `nodewise`, none of which is a terminal."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def once(url: str, *words: str) -> tuple[object, str, str]:
        monkeypatch.setenv("NODEWISE_URL", url)
        monkeypatch.setattr("sys.argv", ["nodewise", "--home", str(tmp_path / "home"), *words])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return left.value.code, said.out, said.err

    return once


@pytest.mark.parametrize("words", list(calls()), ids=" ".join)
def test_without_a_service_there_is_one_sentence_on_stderr(run: Ran, words: tuple[str, ...]) -> None:
    status, said, complaint = run(f"http://127.0.0.1:{free_port()}", *words)

    assert (status, said) == (1, "")
    assert complaint.count("\n") == 1
    assert complaint.rstrip("\n").isprintable()
    assert "does not answer" in complaint and "start it with `nodewise serve`" in complaint


@pytest.mark.parametrize("words", LISTINGS)
def test_a_listing_into_a_pipe_has_no_colours_and_is_json_if_wished(
    run: Ran, serve: Serving, sqlite_url: str, tmp_path: Path, words: str
) -> None:
    token = tmp_path / "home" / "service" / "token"
    token.parent.mkdir(parents=True)
    token.write_text(TOKEN)
    with serve(sqlite_url) as service:
        service.client.put_producer(Producer("cpu", "x", 5.0))
        service.client.put_node("n1", "127.0.0.1:9")
        service.client.put_slot("n1", "cpu", True)
        service.client.report("n1", Report("b", 1, "1.0", (Run("cpu", Outcome.FAILED, 0.1, None, "no"),)))
        service.client.create_token("a", Role.READER)
        AlertClient(service.client).add("cpu < 1")
        status, said, complaint = run(service.url, *words.split())
        assert (status, complaint) == (0, "") and len(said.splitlines()) > 1
        assert said.replace("\n", "").isprintable()
        status, said, complaint = run(service.url, *words.split(), "--json")
        assert (status, complaint) == (0, "") and json.loads(said)
