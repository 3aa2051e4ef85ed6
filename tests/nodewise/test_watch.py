"""The loop behind --watch without a service, and which commands have it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from hadoop.errors import HadoopError
from infosvc.wire.errors import NotFound, Unreachable
from nodewise.__main__ import WATCHED, cli
from nodewise.watch import shows, watchable


class Scripted:
    """Prints or raises one thing after the other; after the last, Ctrl-C."""

    def __init__(self, *steps: str | Exception) -> None:
        self.steps = list(steps)

    def __call__(self) -> None:
        if not self.steps:
            raise KeyboardInterrupt
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        click.echo(step)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes between two looks."""
    monkeypatch.setattr("nodewise.watch.time", SimpleNamespace(sleep=lambda _seconds: None, time=time.time))


Command = Callable[..., click.Command]


@pytest.fixture
def command() -> Command:
    """command(*STEPS): a listing that takes these steps, one at each look."""

    def make(*steps: str | Exception) -> click.Command:
        look = Scripted(*steps)

        @click.command()
        @click.option("--json", "as_json", is_flag=True)
        def listing(as_json: bool) -> None:
            look()

        watchable(listing)
        return listing

    return make


def test_the_listings_of_every_room_have_it_once(tmp_path: Path) -> None:
    for _again in range(2):
        for group, names in WATCHED.items():
            for words in [[group, name] for name in names] or [[group]]:
                said = CliRunner().invoke(cli, ["--home", str(tmp_path), *words, "--help"])
                assert said.exit_code == 0
                assert said.output.count("--watch SECONDS") == 1, words


def test_without_it_a_command_looks_once(command: Command) -> None:
    said = CliRunner().invoke(command("one", "two"), [])

    assert (said.exit_code, said.output) == (0, "one\n")


def test_looks_go_on_until_ctrl_c_which_is_no_failure(command: Command) -> None:
    said = CliRunner().invoke(command("one", "two"), ["--watch", "5"])

    assert said.exit_code == 0
    assert [line for line in said.output.splitlines() if line in ("one", "two")] == ["one", "two"]


def test_json_stands_alone(command: Command) -> None:
    said = CliRunner().invoke(command("[1]", "[2]"), ["--watch", "5", "--json"])

    assert said.output == "[1]\n[2]\n"


@pytest.mark.parametrize(
    "error", [Unreachable("it is away"), HadoopError("it is away")], ids=lambda e: type(e).__name__
)
def test_what_passes_is_told_and_the_next_look_follows(command: Command, error: Exception) -> None:
    said = CliRunner().invoke(command("one", error, "two"), ["--watch", "5"])

    assert said.exit_code == 0
    assert said.stdout.splitlines()[1] == "one" and "two" in said.stdout.splitlines()
    assert said.stderr.startswith("nothing came since ") and said.stderr.endswith(": it is away\n")


def test_what_does_not_pass_ends_it(command: Command) -> None:
    said = CliRunner().invoke(command("one", NotFound("it is gone"), "two"), ["--watch", "5"])

    assert isinstance(said.exception, NotFound)
    assert "two" not in said.output


def test_the_first_look_ends_with_whatever_goes_wrong(command: Command) -> None:
    said = CliRunner().invoke(command(Unreachable("it is away"), "one"), ["--watch", "5"])

    assert isinstance(said.exception, Unreachable)
    assert said.output == ""


def test_nothing_of_a_look_that_fails_half_way_is_shown() -> None:
    def half() -> None:
        click.echo("half")
        look()

    look = Scripted("whole", Unreachable("it is away"))
    found = shows(half, 1.0)

    assert next(found).text == "half\nwhole\n"
    second = next(found)
    assert (second.text, second.trouble) == ("half\nwhole\n", "it is away")
