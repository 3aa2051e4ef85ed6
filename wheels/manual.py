"""Writes the manual pages of all commands, made of their help, and what bash completes words by.

python -m wheels.manual FOLDER    makes FOLDER/man/man1 and FOLDER/bash-completion anew
"""

from __future__ import annotations

import inspect
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click
from click.shell_completion import BashComplete

from nodewise.__main__ import cli
from nodewise.completion import NAME, VARIABLE

_WHOLE = 1000
"""More characters than the first sentence of any command's help has."""
_SEE_ALSO = "All pages of the documentation are in share/doc/nodewise, beside share/man where this page is."


def write(folder: Path) -> None:
    """A page for each command, nodewise-task-submit.1 for example, and one file for bash."""
    for name in ("man", "bash-completion"):
        shutil.rmtree(folder / name, ignore_errors=True)
    pages = folder / "man" / "man1"
    pages.mkdir(parents=True)
    for context in _contexts(click.Context(cli, info_name=NAME)):
        (pages / f"{_name(context)}.1").write_text(_page(context), encoding="utf-8")
    completions = folder / "bash-completion" / "completions"
    completions.mkdir(parents=True)
    (completions / NAME).write_text(BashComplete(cli, {}, NAME, VARIABLE).source(), encoding="utf-8")


def _contexts(context: click.Context) -> Iterator[click.Context]:
    """Of a command, and of all below it."""
    yield context
    for name, command in _below(context):
        yield from _contexts(click.Context(command, info_name=name, parent=context))


def _below(context: click.Context) -> list[tuple[str, click.Command]]:
    if not isinstance(context.command, click.Group):
        return []
    found = [(name, context.command.get_command(context, name)) for name in context.command.list_commands(context)]
    return [(name, command) for name, command in found if command is not None and not command.hidden]


def _name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _page(context: click.Context) -> str:
    """In the language of man(7)."""
    command, name = context.command, _name(context)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
    below = [(f"{name}-{one}(1)", found.get_short_help_str(_WHOLE)) for one, found in _below(context)]
    lines = [
        f'.TH "{name.upper()}" 1 "" "nodewise {version("nodewise")}"',
        *(".SH NAME", f"{_escape(name)} \\- {_escape(command.get_short_help_str(_WHOLE).removesuffix('.'))}"),
        *(".SH SYNOPSIS", f".B {_escape(usage)}"),
        *(".SH DESCRIPTION", *_paragraphs(inspect.cleandoc(command.help or ""))),
        *_listing("OPTIONS", [row for one in options if (row := one.get_help_record(context))]),
        *_listing("COMMANDS", below),
        *(".SH SEE ALSO", *([f".BR {_escape(_name(context.parent))} (1)", ".PP"] if context.parent else []), _SEE_ALSO),
    ]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    """What begins with the mark of click keeps its lines, all else is filled."""
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if lines[:1] == ["\b"]:
            yield from (".PP", ".nf", *map(_escape, lines[1:]), ".fi")
        else:
            yield from (".PP", *map(_escape, lines))


def _listing(title: str, rows: list[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    return [f".SH {title}", *(line for term, text in rows for line in (".TP", f".B {_escape(term)}", _escape(text)))]


def _escape(line: str) -> str:
    """A line that says no more than its letters: a point or an apostrophe in front would be a request."""
    plain = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain[:1] in (".", "'") else plain


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(Path(sys.argv[1]))
