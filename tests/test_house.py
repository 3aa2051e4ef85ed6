"""The rules of the house that no linter knows, each as a test."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from nodewise.__main__ import cli
from tests.rooms import ROOMS, ROOT

SCHEDULER = ("locality", "jobs/application", "jobs/itemwork", "jobs/kinds")
ERRORS = ("EnvError", "HadoopError", "InfoError", "JobError", "PlanError")
"""Their remedy is a field."""
IS_NONE = re.compile(r"(?<!there )\b(is|are) none\b(?! of)")
LONGEST_FILE = 400
LONGEST_FUNCTION = 45


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")) if "target" not in path.parts]


@cache
def data_names() -> set[str]:
    """Every data name that ships registered."""
    return set(tomllib.loads((ROOT / "collectors" / "catalog.toml").read_text())["producer"])


def literals(text: str) -> Iterator[str]:
    """Every string of a source, docstrings included."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named_in(text: str, names: set[str]) -> set[str]:
    """Those of `names` that occur as a whole word in a literal of the source."""
    found = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
    return {name for literal in literals(text) for name in found.findall(literal)}


@pytest.mark.parametrize("path", sources(*SCHEDULER), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_data_name_is_known_to_the_planner_or_the_partitioner(path: Path) -> None:
    assert not named_in(path.read_text(), data_names()), "how nodes are judged is a setting, not code"


def test_a_data_name_put_into_the_planner_would_be_found() -> None:
    planted = (ROOT / "locality" / "bounds.py").read_text() + '\nJUDGE = "perf_cpu"\n'

    assert named_in(planted, data_names()) == {"perf_cpu"}


def test_the_port_of_the_service_is_written_once() -> None:
    written = [
        str(path.relative_to(ROOT))
        for path in sources(*ROOMS)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and str(node.value).rpartition(":")[2] == "8400"
    ]

    assert written == ["infosvc/wire/client.py"]


@pytest.mark.parametrize("path", sources(*ROOMS), ids=lambda path: str(path.relative_to(ROOT)))
def test_errors_keep_what_helps_in_a_field_of_its_own(path: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call) and node.args]
    raised = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ERRORS]

    assert not [call.lineno for call in raised if "`nodewise " in ast.unparse(call.args[0])]


@pytest.mark.parametrize("path", sources(*ROOMS), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_readable(path: Path) -> None:
    text = path.read_text()
    long = [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]

    assert len(text.splitlines()) <= LONGEST_FILE
    assert not long


def denials(text: str) -> list[str]:
    """Names of a source's public parts whose docstring says that something is none, instead of what it is not."""
    parts = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    named = [(getattr(part, "name", "module"), part) for part in ast.walk(ast.parse(text)) if isinstance(part, parts)]
    said = [(name, " ".join((ast.get_docstring(part) or "").split())) for name, part in named]
    return [name for name, words in said if not name.startswith("_") and IS_NONE.search(words)]


def test_docstrings_say_what_something_is_not() -> None:
    found = {str(path.relative_to(ROOT)): denials(path.read_text()) for path in sources(*ROOMS)}

    assert {path: names for path, names in found.items() if names} == {}, 'not "it is none": "it is not a number"'


def test_a_docstring_that_says_is_none_would_be_found() -> None:
    written = """
def number(text):
    '''A number; ValueError when the text is
    none.'''

def latest(values):
    '''The latest; None when there is none, or it is none of these.'''
"""

    assert denials(written) == ["number"]


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_lock_files_name_versions_and_hashes_but_no_host(path: Path) -> None:
    assert "--hash=sha256:" in path.read_text()
    assert "://" not in path.read_text()


def test_the_readme_maps_every_room() -> None:
    readme = (ROOT / "README.md").read_text()
    rooms = [path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "demo-"))]
    tracked = [room for room in rooms if room not in ("nodewise.egg-info", "build", "dist")]

    assert [room for room in tracked if f"{room}/" not in readme] == []


def commands(group: click.Group, words: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{words} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{words} {name}")


@pytest.mark.parametrize(("words", "command"), list(commands(cli, "nodewise")), ids=lambda value: str(value))
def test_every_command_shows_an_example_of_itself(words: str, command: click.Command) -> None:
    assert f"{words} " in (command.help or "") or f"{words}\n" in f"{command.help}\n"


@pytest.mark.parametrize("words", ["list", "status", "get", "report", "load"])
def test_every_listing_also_speaks_json(words: str) -> None:
    listings = [command for name, command in commands(cli, "nodewise") if name.split()[-1] == words]

    assert listings
    assert all("--json" in [opt for param in command.params for opt in param.opts] for command in listings)
