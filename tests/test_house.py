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
from tests.sources import module_of, sources

SCHEDULER = ("locality", "jobs/application", "jobs/itemwork", "jobs/kinds")
TO_DO = re.compile(r"`nodewise |(: |; |, so )(ask|choose|give|leave|name|take|use|write)\b")
"""What stands in a message that says what to do."""
TOLD_IN_A_MESSAGE = {
    "infosvc/commands/top.py": "adds the command that shows all names to what the service says",
    "infosvc/registration/rules.py": "three things to choose from; and what to take out of a circle",
    "infosvc/state/configuration.py": "a command to register it, or names that are close",
    "jobs/dashboard/tasks/curves.py": "the values that there are",
    "jobs/engines/network.py": "an option to leave out",
}
"""Files whose errors say what to do in the message, and what they say."""
IS_NONE = re.compile(r"(?<!there )\b(is|are) none\b(?! of)")
DERIVED = re.compile(r"^ *class \w+\(", re.MULTILINE)
"""Only such a class can be an error."""
LONGEST_FILE = 400
LONGEST_FUNCTION = 45


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


def origins(module: str, nodes: list[ast.AST]) -> dict[str, str]:
    """What the names in a module stand for, with the module that defines each."""
    found = {node.name: f"{module}.{node.name}" for node in nodes if isinstance(node, ast.ClassDef)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return found


def full_name(known: dict[str, str], name: ast.expr) -> str:
    first, dot, rest = ast.unparse(name).partition(".")
    return f"{known.get(first, first)}{dot}{rest}"


def errors_with_remedy(texts: dict[str, str]) -> set[str]:
    """The classes of modules whose remedy is a field: made with a `remedy`, or derived from one that is."""
    parents: dict[str, set[str]] = {}
    found = set()
    for module, text in texts.items():
        nodes = list(ast.walk(ast.parse(text)))
        known = origins(module, nodes)
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                parents[f"{module}.{node.name}"] = {full_name(known, base) for base in node.bases}
                made = [one.args for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
                found |= {f"{module}.{node.name}" for given in made for one in given.args if one.arg == "remedy"}
    while derived := {name for name, above in parents.items() if above & found} - found:
        found |= derived
    return found


@cache
def errors() -> set[str]:
    """Those of the product and of its benches."""
    texts = {module_of(path): path.read_text() for path in sources(*ROOMS)}
    return errors_with_remedy({module: text for module, text in texts.items() if DERIVED.search(text)})


def told_in_messages(module: str, text: str, names: set[str]) -> list[int]:
    """The lines of a module that make such an error with a message that says what to do."""
    nodes = list(ast.walk(ast.parse(text)))
    known = origins(module, nodes)
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.args]
    made = [call for call in calls if full_name(known, call.func) in names]
    return [call.lineno for call in made if TO_DO.search(ast.unparse(call.args[0]))]


@pytest.mark.parametrize("path", sources(*ROOMS), ids=lambda path: str(path.relative_to(ROOT)))
def test_errors_keep_what_helps_in_a_field_of_its_own(path: Path) -> None:
    told = told_in_messages(module_of(path), path.read_text(), errors())

    assert bool(told) == (str(path.relative_to(ROOT)) in TOLD_IN_A_MESSAGE), told


def test_what_helps_is_found_in_the_message_of_any_error_with_a_remedy() -> None:
    lost = "class Lost(Exception):\n    def __init__(self, message, remedy=''): ...\nclass Other(Exception): ..."
    far = "from rooms import lost\nclass Far(lost.Lost): ...\nclass Farther(Far): ..."
    written = """
from rooms.far import Farther as TooFar, Other
from rooms import lost

raise TooFar(f"{name} is away: give another")
raise lost.Lost("it is away", remedy="give another")
raise lost.Other("it is away: give another")
raise Other("it is away: give another")
raise lost.Lost("it is away, see `nodewise node list`")
"""

    found = errors_with_remedy({"rooms.lost": lost, "rooms.far": far})
    assert found == {"rooms.lost.Lost", "rooms.far.Far", "rooms.far.Farther"}
    assert told_in_messages("rooms.written", written, found) == [5, 9]
    assert {"environments.errors.EnvError", "infosvc.wire.errors.NotFound", "learning.errors.LearningError"} <= errors()
    assert {"boxes.box.BoxError", "hadoop.errors.HadoopError", "locality.types.PlanError"} <= errors()


def test_only_files_that_are_there_may_tell_what_helps_in_a_message() -> None:
    assert [path for path in TOLD_IN_A_MESSAGE if not (ROOT / path).is_file()] == []


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
