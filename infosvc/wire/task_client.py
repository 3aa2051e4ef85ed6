"""The calls about tasks, which every client of the service has. Standard library only."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

from infosvc.wire.connection import Call, error_from
from infosvc.wire.errors import InvalidInput, NotReady
from infosvc.wire.queues import ClusterQueues
from infosvc.wire.service_calls import ServiceCalls, next_path, query_of, segment
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import (
    MOST_TASKS_OF_ANSWER,
    GoneTaskList,
    Task,
    TaskCount,
    TaskDecision,
    TaskLogPiece,
    TaskNews,
    TaskOutputs,
    TaskProgress,
    TaskState,
    TaskValues,
)

PIECE_BYTES = 256 << 10
FILE_SILENCE_SECONDS = 60.0  # how long an archive may stand still on its way: the service forces it onto its disk
LARGEST_REFUSAL = 1 << 20  # bytes


class TaskClient(ServiceCalls):
    """The part of a client that submits tasks and asks what became of them."""

    def submit_task(self, spec: TaskSpec, idempotency_key: str = "") -> Task:
        """Ask for a task; the same key again finds the task that was made with it. Its archive must be there before.

        Conflict when the key was used for another task, or when there are too many.
        """
        key = idempotency_key or secrets.token_hex(16)  # so that a call that is repeated makes one task
        return self._read(self._call("POST", "/tasks", spec.to_json(), {"Idempotency-Key": key}), Task.from_json)

    def tasks(
        self, states: Sequence[TaskState | str] = (), owner: str = "", text: str = "", limit: int | None = None
    ) -> list[Task]:
        """The tasks that one may see, newest first: all, or the first `limit`.

        Only those in one of the states, of this owner, with this text in name, id or program.
        """
        found: list[Task] = []
        names = [TaskState(state).value for state in states]
        most = MOST_TASKS_OF_ANSWER if limit is None else min(limit, MOST_TASKS_OF_ANSWER)
        path = "/tasks" + query_of(state=names, owner=owner or None, q=text or None, limit=most)
        while path and (limit is None or len(found) < limit):
            answer = self._send("GET", path)
            found += self._read(self._json(answer), _tasks)
            path = next_path(path, answer)
        return found[:limit]

    def count_starting_in(self, environments: Sequence[str]) -> int:
        """How many tasks shall still start in one of these environments, NAME@VERSION or NAME, whosever they are.

        InvalidInput from a service that is older than this client.
        """
        return self._ask("/tasks/starting" + query_of(env=list(environments)), TaskCount.from_json).count

    def task(self, task_id: str) -> Task:
        """One task; NotFound when there is none that one may see."""
        return self._ask(_path(task_id), Task.from_json)

    def stop_task(self, task_id: str) -> Task:
        """Stop a task, at once if no submitter has taken it; Conflict when it has ended."""
        return self._read(self._call("POST", f"{_path(task_id)}/stop"), Task.from_json)

    def task_again(self, task_id: str) -> Task:
        """Ask for a new task that does the same."""
        return self._read(self._call("POST", f"{_path(task_id)}/again", repeatable=False), Task.from_json)

    def remove_task(self, task_id: str) -> None:
        """Forget a task that has ended; Conflict when it has not."""
        self._delete(_path(task_id))

    def task_log(
        self, task_id: str, stream: str = "stdout", attempt: int | None = None, offset: int = 0
    ) -> TaskLogPiece:
        """What a start of a task printed to a stream from byte `offset` on, the last start if none is named."""
        query = query_of(stream=stream, attempt=attempt, offset=offset)
        return self._ask(f"{_path(task_id)}/log{query}", TaskLogPiece.from_json)

    def task_values(
        self, task_id: str, attempt: int | None = None, points: int | None = None, of: str | None = None
    ) -> TaskValues:
        """What a task's program has reported as curves of at most `points` points, 500 by default and at most 2,000.

        With `of` "used" it is what the program and its processes have used.

        All starts are joined if none is named: from its first step on, what a later one reported counts.
        """
        query = query_of(attempt=attempt, points=points, of=of)
        return self._ask(f"{_path(task_id)}/values{query}", TaskValues.from_json)

    def task_decision(self, task_id: str, attempt: int | None = None) -> TaskDecision:
        """Why a start of a task runs where it runs, the last start if none is named; NotFound before it has a node."""
        return self._ask(f"{_path(task_id)}/decision{query_of(attempt=attempt)}", TaskDecision.from_json)

    def queues(self) -> ClusterQueues:
        """YARN's queues and what waits in them: of one's own tasks all that is known, of others the positions."""
        return self._ask("/queue", ClusterQueues.from_json)

    def task_outputs(self, task_id: str) -> TaskOutputs:
        """The files that a task left; NotFound when there are none, for it names no output or has not succeeded."""
        return self._ask(f"{_path(task_id)}/outputs", TaskOutputs.from_json)

    def get_output(self, task_id: str, name: str, path: Path) -> int:
        """Fetch a file that a task left into one of this machine, which is there when all has come; its bytes.

        NotFound when the task left no such file, OSError for the file's own troubles.
        """
        begun = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        asked = f"{_path(task_id)}/outputs/file{query_of(path=name)}"
        try:
            with begun.open("xb") as file:
                while asked:
                    answer = self._send("GET", asked)
                    if answer.status >= 300:
                        raise error_from(answer.status, answer.body)
                    file.write(answer.body)
                    asked = next_path(asked, answer)
                size = file.tell()
            begun.replace(path)
        finally:
            begun.unlink(missing_ok=True)
        return size

    def put_task_news(self, task_id: str, news: TaskNews) -> Task:
        """Say what has become of a task, for its submitter; what is None stays as it is.

        Conflict when the task has ended meanwhile, so that what still runs of it should end.
        """
        return self._read(self._call("PUT", f"{_path(task_id)}/news", news.to_json()), Task.from_json)

    def task_token(self, task_id: str) -> str:
        """The token that the runner and the program of a task show, for its submitter; Conflict when it has ended."""
        return self._read(self._call("POST", f"{_path(task_id)}/token"), lambda answer: str(answer["token"]))

    def put_task_progress(self, task_id: str, progress: TaskProgress) -> Task:
        """Say how far a task is, for its runner; Conflict when it has ended, or has begun anew."""
        return self._read(self._call("PUT", f"{_path(task_id)}/progress", progress.to_json()), Task.from_json)

    def gone_tasks(self) -> tuple[str, ...]:
        """Some of the tasks that were forgotten and whose files on the cluster are to go, for its submitter."""
        return self._ask("/tasks/gone", GoneTaskList.from_json).task_ids

    def confirm_gone(self, task_id: str) -> None:
        """Say that the files of a forgotten task are gone, for its submitter."""
        self._delete(f"/tasks/gone/{segment(task_id)}")

    def has_files(self, sha256: str) -> bool:
        """Whether the service has the archive with this SHA-256."""
        answer = self._send("HEAD", f"/tasks/files/{segment(sha256)}")
        if answer.status in (200, 404):
            return answer.status == 200
        self._call("GET", "/tasks?limit=1")  # is refused in words, which no answer to HEAD has
        raise error_from(answer.status, answer.body)

    def put_files(self, path: Path) -> str:
        """Send a tar archive if the service does not have it yet; its SHA-256, by which a task names it."""
        try:
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                if not self.has_files(sha256):
                    file.seek(0)
                    length = os.fstat(file.fileno()).st_size
                    headers = self._headers() | {"Content-Type": "application/x-tar", "Content-Length": str(length)}
                    call = Call("PUT", f"{self._base}/tasks/files/{sha256}", file, headers, repeatable=False)
                    self._taken(call)
        except OSError as error:
            raise InvalidInput(f"the archive {path} cannot be read ({error.strerror})", "files") from error
        return sha256

    def get_files(self, sha256: str, path: Path) -> None:
        """Fetch an archive into a file of mode 0600, which is there when all of it has come and is what it should be.

        NotFound when the service does not have it, NotReady when it did not come whole, OSError for the file's own
        troubles.
        """
        begun = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        call = Call("GET", f"{self._base}/tasks/files/{segment(sha256)}", None, self._headers())
        connection, answer = self._connections.open(call, FILE_SILENCE_SECONDS)
        try:
            with closing(connection), closing(answer):
                _refuse(answer)
                found = hashlib.sha256()
                with os.fdopen(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    for piece in self._pieces(answer):
                        file.write(piece)
                        found.update(piece)
            if found.hexdigest() != sha256:
                raise NotReady(f"the archive {sha256} did not come whole", remedy="fetch it again")
            begun.replace(path)
        finally:
            begun.unlink(missing_ok=True)

    def _taken(self, call: Call) -> None:
        connection, answer = self._connections.open(call, FILE_SILENCE_SECONDS)
        with closing(connection), closing(answer):
            _refuse(answer)

    def _pieces(self, answer: HTTPResponse) -> Iterator[bytes]:
        try:
            while piece := answer.read(PIECE_BYTES):
                yield piece
        except OSError as error:
            raise self._connections.unreachable(error) from error


def _refuse(answer: HTTPResponse) -> None:
    """The service's own error when it has answered with one."""
    if answer.status >= 300:
        raise error_from(answer.status, answer.read(LARGEST_REFUSAL))


def _path(task_id: str) -> str:
    return f"/tasks/{segment(task_id)}"


def _tasks(reply: Any) -> list[Task]:
    return [Task.from_json(row) for row in reply["tasks"]]
