"""What the OpenAPI document says of the board's calls; `calls` has the whole of what they answer."""

from __future__ import annotations

from typing import Any

JOB = "application_1700000000000_0001"
_CONTAINER = "container_1700000000000_0001_01_000002"
_AWAY = {"description": "Hadoop does not answer, or no cluster is known here: the message says what to set"}
_NO_JOB = {"description": "no job of nodewise has this id"}
_JOB_ID = {"name": "job_id", "in": "path", "required": True, "type": "string", "x-example": JOB}

_ROW: dict[str, Any] = {
    "job_id": JOB,
    "name": "nodewise mxnet_alexnet",
    "user": "alice",
    "queue": "root.default",
    "state": "RUNNING",
    "final": "UNDEFINED",
    "ended": False,
    "progress": 0.25,
    "started_at": 1700000000.0,
    "finished_at": None,
    "said": "",
    "output": "/out/run1",
}
_NODE = {
    "node_name": "127.0.1.11",
    "state": "working",
    "planned": 5,
    "images": 6,
    "errors": 0,
    "local_images": 5,
    "running": 2,
    "images_per_second": 2.0,
    "failures": 0,
    "said": "",
    "beyond_plan": 1,
}
_STATUS = {
    "job_id": JOB,
    "state": "running",
    "attempt": 1,
    "images": 40,
    "done": 10,
    "errors": 0,
    "seconds": 5.0,
    "seconds_left": 15.0,
    "news": [],
    "nodes": [_NODE],
    "kind": "classify",
    "unit": "images",
    "of": 40,
    "containers": [],
    "section": None,
}
_ONE = _ROW | {
    "headline": "10 of 40 images",
    "silent_seconds": None,
    "status": _STATUS,
    "report": None,
    "no_report": None,
    "record": None,
    "ending": None,
}
_LOG = {
    "job_id": JOB,
    "ended": False,
    "container_id": _CONTAINER,
    "node_name": "127.0.1.11",
    "stream": "stdout",
    "offset": 0,
    "next": 8,
    "more": False,
    "text": "loading\n",
}
_PATH = {
    "state": "ready",
    "path": "/data/images",
    "listed_age_seconds": 2.5,
    "files": 1,
    "size_bytes": 1000,
    "blocks": 1,
    "open_files": 0,
    "erasure_coded_files": 0,
    "missing_files": 0,
    "missing": [],
    "replicas": [{"replicas": 2, "blocks": 1}],
    "nodes": [
        {
            "node_name": "127.0.1.11",
            "rack": "/default-rack",
            "blocks": 1,
            "bytes": 1000,
            "files": 1,
            "held_ratio": 1.0,
            "cached_bytes": 0,
            "takes_work": True,
        }
    ],
    "access_cost": {"measured": False, "nodes": [], "most_nodes": 40, "said": [], "entries": []},
    "capability": None,
    "values": {},
    "epsilon": 0.02,
    "images": 1,
    "plans": [],
    "no_plans": "name a capability, such as perf_cpu, to see how each policy would divide the files by it",
}
_DECISION = {
    "job_id": JOB,
    "policy": "maxflow",
    "capability": "perf_cpu",
    "heading": ["40 images of /data/images, divided by maxflow"],
    "nodes": [
        {"node_name": "127.0.1.11", "value": 0.5, "images": 20, "local_images": 20, "why": ["It gets these 20."]}
    ],
}


def _parameter(name: str, description: str, example: object, kind: str = "string", required: bool = False) -> Any:
    found = {"name": name, "in": "query", "type": kind, "description": description, "x-example": example}
    return found | ({"required": True} if required else {})


def _call(summary: str, description: str, *parameters: Any, **responses: Any) -> dict[str, Any]:
    given = {code.removeprefix("on_"): said for code, said in responses.items()} | {"503": _AWAY}
    return {
        "tags": ["board"],
        "summary": summary,
        "description": description,
        "parameters": list(parameters),
        "responses": given,
    }


def _answer(description: str, example: object) -> dict[str, Any]:
    return {"description": description, "examples": {"application/json": example}}


_WRONG = {"description": "a parameter is missing or wrong"}

BOARD: dict[str, Any] = {
    "tags": [{"name": "board", "description": "Board: paths of HDFS and jobs on YARN, as the dashboard shows them"}],
    "definitions": {},
    "paths": {
        "/path": {
            "get": _call(
                "Show a path of HDFS",
                "Who holds its blocks, what reading costs, and what each policy would do with it judged by a "
                "capability, before anything runs. While it is listed the answer is 202: ask again in a second.",
                _parameter("path", "a file or folder of HDFS", "/data/images", required=True),
                _parameter("capability", "the data name that judges nodes; without one nothing is planned", "perf_cpu"),
                on_200=_answer("the path", _PATH),
                on_202=_answer(
                    "it is being listed", {"state": "listing", "path": "/data/images", "files": 9, "listed": 4}
                ),
                on_404={"description": "there is no such path"},
                on_422=_WRONG,
            )
        },
        "/jobs": {
            "get": _call(
                "List jobs",
                "All of nodewise that YARN remembers, the newest first.",
                on_200=_answer("the jobs", {"jobs": [_ROW]}),
            )
        },
        "/jobs/{job_id}": {
            "parameters": [_JOB_ID],
            "get": _call(
                "Show a job",
                "How far each node is while it runs, its report after it has ended.",
                on_200=_answer("the job", _ONE),
                on_404=_NO_JOB,
                on_422=_WRONG,
            ),
            "delete": _call(
                "End a job",
                "For admins. Asks YARN to end it and all its containers; the job's `ending` tells what came of it.",
                on_202=_answer("YARN is asked", {"job_id": JOB, "ending": {"state": "asked", "said": ""}}),
                on_404=_NO_JOB,
                on_409={"description": "it has ended"},
                on_422=_WRONG,
            ),
        },
        "/jobs/{job_id}/logs": {
            "parameters": [_JOB_ID],
            "get": _call(
                "Read a container's log, piece by piece",
                "Without a container, which ones there are. Ask again with `offset` as `next` says; lines come whole, "
                "and of a long log only the last 2 MiB.",
                _parameter("container", "whose log", _CONTAINER),
                _parameter("stream", "stdout if left out", "stdout"),
                _parameter("offset", "the byte to go on from", 0, "integer"),
                on_200=_answer("a piece", _LOG),
                on_404={"description": "no such job, or no such container or stream of it"},
                on_422=_WRONG,
            ),
        },
        "/jobs/{job_id}/decision": {
            "parameters": [_JOB_ID],
            "get": _call(
                "Explain how a job was divided",
                "What each node's share was made from, in figures and in sentences: what `nodewise job explain "
                "ID --json` prints, of which the example has a part.",
                _parameter("node", "only this node", "127.0.1.11"),
                on_200=_answer("the reasons", _DECISION),
                on_404={"description": "no such job, or it left no record"},
                on_422=_WRONG,
            ),
        },
    },
}
