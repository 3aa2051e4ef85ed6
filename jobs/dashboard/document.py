"""What the OpenAPI document says of each of the board's calls; the schema of an answer is made from its record."""

from __future__ import annotations

from typing import Any

from infosvc.wire.bodies import PoolJobBody
from infosvc.wire.queues import ClusterQueues
from infosvc.wire.records import Role
from infosvc.wire.tasks import EXAMPLE_ID, TaskDecision, TaskLogPiece, TaskOutputs, TaskValues
from jobs.dashboard.answers import (
    CONTAINER,
    JOB,
    EndedJob,
    ExplainedJob,
    Jobs,
    LogContainers,
    LogPiece,
    WholeJob,
)
from jobs.dashboard.inference import Inferred
from jobs.dashboard.path_answers import ListingPath, ShownPath
from jobs.dashboard.pool_answers import GivenJob, ListedPools, ShownPool
from jobs.dashboard.routes import ROUTES

_AWAY = {"description": "Hadoop does not answer, or no cluster is known here: the message says what to set"}
_NO_JOB = {"description": "no job of nodewise has this id; where Hadoop has Kerberos, none of this user's"}
_NO_TASK = {"description": "no task of this user has this id"}
_IN_PATH = {
    name: {"name": name, "in": "path", "required": True, "type": "string", "x-example": example}
    for name, example in (("job_id", JOB), ("task_id", EXAMPLE_ID), ("pool", "photos"))
}


def _parameter(name: str, description: str, example: object, kind: str = "string", required: bool = False) -> Any:
    found = {"name": name, "in": "query", "type": kind, "description": description, "x-example": example}
    return found | ({"required": True} if required else {})


def _call(summary: str, description: str, *parameters: Any, **responses: Any) -> dict[str, Any]:
    given = {"503": _AWAY} | {code.removeprefix("on_"): said for code, said in responses.items()}
    return {
        "tags": ["board"],
        "summary": summary,
        "description": description,
        "parameters": list(parameters),
        "responses": given,
    }


def _answer(description: str, record: Any) -> dict[str, Any]:
    return {"description": description, "schema": record}


_PICTURE = {
    "name": "picture",
    "in": "body",
    "description": "the bytes of a picture",
    "schema": {"type": "string", "format": "binary"},
}
_NO_POOL = {"description": "there is no such pool: the message names those that there are"}
_WHOSE_POOL = (
    "The pool is one of the service's own user; where Hadoop has Kerberos, one of the user whose token is shown."
)
_NO_OUTPUT = {"description": "no such task, or it has left no output, or not this file"}
_WRONG = {"description": "a parameter is missing or wrong"}

