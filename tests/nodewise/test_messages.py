"""What the command says to mistakes: it names the value and what to do instead."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from infosvc.access.rate_limit import TooFast
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Kind, Producer
from nodewise.__main__ import COMMANDS, cli
from tests import in_process
from tests.nodewise.conftest import TOKEN, serving


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "service").mkdir()
    (folder / "service" / "token").write_text(TOKEN)
    return folder


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    """A service that knows the program q and the node n1."""
    with serving(home / "infosvc.db") as found:
        client = InfoClient(found, TOKEN)
        client.put_producer(Producer("q", "", 60.0, kind=Kind.PROGRAM))
        client.put_node("n1", "127.0.0.1:1")
        yield found


def nodewise(home: Path, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    return in_process.nodewise("--home", str(home), *words, "--url", url)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["prodcer", "list"], 2, "Did you mean 'producer'?"),
        (["slot", "strat", "q"], 2, "Did you mean 'start'?"),
        (["data", "put", "q", "n1", "-5"], 0, "q on n1: -5"),
        (["producer", "rm", "nothing"], 1, "no producer is registered under this name: `nodewise producer list` shows"),
        (["node", "rm", "n9"], 1, "no node is enrolled under this name: `nodewise node list` shows"),
        (["slot", "stop", "nothing"], 1, "no producer is registered under 'nothing': `nodewise producer list` shows"),
        (["slot", "stop", "q", "--node", "n9"], 1, "no node is called 'n9': `nodewise node list` shows"),
    ],
)
def test_a_mistake_is_answered_with_what_to_do(home: Path, url: str, words: list[str], status: int, said: str) -> None:
    done = nodewise(home, url, *words)

    assert (done.returncode, said in done.stdout + done.stderr) == (status, True), done.stdout + done.stderr
    assert "producer put" not in done.stderr
    assert "node add" not in done.stderr


def test_no_line_of_a_listing_of_commands_is_cut_off() -> None:
    groups = [[], *([name] for name in COMMANDS if isinstance(cli.get_command(click.Context(cli), name), click.Group))]

    for words in groups:
        listed = CliRunner().invoke(cli, [*words, "--help"]).output.partition("Commands:")[2]
        assert listed
        assert "..." not in listed, words


@pytest.mark.parametrize("ending", ["", "/", "/api/v1", "/api/v1/"])
def test_an_address_with_the_path_of_the_calls_is_the_same_service(url: str, ending: str) -> None:
    client = InfoClient(url + ending, TOKEN)

    assert client.producer("q").kind is Kind.PROGRAM
    assert client.url == url


@pytest.mark.parametrize(("wait", "seconds"), [(0.001, 1), (1.2, 2)])
def test_who_is_too_fast_reads_the_seconds_of_the_header(wait: float, seconds: int) -> None:
    error = TooFast("too many calls", wait)

    assert (error.retry_after, str(error)) == (seconds, f"too many calls: call again in {seconds} s")
