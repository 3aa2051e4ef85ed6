"""Tasks: programs that users want run once on the cluster, and what became of them."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

from flask import current_app, request

from infosvc.access import task_token
from infosvc.access.audit import digest
from infosvc.access.roles import SEES_TASKS, needs, user_of
from infosvc.core.service import components_of
from infosvc.http.api.body import body, read
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import caller, latest, record_call, write, write_unlogged
from infosvc.http.api.paging import LINK, answer_part
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.openapi.schemas import answer_model, body_model
from infosvc.posting.addresses import check_address
from infosvc.state.transaction import Transaction
from infosvc.tasks import lifecycle, listing, retention
from infosvc.tasks.archives import Archives
from infosvc.tasks.lifecycle import NewTask
from infosvc.wire.errors import Conflict, Forbidden, InvalidInput
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TASK_ID, TaskSpec
from infosvc.wire.tasks import (
    EXAMPLE_ID,
    MOST_TASKS_OF_ANSWER,
    GoneTaskList,
    Task,
    TaskCount,
    TaskList,
    TaskNews,
    TaskProgress,
    TaskState,
    TaskToken,
)

ns = Namespace("tasks", "Tasks: programs that run once on the cluster", path="/tasks")
calls = CallGroup("tasks", ns)

USUAL_ROWS = 100
LONGEST_QUERY = 128
ENVIRONMENT = r"^[a-z0-9][a-z0-9._-]{0,63}(@[A-Za-z0-9][A-Za-z0-9._+-]{0,63})?$"
"""No path: whoever may see no file of another shall not learn here which ones there are."""
ENVIRONMENTS = {
    "type": "array",
    "collectionFormat": "multi",
    "items": {"type": "string", "pattern": ENVIRONMENT},
    "x-example": ["torch@1.13"],
}
KEY = {"_in": "header", "pattern": "^[!-~]{1,128}$", "x-example": "mnist-2"}
ID = {"pattern": TASK_ID.pattern, "x-example": EXAMPLE_ID}
STATES = {
    "type": "array",
    "collectionFormat": "multi",
    "items": {"type": "string", "enum": [state.value for state in TaskState]},
    "x-example": ["running"],
}
PLACE = {"pattern": "^[0-9]{1,12}([.][0-9]{1,9})?:task_[0-9a-f]{16}$", "x-example": f"1700000000.0:{EXAMPLE_ID}"}

spec_body = body_model(ns, TaskSpec)
news_body = body_model(ns, TaskNews)
progress_body = body_model(ns, TaskProgress)
task_said = answer_model(ns, Task)
OF_GPUS = ("gpu_model", "gpu_memory_mb", "gpu_capability")
tasks_said = answer_model(ns, TaskList)
token_said = answer_model(ns, TaskToken)
gone_said = answer_model(ns, GoneTaskList)
count_said = answer_model(ns, TaskCount)


@ns.route("")
class Tasks(Resource):
    """All that the caller may see."""

    @ns.param("state", "only those in this state; may stand several times", **STATES)
    @ns.param("owner", "only those of this user", **{"x-example": "maria"})
    @ns.param("q", "only those in whose name, id or program this text stands", maxLength=128, **{"x-example": "mnist"})
    @ns.param("limit", "most of one answer", type="integer", minimum=1, maximum=MOST_TASKS_OF_ANSWER, default=100)
    @ns.param("after", "leave out those up to this place, as the header Link names it", **PLACE)
    @ns.response(200, "those that the caller may see", tasks_said, headers=LINK)
    @needs(*SEES_TASKS)
    def get(self) -> Any:
        """List tasks, newest first: users see their own, submitters and admins all.

        When this is not all, the header Link names the rest.
        """
        args = request.args
        wanted = listing.Wanted(_states(args.getlist("state")), args.get("owner", ""), _text(args.get("q", "")))
        found = listing.select(latest().configuration.tasks, caller().owners, wanted, args.get("after", ""))
        query = [(name, text) for name, text in args.items(multi=True) if name != "after"]
        return answer_part(
            "tasks", ((listing.place_of(task), task) for task in found), query, most_rows=_limit(args.get("limit"))
        )

    @ns.param("Idempotency-Key", "the same key again finds the task that was made with it", **KEY)
    @ns.expect(spec_body)
    @ns.response(200, "the task that was made with this Idempotency-Key", task_said)
    @ns.response(201, "the new task", task_said)
    @ns.response(400, "the body is not a JSON object")
    @ns.response(403, "the token is of another role, its name cannot be that of a user, or no admin allowed the host")
    @ns.response(409, "the Idempotency-Key was used for another task, or there are too many tasks")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.USER)
    def post(self) -> Any:
        """Ask for a task; it runs as soon as a submitter gives it to YARN.

        It waits for the tasks in `after`, and fails when one of them does not succeed. Its archive must have been sent.
        """
        spec, owner = read(TaskSpec, body()), user_of(caller())
        if not spec.argv[0]:
            raise InvalidInput("argv[0] is empty", "argv", remedy="name a program")
        if spec.move and not (spec.program and spec.checkpoint):
            raise InvalidInput("a task can move only with a program and a checkpoint", "move", remedy="name both")
        if not spec.gpus and (asked := [one for one in OF_GPUS if getattr(spec, one) is not None]):
            raise InvalidInput(f"{asked[0]} is said of GPUs, and it asks for none", asked[0], remedy="give gpus, too")
        return _created(NewTask(lifecycle.new_id(owner, _key()), owner, spec))


@ns.route("/<task_id>")
@ns.param("task_id", "the id of the task", **ID)
class OneTask(Resource):
    """One of them."""

    @ns.response(200, "the task", task_said)
    @ns.response(404, "the caller may see no task of this id")
    @needs(*SEES_TASKS)
    def get(self, task_id: str) -> Any:
        """Show one task, and how far it is.

        Whose it is, which program it runs, in which state it is and since when, where, and why.
        """
        return listing.find(latest().configuration, caller().owners, task_id).task.to_json()

    @ns.response(204, "forgotten")
    @ns.response(404, "the caller may see no task of this id")
    @ns.response(409, "it has not ended")
    @needs(Role.USER)
    def delete(self, task_id: str) -> Any:
        """Forget a task that has ended.

        What it printed goes with it, as soon as a submitter hears of it. Its archive goes some days later, unless
        another task names it.
        """
        owners, now = caller().owners, latest().clock.wall()
        write(lambda transaction: lifecycle.remove(transaction, owners, task_id, now))
        return "", 204


@ns.route("/starting")
class StartingTasks(Resource):
    """Tasks that YARN does not have yet."""

    @ns.param("env", "NAME@VERSION, or NAME for its newest version; may stand several times", **ENVIRONMENTS)
    @ns.response(200, "how many", count_said)
    @ns.response(422, "an environment is not named like that")
    @needs(*SEES_TASKS)
    def get(self) -> Any:
        """Count the tasks that shall still start in one of these environments, whosever they are.

        Whoever removes an environment learns so that others wait for it, and not who, or for what.
        """
        asked = request.args.getlist("env")
        for name in asked:
            if not re.fullmatch(ENVIRONMENT, name):
                raise InvalidInput(f"env={name[:80]!r} is not allowed: NAME@VERSION, such as torch@1.13", "env")
        return TaskCount(listing.count_starting_in(latest().configuration.tasks, set(asked))).to_json()


@ns.route("/gone")
class GoneTasks(Resource):
    """Tasks that were forgotten, and have files on the cluster."""

    @ns.response(200, "some of them", gone_said)
    @needs(Role.SUBMITTER)
    def get(self) -> Any:
        """List tasks that were forgotten and whose files are to go, at most 1,000 of them.

        One whose id another task has by now is left out from when a submitter takes that, until it is forgotten, too.
        """
        gone = retention.gone(latest().configuration)
        return GoneTaskList(tuple(islice(gone, MOST_TASKS_OF_ANSWER))).to_json()


@ns.route("/gone/<task_id>")
@ns.param("task_id", "the id of the task", **ID)
class OneGoneTask(Resource):
    """One of those."""

    @ns.response(204, "not listed any more")
    @needs(Role.SUBMITTER)
    def delete(self, task_id: str) -> Any:
        """Say that the files of a forgotten task are gone.

        It is not listed any more. One that is not listed changes nothing.
        """
        write(lambda transaction: transaction.put("gone_tasks", (task_id,), None))
        return "", 204


@ns.route("/<task_id>/stop")
@ns.param("task_id", "the id of the task", **ID)
class StopTask(Resource):
    """The end of one of them."""

    @ns.response(200, "stopped, or asked to stop", task_said)
    @ns.response(404, "the caller may see no task of this id")
    @ns.response(409, "it has ended")
    @needs(Role.USER)
    def post(self, task_id: str) -> Any:
        """Stop a task: at once if no submitter has taken it, else `stop_asked` becomes true.

        The submitter then ends it on YARN, and the task becomes stopped.
        """
        owners, now = caller().owners, latest().clock.wall()
        task, _ = write(lambda transaction: (lifecycle.stop(transaction, owners, task_id, now), False))
        return task.to_json()


@ns.route("/<task_id>/again")
@ns.param("task_id", "the id of the task", **ID)
class TaskAgain(Resource):
    """One of them once more."""

    @ns.response(201, "the new task", task_said)
    @ns.response(404, "the caller may see no task of this id")
    @ns.response(409, "there are too many tasks")
    @ns.response(422, "its archive or a task that must come before is not here any more")
    @needs(Role.USER)
    def post(self, task_id: str) -> Any:
        """Ask for a new task that does the same.

        It belongs to whom the first belongs to, and names it in `again_of`.
        """
        task = listing.find(latest().configuration, caller().owners, task_id).task
        return _created(NewTask(lifecycle.new_id(task.owner), task.owner, task.spec, task_id))


@ns.route("/<task_id>/news")
@ns.param("task_id", "the id of the task", **ID)
class News(Resource):
    """What the submitter tells."""

    @ns.expect(news_body)
    @ns.response(200, "the task as it is now", task_said)
    @ns.response(400, "the body is not a JSON object")
    @ns.response(404, "no task has this id")
    @ns.response(409, "it has ended, waits for others, or the news is of an attempt before")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.SUBMITTER)
    def put(self, task_id: str) -> Any:
        """Say what has become of a task; what is left out stays as it is.

        The first news, {"state": "queued"}, takes the task before YARN gets it: from then on it is not stopped at once.
        News that were told before change nothing. What waited for the task becomes queued, or fails with it.
        """
        news, now = read(TaskNews, body()), latest().clock.wall()
        said = {name: value for name, value in news.to_json().items() if name != "reason"}  # which may show a program
        task, _ = write(
            lambda transaction: (lifecycle.take_news(transaction, task_id, news, now), False), json.dumps(said)
        )
        return task.to_json()


@ns.route("/<task_id>/token")
@ns.param("task_id", "the id of the task", **ID)
class TokenOfTask(Resource):
    """What one of them shows to this service."""

    @ns.response(201, "its token", token_said)
    @ns.response(404, "no task has this id")
    @ns.response(409, "it has ended")
    @needs(Role.SUBMITTER)
    def post(self, task_id: str) -> Any:
        """Make the token of a task, always the same, which its runner and its program show.

        It reads values, tracks runs of MLflow in the name of the task's owner, and tells how far this task is. It ends
        with the task.
        """
        task = listing.find(latest().configuration, None, task_id).task
        if task.ended_at is not None:
            raise Conflict(f"{task_id} has ended: it is {task.state}", "task_id", remedy="there is nothing to show it")
        record_call()
        return TaskToken(task_id, task_token.text_of(task, components_of(current_app).settings.token)).to_json(), 201


@ns.route("/<task_id>/progress")
@ns.param("task_id", "the id of the task", **ID)
class Progress(Resource):
    """How far one of them is."""

    @ns.expect(progress_body)
    @ns.response(200, "the task as it is now", task_said)
    @ns.response(400, "the body is not a JSON object")
    @ns.response(403, "the token is that of another task")
    @ns.response(404, "no task has this id")
    @ns.response(409, "it has ended, or this is of an attempt before")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.TASK)
    def put(self, task_id: str) -> Any:
        """Say how far a task is, as its runner; what is left out is as by default, whatever was said before.

        A task whose program does not run yet becomes starting, else running. It leaves no line in the audit log.
        """
        if caller().task_id not in ("", task_id):
            raise Forbidden(f"the token of {caller().task_id} may not tell of {task_id[:80]}")
        progress, now = read(TaskProgress, body()), latest().clock.wall()
        task = write_unlogged(lambda transaction: lifecycle.take_progress(transaction, task_id, progress, now))
        return task.to_json()


def _created(new: NewTask) -> tuple[dict[str, Any], int]:
    """The answer with a task that is new, or was made before with this key."""
    settings, now = components_of(current_app).settings, latest().clock.wall()
    if new.spec.notify is not None:
        check_address(new.spec.notify, "notify", caller().role is Role.ADMIN, settings.notify_hosts)
    archives: Archives = components_of(current_app).archives
    if new.spec.files is not None and new.task_id not in latest().configuration.tasks:
        archives.claim(new.spec.files)

    def change(transaction: Transaction) -> tuple[Task, bool]:
        return lifecycle.create(transaction, new, settings, now)

    task, is_new = write(change, _detail(new))
    return task.to_json(), 201 if is_new else 200


def _detail(new: NewTask) -> str:
    """What the audit log holds in place of what a task is asked to run, which may hold secrets."""
    sent = request.get_data()
    said = {"task_id": new.task_id, "name": new.spec.name[:LONGEST_QUERY]} | (json.loads(digest(sent)) if sent else {})
    return json.dumps(said)


def _key() -> str:
    key = request.headers.get("Idempotency-Key", "")
    if key and not re.fullmatch(KEY["pattern"], key):
        raise InvalidInput(
            f"Idempotency-Key {key[:80]!r} is not allowed: at most 128 visible ASCII characters", "Idempotency-Key"
        )
    return key


def _states(names: list[str]) -> frozenset[TaskState]:
    known = {state.value for state in TaskState}
    for name in names:
        if name not in known:
            raise InvalidInput(f"state={name[:80]!r} is not allowed: one of {', '.join(known)}", "state")
    return frozenset(map(TaskState, names))


def _text(text: str) -> str:
    if len(text) > LONGEST_QUERY:
        raise InvalidInput(f"q has {len(text)} characters: it may have {LONGEST_QUERY}", "q")
    return text


def _limit(text: str | None) -> int:
    if text is None:
        return USUAL_ROWS
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and 1 <= int(text) <= MOST_TASKS_OF_ANSWER):
        raise InvalidInput(f"limit={text[:80]!r} is not allowed: 1 to {MOST_TASKS_OF_ANSWER}", "limit")
    return int(text)