DESCRIBED: dict[str, dict[str, Any]] = {
    "path": _call(
        "Show a path of HDFS",
        "Who holds its blocks, what reading costs, and what each policy would do with it judged by a "
        "capability, before anything runs. While it is listed the answer is 202: ask again in a second. Where Hadoop "
        "has Kerberos, HDFS is asked as the user whose token is shown, and 403 tells what it does not show.",
        _parameter("path", "a file or folder of HDFS", "/data/images", required=True),
        _parameter("capability", "the data name that judges nodes; without one nothing is planned", "perf_cpu"),
        on_200=_answer("the path", ShownPath),
        on_202=_answer("it is being listed", ListingPath),
        on_404={"description": "there is no such path"},
        on_422=_WRONG,
    ),
    "jobs": _call(
        "List jobs",
        "All of nodewise that YARN remembers, the newest first. Where Hadoop has Kerberos, users see their own jobs, "
        "admins all, and others none (403).",
        on_200=_answer("the jobs", Jobs),
    ),
    "job": _call(
        "Show a job",
        "How far each node is while it runs, its report after it has ended.",
        on_200=_answer("the job", WholeJob),
        on_404=_NO_JOB,
        on_422=_WRONG,
    ),
    "end": _call(
        "End a job",
        "For admins. Asks YARN to end it and all its containers; the job's `ending` tells what came of it.",
        on_202=_answer("YARN is asked", EndedJob),
        on_404=_NO_JOB,
        on_409={"description": "it has ended"},
        on_422=_WRONG,
    ),
    "logs": _call(
        "Read a container's log, piece by piece",
        "Without a container, which ones there are. Ask again with `offset` as `next` says; lines come whole, "
        "and of a long log only the last 2 MiB.",
        _parameter("container", "whose log", CONTAINER),
        _parameter("stream", "stdout if left out", "stdout"),
        _parameter("offset", "the byte to go on from", 0, "integer"),
        on_200=_answer("a piece, or the containers", LogPiece | LogContainers),
        on_404={"description": "no such job, or no such container or stream of it"},
        on_422=_WRONG,
    ),
    "decision": _call(
        "Explain how a job was divided",
        "What each node's share was made from, in figures and in sentences: what `nodewise job explain "
        "ID --json` prints, and its heading.",
        _parameter("node", "only this node", "127.0.1.11"),
        on_200=_answer("the reasons", ExplainedJob),
        on_404={"description": "no such job, or it left no record"},
        on_422=_WRONG,
    ),
    "queue": _call(
        "Show YARN's queues, and what waits in them",
        "The leaf queues of the capacity scheduler, and the applications that wait for their first place in the order "
        "in which YARN takes them: what each waits for, and when it is expected to begin, as an interval that holds "
        "with a probability of 80 %. Users see what is known of their own tasks and the positions of all others, "
        "admins all.",
        on_200=_answer("the queues", ClusterQueues),
    ),
    "pools": _call(
        "List pools",
        "Those that are up or coming up, by name: what `nodewise pool list --json` prints, and whether the caller may "
        "use it. Where Hadoop has Kerberos, users see their own pools, admins all, and others none (403).",
        on_200=_answer("the pools", ListedPools),
    ),
    "pool": _call(
        "Show a pool",
        "What its workers have loaded, what each of them does, and its jobs with how far they are: what `nodewise pool "
        "show NAME --json` prints, and when it ends. " + _WHOSE_POOL,
        on_200=_answer("the pool", ShownPool),
        on_404=_NO_POOL,
    ),
    "give": _call(
        "Give a job to a pool",
        "As `nodewise job submit --pool NAME` does, for a folder in HDFS that the pool's owner may read. The call ends "
        "once the pool has the job, or has refused it; the pool tells how far its jobs are. " + _WHOSE_POOL,
        {"name": "job", "in": "body", "required": True, "schema": PoolJobBody},
        on_201=_answer("the pool has taken it on", GivenJob),
        on_404=_NO_POOL,
        on_409={"description": "the pool has another network, or cannot do this job: the message says why"},
        on_503={
            "description": "the pool is full, goes down, or has no worker that is ready; or Hadoop does not answer. "
            "See Retry-After"
        },
    ),
    "infer": {
        **_call(
            "Have a pool look at a picture",
            "The network of a pool that is up says what is on a single picture: its bytes are the body, or `path` says "
            "where it is in HDFS. Pictures that come together are one batch. What is no picture has an answer with an "
            "`error`. The pool is one of the service's own user; where Hadoop has Kerberos, one of the user whose "
            "token is shown.",
            _PICTURE,
            _parameter("path", "of a picture in HDFS, in place of a body", "/data/images/cat.jpg"),
            _parameter("name", "what the answer shall call it", "cat.jpg"),
            _parameter("seconds", "within which the answer has to come, 1 to 30; 30 if left out", 30, "integer"),
            on_200=_answer("what is on it", Inferred),
            on_404={"description": "there is no such pool, or no such file in HDFS"},
            on_422=_WRONG,
        ),
        "consumes": ["application/octet-stream"],
    },
    "task_log": _call(
        "Read a task's log, piece by piece",
        "What its program printed, a second late at most. Ask again with `offset` as `next` says; lines come whole. "
        "Users read the logs of their own tasks, admins all.",
        _parameter("stream", "stdout if left out", "stdout"),
        _parameter("attempt", "which start of it; the last one if left out", 1, "integer"),
        _parameter("offset", "the byte to go on from", 0, "integer"),
        on_200=_answer("a piece", TaskLogPiece),
        on_404=_NO_TASK,
        on_422=_WRONG,
    ),
    "task_values": _call(
        "Show what a task's program has reported, or used",
        "A curve for each name, a second late at most. All starts of the task are joined: from its first step on, "
        "what a later one reported counts. Of what a program and its processes use there is a value every 5 seconds. "
        "Users read the values of their own tasks, admins all.",
        _parameter("of", "reported, if left out, or used", "reported"),
        _parameter("attempt", "which start of it; all if left out", 1, "integer"),
        _parameter("points", "most points of a curve, 2 to 2,000; 500 if left out", 500, "integer"),
        on_200=_answer("the curves", TaskValues),
        on_404=_NO_TASK,
        on_422=_WRONG,
    ),
    "task_decision": _call(
        "Explain why a task runs where it runs",
        "What was known of the nodes when it was seen there first, a second or two after YARN's decision: which may "
        "run it, which had room, and the plug-in's order. Users see this of their own tasks, admins of all.",
        _parameter("attempt", "which start of it; the last one if left out", 1, "integer"),
        on_200=_answer("the decision", TaskDecision),
        on_404={"description": "no such task, or it has no node yet"},
        on_422=_WRONG,
    ),
    "task_outputs": _call(
        "List the files that a task left",
        "Those that it put in place below its output, once it has succeeded. Users see the outputs of their own tasks, "
        "admins all.",
        on_200=_answer("the files", TaskOutputs),
        on_404=_NO_OUTPUT,
    ),
    "task_output_file": {
        **_call(
            "Fetch a file that a task left, piece by piece",
            "At most 4 MiB. The header `Link` names the next piece, as long as there is one.",
            _parameter("path", "of the file, below the task's output", "model/weights.bin", required=True),
            _parameter("offset", "the byte to go on from", 0, "integer"),
            on_200={"description": "bytes of the file", "schema": {"type": "file"}},
            on_404=_NO_OUTPUT,
            on_422=_WRONG,
        ),
        "produces": ["application/octet-stream"],
    },
}
"""By the name of the call."""


def _paths() -> dict[str, Any]:
    """Every call of the list; one that any reader may make needs no token where reading is open."""
    found: dict[str, Any] = {}
    for route in ROUTES:
        named = {"parameters": [_IN_PATH[one] for one in route.variables]} if route.variables else {}
        open_to_read: dict[str, Any] = {"security": []} if route.role is Role.READER else {}
        found.setdefault(route.path, named)[route.method.lower()] = DESCRIBED[route.name] | open_to_read
    return found


BOARD: dict[str, Any] = {
    "tags": [
        {
            "name": "board",
            "description": "Board: paths of HDFS, jobs, pools and queues of YARN, and what tasks print, report, use "
            "and leave",
        }
    ],
    "paths": _paths(),
}
