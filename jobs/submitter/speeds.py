"""What tasks that have succeeded tell of the speed of their program on their node, and what is learned from that.

Speeds are values like all others: of each program that a task names, `steps_per_second:PROGRAM` where programs report
steps and else `runs_per_second:PROGRAM`, a moving average for each node on which it ran. What is learned of them is
`training_speed:PROGRAM`, from 0 to 1, on every node: YARN's plug-in can order nodes by it, and so can a person.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Conflict, InfoError, InvalidInput, NotFound, PreconditionFailed, Unreachable
from infosvc.wire.records import Datum, Kind, Producer, State
from infosvc.wire.tasks import Task
from jobs.kinds.task.settings import PROGRAM_SECONDS, STEPS_PER_SECOND
from jobs.submitter.learned_speed import LEAST, MOST, LearnedSpeeds, Pair, learn, with_newest

STEPS, RUNS, LEARNED = "steps_per_second", "runs_per_second", "training_speed"
"""Data names of programs, less the program."""
UNITS = {STEPS: "steps/second", RUNS: "runs/second", LEARNED: "ratio"}
HELP = {
    STEPS: "Steps per second of tasks of {program} on the node, as it reported them: a moving average",
    RUNS: "Tasks of {program} per second on the node, one after another: a moving average",
    LEARNED: "Speed of {program} on the node as a share of that on the fastest: learned from tasks that ran",
}
TTL_SECONDS = 30 * 86_400
"""A speed that no task has shown for so long does not count any more."""
MOST_PROGRAMS = 200
"""Each has a value on every node, and users choose the names."""
PAUSE_SECONDS = 5.0
"""Between two times that what is learned is written, at least; and at most:"""
LONGEST_PAUSE_SECONDS = 600.0
WORTH = 0.01
"""Smaller changes of what is learned are not written, unless half of the ttl has passed."""


def measured(section: Mapping[str, Any]) -> tuple[str, float] | None:
    """By what a runner has left in its task's record: the kind of speed, and the speed; None if it tells none."""
    steps, seconds = (section.get(key) for key in (STEPS_PER_SECOND, PROGRAM_SECONDS))
    if isinstance(steps, int | float) and LEAST <= steps <= MOST:
        return STEPS, float(steps)
    if isinstance(seconds, int | float) and seconds > 0 and LEAST <= 1 / seconds <= MOST:
        return RUNS, 1 / seconds
    return None


def read_recorded(client: InfoClient) -> dict[Pair, float]:
    """The fresh speeds that the service knows, by node and program: in steps if a program has any, else in runs."""
    names = [one.data_name for one in client.producers() if _is_speed(one.data_name)]
    data = client.data_many(names) if names else {}
    found: dict[str, dict[Pair, float]] = {STEPS: {}, RUNS: {}}
    for name, rows in data.items():
        kind, _, program = name.partition(":")
        found[kind] |= {(node, program): speed for node, speed in _numbers(rows).items()}
    in_steps = {program for _, program in found[STEPS]}
    in_runs = {pair: speed for pair, speed in found[RUNS].items() if pair[1] not in in_steps}
    return found[STEPS] | in_runs


def read_learned(client: InfoClient, program: str) -> dict[str, float]:
    """What is learned of a program, by node, as a share of the fastest: fresh values alone, none if it never ran."""
    try:
        return _numbers(client.data(f"{LEARNED}:{program}"))
    except NotFound:
        return {}


class Speeds:
    """Records what each task shows, and writes what is learned. `say` hears what goes wrong, once."""

    def __init__(self, client: InfoClient, say: Callable[[str], None]) -> None:
        self._client = client
        self._say = say
        self._said: set[str] = set()
        self._registered: set[str] = set()
        self._due = threading.Event()
        self._closing = threading.Event()

    def start(self) -> None:
        """Write what is learned from now on, in a thread of its own."""
        threading.Thread(target=self._keep, name="speeds", daemon=True).start()

    def close(self) -> None:
        """Write no more."""
        self._closing.set()
        self._due.set()

    def note(self, task: Task, node_name: str | None, section: Mapping[str, Any]) -> None:
        """A task has succeeded there; one that names no program tells nothing. InfoError."""
        found, program = measured(section), task.spec.program
        if program is None or node_name is None or found is None:
            return
        kind, speed = found
        if f"{kind}:{program}" not in self._registered and not self._has_room(program):
            return
        name = self._register(kind, program)
        known = _numbers(self._client.data(name, node=node_name)).get(node_name)
        with suppress(NotFound):  # the node is not enrolled: nobody asks for its values
            self._client.put_value(name, node_name, f"{with_newest(known, speed):.6g}")
            self._due.set()

    def write(self) -> None:
        """Write what is learned of each program to every enrolled node, where it has changed; InfoError."""
        nodes = [node.node_name for node in self._client.nodes()]
        learned = learn(read_recorded(self._client))
        for program in sorted(learned.programs):
            try:
                self._write(program, nodes, learned)
            except Unreachable:
                raise
            except InfoError as error:  # the next program may go better
                self._tell(f"what is learned of {program} is not written: {error}")

    def _write(self, program: str, nodes: Iterable[str], learned: LearnedSpeeds) -> None:
        name = self._register(LEARNED, program)
        rows = [one for one in self._client.data(name) if (one.age or 0.0) < TTL_SECONDS / 2]
        known = _numbers(rows)
        for node, share in learned.shares(program, nodes).items():
            if not abs(known.get(node, -1.0) - share) <= WORTH:  # so also where it is NaN
                with suppress(NotFound):  # it was forgotten meanwhile
                    self._client.put_value(name, node, f"{share:.4g}")

    def _has_room(self, program: str) -> bool:
        """Whether there is room for one more program, or it is known."""
        names = {one.data_name.partition(":")[2] for one in self._client.producers() if _is_speed(one.data_name)}
        if program in names or len(names) < MOST_PROGRAMS:
            return True
        self._tell(f"speeds of {MOST_PROGRAMS} programs are known, and of no more, such as {program}, are recorded")
        return False

    def _register(self, kind: str, program: str) -> str:
        """The data name, which is known from now on."""
        name = f"{kind}:{program}"
        wanted = Producer(
            data_name=name,
            cmd="",
            time_max=TTL_SECONDS,
            ttl=TTL_SECONDS,
            kind=Kind.PROGRAM,
            unit=UNITS[kind],
            help=HELP[kind].format(program=program),
        )
        if name not in self._registered:
            with suppress(PreconditionFailed, Conflict):  # it is registered
                self._client.put_producer(wanted, new=True)
            self._registered.add(name)
        return name

    def _keep(self) -> None:
        while True:
            self._due.wait(LONGEST_PAUSE_SECONDS)  # nodes are enrolled, and values grow old
            self._due.clear()
            if self._closing.is_set():
                return
            try:
                self.write()
            except (InfoError, ValueError) as error:
                self._registered.clear()  # a name may have been deleted
                self._due.set()
                self._tell(f"what tasks tell of speeds is not written: {error}")
            self._closing.wait(PAUSE_SECONDS)

    def _tell(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)


def _is_speed(data_name: str) -> bool:
    return data_name.partition(":")[0] in (STEPS, RUNS)


def _numbers(rows: Iterable[Datum]) -> dict[str, float]:
    """By node what is fresh and a number: anybody with a processor's token may write such a value."""
    found = {}
    for row in rows:
        if row.state is State.FRESH:
            with suppress(InvalidInput, ValueError):
                found[row.node_name] = row.number()
    return found
