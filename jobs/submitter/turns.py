"""Brings tasks to YARN in turns. Which of them comes first is YARN's to decide, so nothing waits here."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError, UnknownApplication
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Forbidden, InfoError, NotFound, NotReady, Unauthorized, Unreachable
from infosvc.wire.tasks import LONGEST_REASON, Task, TaskNews, TaskState
from jobs.errors import JobError
from jobs.kinds.task.request import patience_of, starts_before, starts_until
from jobs.kinds.task.settings import STOP_SECONDS, STOPPED, UNBOUND
from jobs.submitter.moving import Mover
from jobs.submitter.news import has_moved, is_taken_back, is_told, is_unbound, news_of
from jobs.submitter.speeds import Speeds

PATIENCE_SECONDS = STOP_SECONDS + 15.0
"""How long a runner may take that was asked to stop."""
MOST_STARTS = 100
"""Of a task; YARN may take its room back again and again."""
OPEN = (TaskState.QUEUED, TaskState.STARTING, TaskState.RUNNING)
"""States of tasks that the submitter has to do with."""


class Cluster(Protocol):
    """What the submitter needs of YARN and HDFS; errors are HadoopError, and JobError for what can never work."""

    def is_up(self) -> bool:
        """Whether YARN and HDFS answer, so that what they refuse is refused for good."""

    def find(self, task_id: str) -> Application | None:
        """The application that was submitted last for a task, None when there is none."""

    def application(self, application_id: str) -> Application:
        """One application; UnknownApplication when YARN does not know it."""

    def submit(
        self,
        task: Task,
        archive: Path | None,
        starts_before: int = 0,
        bound_to: Sequence[str] = (),
        may_wait: bool = True,
    ) -> str:
        """Submit a task with its files, after so many starts in applications before; the id of its application.

        With `bound_to` the application is for these nodes alone. If it `may_wait`, it may be for the soonest alone.
        """

    def note_decision(self, task: Task, application: Application) -> None:
        """Keep why a start of a task runs where it runs."""

    def take_away(self, task_id: str) -> None:
        """Delete what a submitter that was killed has laid out for a task."""

    def ask_to_stop(self, application_id: str) -> None:
        """Have the runner of a task end its program, which has STOP_SECONDS for that."""

    def has_begun(self, application: Application) -> bool:
        """Whether YARN has given the current attempt of an application a node."""

    def kill(self, application_id: str, why: str = "") -> None:
        """End an application; its diagnostics tell why."""

    def record(self, application_id: str) -> tuple[Mapping[str, Any], str]:
        """The section and the last words of the record that a runner has left, both empty without one."""

    def clean(self, application_id: str) -> None:
        """Take the files of an application that has ended away."""


class Turns:
    """Each turn looks at all tasks that have not ended. The submitter may be killed between any two steps of one.

    The application of a task carries the task's id as a tag. Once a task is taken, it is looked for before the task is
    submitted, so that a task that was handed over is not handed over again, whatever became of the submitter.
    """

    def __init__(
        self,
        client: InfoClient,
        cluster: Cluster,
        say: Callable[[str], None],
        speeds: Speeds | None = None,
        mover: Mover | None = None,
    ) -> None:
        """`speeds` learns from tasks that have succeeded, and `mover` says where tasks go on that move."""
        self._client = client
        self._cluster = cluster
        self._say = say
        self._speeds = speeds
        self._mover = mover
        self._troubles: dict[str, str] = {}
        self._stopping: dict[str, float] = {}
        self._waiting: dict[str, tuple[int, float]] = {}
        self._queued: set[str] = set()

    def turn(self) -> int:
        """Do for each task what is to be done now; how many there are. InfoError when the service does not answer.

        What stands in the way of a task is said once.
        """
        tasks, troubles = self._client.tasks(states=OPEN), dict[str, str]()
        self._queued = {task.task_id for task in tasks if task.state is TaskState.QUEUED}
        for task in reversed(tasks):  # the oldest first
            try:
                self._advance(task)
            except (Unreachable, NotReady, Unauthorized, Forbidden):
                raise
            except Exception as error:  # whatever is wrong with one task must not hold up the others
                troubles[task.task_id] = f"{task.task_id}: {type(error).__name__}: {error}"
        for text in sorted(set(troubles.values()) - set(self._troubles.values())):
            self._say(text)
        self._troubles = troubles
        return len(tasks)

    def _advance(self, task: Task) -> None:
        if task.application_id:
            self._watch(task, task.application_id)
        elif not task.taken:
            self._client.put_task_news(task.task_id, TaskNews(TaskState.QUEUED))  # from here on only we may stop it
            self._submit(task)
        elif found := self._cluster.find(task.task_id):
            self._tell(task, TaskNews(TaskState.QUEUED, application_id=found.application_id))
        else:
            self._cluster.take_away(task.task_id)
            self._begin_again(task)

    def _begin_again(self, task: Task) -> None:
        """A submitter that has ended meanwhile has taken the task, and YARN does not have it."""
        if task.stop_asked:
            self._tell(task, TaskNews(TaskState.STOPPED, STOPPED))
        else:
            self._submit(task)

    def _submit(
        self,
        task: Task,
        refused: TaskState = TaskState.FAILED,
        starts_before: int = 0,
        moves: bool = False,
        may_wait: bool = True,
    ) -> bool:
        """Give a task to YARN, after so many starts; whether YARN has it, else it is `refused`, with the reason.

        HadoopError or JobError while YARN or HDFS does not answer, or no node takes work.
        """
        try:
            self._hand_over(task, starts_before, moves, may_wait)
        except (HadoopError, JobError) as error:
            if not self._cluster.is_up():
                raise
            self._tell(task, TaskNews(refused, str(error)[:LONGEST_REASON]))
            return False
        return True

    def _hand_over(self, task: Task, starts_before: int, moves: bool, may_wait: bool) -> None:
        """One that moves is for other nodes alone; HadoopError or JobError.

        It waits for no nodes that others in the queue might get, nor where the queue itself may be full.
        """
        bound_to = self._mover.elsewhere(task) if moves and self._mover else ()
        may_wait = may_wait and self._queued <= {task.task_id}
        with tempfile.TemporaryDirectory(prefix="nodewise-task-") as folder:
            archive = self._fetch(task, Path(folder))
            application_id = self._cluster.submit(task, archive, starts_before, bound_to, may_wait)
        self._say(f"{task.task_id} is {application_id}")
        self._tell(task, TaskNews(TaskState.QUEUED, "" if starts_before else None, application_id))

    def _fetch(self, task: Task, folder: Path) -> Path | None:
        """The archive of a task's files on this machine, None when it has none."""
        if task.spec.files is None:
            return None
        archive = folder / "files.tar"
        try:
            self._client.get_files(task.spec.files, archive)
        except NotFound:
            raise JobError("its files are not in the information service any more", remedy="submit it again") from None
        return archive

    def _watch(self, task: Task, application_id: str) -> None:
        try:
            application = self._cluster.application(application_id)
        except UnknownApplication:
            self._tell(task, TaskNews(TaskState.LOST, f"YARN does not know {application_id} any more"))
            return
        section, said = self._cluster.record(application_id) if application.has_ended else ({}, "")
        moves = has_moved(task, application, said)
        goes_on = moves or is_taken_back(application) or is_unbound(application)
        if goes_on and self._follow_on(task, application, moves):
            return
        if task.stop_asked and not application.has_ended:
            self._stop(application)
        elif self._waits_in_vain(application):
            self._cluster.kill(application_id, UNBOUND)
        news = news_of(task, application, section, said, time.time())
        self._tell(task, news)
        if news.node_name and (news.attempt, news.node_name) != (task.attempt, task.node_name):
            self._note_decision(task, application)
        if news.state is TaskState.SUCCEEDED:
            self._learn(task, news.node_name, section)
        if news.state.is_final:
            self._stopping.pop(application_id, None)
            self._waiting.pop(application_id, None)
            self._cluster.clean(application_id)

    def _follow_on(self, task: Task, application: Application, moves: bool) -> bool:
        """Another queue has taken the room of a task back, or it moves: it waits again, in one more application.

        Returns whether it does; it has ended if it was to be stopped, or was started too often.
        """
        has_waited = is_unbound(application)
        begun = (
            starts_before(application) + max(0, application.attempt - 1) if has_waited else starts_until(application)
        )
        last = self._cluster.find(task.task_id)
        if last and last.application_id != application.application_id:  # a submitter that was killed since did this
            self._tell(task, TaskNews(TaskState.QUEUED, application_id=last.application_id))
        elif task.stop_asked or begun >= MOST_STARTS:
            return False
        elif not self._submit(task, TaskState.QUEUED, begun, moves, may_wait=not has_waited):
            return True  # as while its nodes are away: what had begun is not given up
        self._waiting.pop(application.application_id, None)
        self._cluster.clean(application.application_id)
        return True

    def _waits_in_vain(self, application: Application) -> bool:
        """Whether the nodes to which an application is bound have had no room for it for as long as it waits for them.

        YARN says ACCEPTED of others, too: of those that a node gets ready. An attempt after one whose node was lost
        waits as the first does.
        """
        patience = patience_of(application)
        if patience is None or application.state not in ("SUBMITTED", "ACCEPTED"):
            return False
        now = time.monotonic()
        attempt, since = self._waiting.get(application.application_id, (application.attempt, now))
        since = since if attempt == application.attempt else now
        self._waiting[application.application_id] = application.attempt, since
        return now - since > patience and not self._cluster.has_begun(application)

    def _note_decision(self, task: Task, application: Application) -> None:
        """Nothing waits for it, so what stands in its way is said alone."""
        try:
            self._cluster.note_decision(task, application)
        except (HadoopError, JobError, InfoError) as error:
            self._say(f"why {task.task_id} runs on {application.host} is not known: {error}")

    def _learn(self, task: Task, node_name: str | None, section: Mapping[str, Any]) -> None:
        """Nothing waits for it either."""
        try:
            if self._speeds:
                self._speeds.note(task, node_name, section)
        except InfoError as error:
            self._say(f"how fast {task.task_id} was is not recorded: {error}")

    def _stop(self, application: Application) -> None:
        """Let a program that runs end by itself; what does not, or has no runner that hears, is killed."""
        application_id, now = application.application_id, time.monotonic()
        if application.state == "RUNNING" and application_id not in self._stopping:
            with suppress(HadoopError):
                self._cluster.ask_to_stop(application_id)
                self._stopping[application_id] = now
        if now - self._stopping.get(application_id, -math.inf) > PATIENCE_SECONDS:
            self._cluster.kill(application_id)

    def _tell(self, task: Task, news: TaskNews) -> None:
        if not is_told(task, news):
            self._client.put_task_news(task.task_id, news)
