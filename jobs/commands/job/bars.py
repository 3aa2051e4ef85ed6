"""A job that is followed, on a terminal: a bar per node and one for all; elsewhere: a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from jobs.application.following import Sight, View
from jobs.application.status import JobStatus, NodeStatus

LINE_SECONDS = 5.0
BAR_WIDTH = 24
ALL = "all"


def view(console: Console) -> View:
    """What suits the console."""
    return Bars(console) if console.is_terminal else Lines(console)


class Bars:
    """One bar per node; the news of the application master stand above them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._sight: Sight | None = None
        self._news: tuple[str, ...] = ()
        self._tasks: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            BarColumn(BAR_WIDTH),
            TextColumn("{task.fields[done]}", justify="right", markup=False, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[rate]}", justify="right", markup=False, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[local]}", justify="right", markup=False, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[said]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=console,
        )
        self._live: Live | None = None

    def begin(self) -> None:
        """Take the lower end of the terminal."""
        self._live = Live(console=self._console, get_renderable=self.render)
        self._live.start()

    def end(self) -> None:
        """Leave the last frame on the terminal."""
        if self._live:
            self._live.stop()
            self._live = None

    def show(self, sight: Sight) -> None:
        """Draw what is known now."""
        self._sight = sight
        if sight.status:
            self._print_news(sight.status.news)
        self._draw_total(sight)
        succeeded = sight.application.final == "SUCCEEDED"
        for node in sight.status.nodes if sight.status and not succeeded else ():
            self._draw(node.node_name, max(node.planned, node.done, 1), node.done, node_fields(node))
        if succeeded:  # what the nodes said last is older than the end
            for name in [name for name in self._tasks if name != ALL]:
                self._progress.remove_task(self._tasks.pop(name))

    def render(self) -> RenderableType:
        """What is shown now."""
        if self._sight is None:
            return Text("")
        headline = Text(f"{self._sight.application.application_id} {self._sight.headline()}")
        return Group(headline, self.view())

    def view(self) -> RenderableType:
        """The bars alone."""
        return self._progress.make_tasks_table(self._progress.tasks)

    def _draw_total(self, sight: Sight) -> None:
        status = sight.status
        if sight.application.final == "SUCCEEDED" and status:
            self._draw(ALL, status.of, status.of, _fields(f"{status.of} of {status.of}"))
        elif status and status.of:
            self._draw(ALL, status.of, status.done, total_fields(status))
        else:
            self._draw(ALL, None, 0, _fields(""))

    def _draw(self, name: str, total: float | None, completed: float, fields: dict[str, Any]) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total, **fields)
        self._progress.update(self._tasks[name], total=total, completed=completed, **fields)

    def _print_news(self, news: tuple[str, ...]) -> None:
        for text in new_lines(self._news, news):
            self._console.print(text, style="dim")
        self._news = news


def snapshot(sight: Sight, said: str) -> RenderableType:
    """A job as it is now: what YARN says, and if its application master answered, the bars and its kind's own lines."""
    if sight.status is None:
        return Text(said)
    bars = Bars(Console(stderr=True))
    bars.show(sight)
    return Group(Text(said), bars.view(), *map(Text, sight.status.section_lines()))


class Lines:
    """A line when what the job does changes, and every few seconds; then one for each node of which there is more."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._said_at: float | None = None
        self._doing: tuple[str, ...] = ()
        self._news: tuple[str, ...] = ()
        self._nodes: dict[str, str] = {}

    def begin(self) -> None:
        """Nothing to prepare."""

    def end(self) -> None:
        """Nothing is left half-printed."""

    def show(self, sight: Sight) -> None:
        """Print what is known now, if it is time."""
        status = sight.status
        for text in new_lines(self._news, status.news) if status else ():
            self._console.print(text, soft_wrap=True)
        self._news = status.news if status else self._news
        state = (sight.application.state, sight.application.final, sight.trouble)
        doing = (*state, status.state, str(status.attempt)) if status else state
        now = self._clock()
        if doing != self._doing or self._said_at is None or now >= self._said_at + LINE_SECONDS:
            self._doing, self._said_at = doing, now
            self._console.print(line(sight), soft_wrap=True)
            self._print_nodes(sight)

    def _print_nodes(self, sight: Sight) -> None:
        for node in sight.status.nodes if sight.status and not sight.application.has_ended else ():
            text = node_line(node)
            if self._nodes.get(node.node_name) != text:
                self._nodes[node.node_name] = text
                self._console.print(text, soft_wrap=True)


def line(sight: Sight) -> str:
    """All that is known of a job, in one line."""
    words = [f"{sight.application.application_id} {sight.headline()}"]
    if sight.status and sight.status.of and not sight.application.has_ended:
        fields = total_fields(sight.status)
        words += [fields["done"], fields["rate"], fields["said"], _states(sight.status.nodes)]
    return "; ".join(word for word in words if word)


def node_line(node: NodeStatus) -> str:
    """All that is known of a node, in one line."""
    fields = node_fields(node)
    words = (fields["done"], fields["rate"], fields["local"], fields["said"])
    return f"{node.node_name} " + "; ".join(word for word in words if word)


def node_fields(node: NodeStatus) -> dict[str, Any]:
    """The words beside a node's bar."""
    said = [node.state if not node.said else f"{node.state}: {node.said}"]
    said += [f"{node.running} in work"] if node.running else []
    said += [f"{node.errors} with an error"] if node.errors else []
    said += [f"failed {node.failures} times"] if node.failures > 1 else []
    local = f"{100 * node.local / node.done:.0f} % local" if node.done else ""
    return _fields(f"{node.done} of {node.planned}", node.rate, local, ", ".join(said))


def total_fields(status: JobStatus) -> dict[str, Any]:
    """The words beside the bar of the whole job."""
    done = sum(node.done for node in status.nodes)
    local = f"{100 * sum(node.local for node in status.nodes) / done:.0f} % local" if done else ""
    said = [] if status.seconds_left is None else [f"{duration(status.seconds_left)} left"]
    said += [f"{status.errors} with an error"] if status.errors else []
    rate = sum(node.rate for node in status.nodes if node.state == "working")
    return _fields(f"{status.done} of {status.of}", rate, local, ", ".join(said))


def _fields(done: str, rate: float = 0.0, local: str = "", said: str = "") -> dict[str, Any]:
    return {"done": done, "rate": f"{rate:.1f}/s" if rate else "", "local": local, "said": said}


def _states(nodes: Sequence[NodeStatus]) -> str:
    states = [node.state for node in nodes]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))


def new_lines(before: Sequence[str], now: Sequence[str]) -> Sequence[str]:
    """What is new in a list that grows at its end and may lose its beginning.

    >>> new_lines(["a", "b"], ["b", "c"])
    ['c']
    """
    sizes = range(min(len(before), len(now)), -1, -1)
    common = next(size for size in sizes if before[len(before) - size :] == now[:size])
    return now[common:]


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> [duration(s) for s in (8.4, 200, 7500)]
    ['8 s', '3 min 20 s', '2 h 5 min']
    """
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
