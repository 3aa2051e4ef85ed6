"""Moves tasks that ask for it to nodes that run their programs faster, as these become free.

The program of such a task is asked to end, and goes on from its checkpoint in one more application, for the faster
nodes alone at first. Which these are is said by the values `training_speed:PROGRAM`, whoever writes them. The idea is
Gandiva's introspective migration (Xiao et al., OSDI 2018).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.tasks import ConsideredNode, Task, TaskState
from jobs.submitter.placing import Sight
from jobs.submitter.speeds import read_learned

PAUSE_SECONDS = 10.0
"""Between two looks."""
RATIO = 1.5
"""A node has to be so many times as fast."""
RESTART_SECONDS = 15.0
"""What a move costs, about: the end of the program, and its start with its checkpoint."""
LEAST_SECONDS = 10 * RESTART_SECONDS
"""A program has to have run so long on its node: it is expected to go on for as long, as nothing tells when it ends."""

Start = tuple[str, int | None]


class Cluster(Protocol):
    """What is needed of YARN; errors are HadoopError, and JobError for what can never work."""

    def look(self) -> Sight:
        """What YARN says of its nodes now."""

    def nodes_for(self, task: Task, sight: Sight) -> Sequence[ConsideredNode]:
        """The nodes that take work: which may run a task, which have room for it, and their scores for its program."""

    def ask_to_move(self, application_id: str) -> None:
        """Have the runner of a task end its program, so that the task goes on elsewhere."""


class Mover:
    """Asks one task at a time, and none while another waits: YARN gives the room of a faster node to that one."""

    def __init__(
        self,
        client: InfoClient,
        cluster: Cluster,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._say = say
        self._clock = clock
        self._next = -math.inf
        self._since: dict[Start, float] = {}
        self._asked: Start | None = None
        self._troubles: set[str] = set()

    def look(self) -> None:
        """Ask the task to move that gains most by it, if it is time to look; InfoError.

        What stands in the way of that is said once.
        """
        now = self._clock()
        if now < self._next:
            return
        self._next = now + PAUSE_SECONDS
        tasks = self._client.tasks(states=(TaskState.QUEUED, TaskState.RUNNING))
        running = [task for task in tasks if _can_move(task)]
        self._since = {_start(task): self._since.get(_start(task), now) for task in running}
        due = [task for task in running if now - self._since[_start(task)] >= least_seconds((task.attempt or 1) - 1)]
        is_one_moving = self._asked in self._since and self._asked not in map(_start, due)
        if due and not is_one_moving and not any(task.state is TaskState.QUEUED for task in tasks):
            self._move_one(due)

    def elsewhere(self, task: Task) -> Sequence[str]:
        """The faster nodes with room for a task whose program has ended to move, none if it may go on anywhere."""
        try:
            return sorted(self._faster(task, read_learned(self._client, task.spec.program or ""), self._cluster.look()))
        except InfoError:
            raise
        except Exception as error:  # what has ended goes on
            self._say(_text(task, error))
            return ()

    def _move_one(self, due: Iterable[Task]) -> None:
        gains, troubles = self._gains(due)
        for text in sorted(troubles - self._troubles):
            self._say(text)
        self._troubles = troubles
        if gains:
            ratio, _, node, task = max(gains, key=lambda gain: gain[:3])
            self._ask(task, f"{node} runs {task.spec.program} {ratio:.1f} times as fast")

    def _gains(self, due: Iterable[Task]) -> tuple[list[tuple[float, str, str, Task]], set[str]]:
        """How many times as fast each task is on each faster node, and what is wrong with others."""
        gains, troubles, speeds = [], set[str](), dict[str, Mapping[str, float]]()
        sight: Sight | None = None
        for task in due:
            program = task.spec.program or ""
            try:
                sight = sight or self._cluster.look()
                if program not in speeds:
                    speeds[program] = read_learned(self._client, program)
                faster = self._faster(task, speeds[program], sight)
            except Exception as error:  # whatever is wrong with one task must not hold up the others
                troubles.add(_text(task, error))
            else:
                gains += [(ratio, task.task_id, node, task) for node, ratio in faster.items()]
        return gains, troubles

    def _ask(self, task: Task, why: str) -> None:
        self._since[_start(task)] = self._clock()  # one that does not end, or does not hear, is asked again much later
        try:
            self._cluster.ask_to_move(task.application_id or "")
        except Exception as error:  # a task could have written what its runner is asked by
            self._say(f"{task.task_id} cannot move: {type(error).__name__}: {error}")
        else:
            self._asked = _start(task)
            self._say(f"{task.task_id} leaves {task.node_name}: {why}")

    def _faster(self, task: Task, speeds: Mapping[str, float], sight: Sight) -> dict[str, float]:
        """The nodes with room that run the program of a task RATIO times as fast as its own, and how many times.

        A node is no faster than its score for the program, which may know that others are at work there. Of the task's
        own node it would know that the task itself is.
        """
        here = speeds.get(task.node_name or "", 0.0)
        if here <= 0:
            return {}
        nodes = self._cluster.nodes_for(task, sight)
        unscored = 0.0 if any(one.score is not None for one in nodes) else math.inf  # YARN shows the best scores alone
        there = {
            one.node_name: min(speeds.get(one.node_name, 0.0), unscored if one.score is None else one.score)
            for one in nodes
            if one.allowed and one.has_room
        }
        return {node: speed / here for node, speed in there.items() if speed >= RATIO * here}


def least_seconds(starts_before: int) -> float:
    """How long a program has to have run on its node: twice as long with each start, so that none moves for ever."""
    return LEAST_SECONDS * 2.0**starts_before


def _can_move(task: Task) -> bool:
    return task.spec.move and task.state is TaskState.RUNNING and not task.stop_asked


def _start(task: Task) -> Start:
    return task.task_id, task.attempt


def _text(task: Task, error: Exception) -> str:
    return f"where {task.task_id} would be faster is not known: {type(error).__name__}: {error}"
