"""`--watch SECONDS`: a listing that is shown again and again until Ctrl-C, the same for every command that has it.

It belongs to the front door, as rooms that know nothing of each other have such listings. On a terminal each look takes
the place of the one before; into a file or pipe it is added to it, and with --json it is one more document.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from hadoop.errors import HadoopError
from infosvc.commands import show
from infosvc.commands.spans import Span
from infosvc.commands.staying import often, signals_leave
from infosvc.wire.errors import AWAY

if TYPE_CHECKING:
    from rich.text import Text

NAME = "watch"
PASSING = (*AWAY, HadoopError)
"""What one look may run into without being the last; the first look ends with whatever goes wrong."""

Look = Callable[[], object]


@dataclass(frozen=True)
class Shown:
    """What the last look that succeeded printed, when that was (Unix seconds), and why there is no later one."""

    text: str
    at: float
    trouble: str = ""

    def silence(self) -> str:
        """What is said of the trouble."""
        return f"nothing came since {show.moment(self.at)}: {self.trouble}"


def watchable(command: click.Command) -> None:
    """Give --watch to a command that prints one look at something; one that has it stays as it is."""
    once = command.callback
    if once is None or any(param.name == NAME for param in command.params):
        return

    @wraps(once)
    def callback(*arguments: Any, watch: float | None, **options: Any) -> Any:
        look = partial(once, *arguments, **options)
        return look() if watch is None else stay(look, watch, bool(options.get("as_json")))

    command.callback = callback
    places = [number for number, param in enumerate(command.params) if param.name == "as_json"]
    command.params.insert(places[0] if places else len(command.params), _option())


def _option() -> click.Option:
    text = "Show it again every so many seconds, until Ctrl-C."
    return click.Option(["--watch"], type=Span(), metavar="SECONDS", callback=often, help=text)


def stay(look: Look, every: float, as_json: bool) -> None:
    """Show look after look until Ctrl-C."""
    found = shows(look, every)
    try:
        if sys.stdout.isatty() and not as_json:
            _redraw(found)
        else:
            _append(found, headed=not as_json)
    except KeyboardInterrupt:
        return  # how it is meant to end


def shows(look: Look, every: float) -> Iterator[Shown]:
    """What looks print, for ever; one that fails and may pass brings what there was before, with the reason."""
    shown = Shown(_capture(look), time.time())
    while True:
        yield shown
        time.sleep(every)
        try:
            shown = Shown(_capture(look), time.time())
        except PASSING as error:
            shown = replace(shown, trouble=str(error))


class _Kept(io.StringIO):
    """Stands in for stdout during a look, so that nothing is shown before all of it is there."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        """What is printed is made for where it will go."""
        return self._terminal


def _capture(look: Look) -> str:
    kept = _Kept(sys.stdout.isatty())
    with redirect_stdout(kept):
        look()
    return kept.getvalue()


def _append(found: Iterator[Shown], headed: bool) -> None:
    """Each look below the one before, a listing under its date and time."""
    for shown in found:
        if shown.trouble:
            click.echo(show.plain(shown.silence()), err=True)
        else:
            click.echo(f"{show.moment(shown.at)}\n{shown.text}" if headed else shown.text, nl=headed)


def _redraw(found: Iterator[Shown]) -> None:
    """Each look in the place of the one before, on a screen of its own, after which the terminal is as it was."""
    from rich.console import Console  # here, as most looks are taken only once
    from rich.control import Control

    console = Console(file=sys.stdout)  # this one, whatever stands in for it during a look
    first = next(found)  # what is wrong from the beginning is told on the screen on which it was asked
    with signals_leave(), console.screen() as screen:
        for shown in chain([first], found):
            console.control(Control.home())
            screen.update(*_lines(shown, console.height))


def _lines(shown: Shown, height: int) -> list[Text]:
    """As many lines as there is room for, below one that says when it was looked, or since when nothing came."""
    from rich.text import Text

    head = Text(show.plain(shown.silence()), "bold red") if shown.trouble else Text(show.moment(shown.at), "dim")
    lines = shown.text.splitlines()
    room = max(0, height - 1)
    if len(lines) > room:
        room = max(0, room - 1)
        lines = [*lines[:room], f"{len(lines) - room:,} more: choose with the options, or see all without --watch"]
    body = Text.from_ansi("\n".join(lines))
    for text in (head, body):
        text.no_wrap, text.overflow = True, "ellipsis"
    return [head, body]
