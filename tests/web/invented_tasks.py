"""What the board tells of tasks without a cluster: an invented log, curves, a decision and files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from flask import Response, g, jsonify, request
from flask.typing import ResponseReturnValue

from infosvc.http.api.exchange import latest
from infosvc.tasks.listing import find
from infosvc.wire.fields import answer_of
from infosvc.wire.tasks import (
    ConsideredNode,
    OutputFile,
    Task,
    TaskCurve,
    TaskDecision,
    TaskLogPiece,
    TaskOutputs,
    TaskValues,
)

PIECE = 8
WEIGHTS = b"weights \x00\xff"
LOG = (
    "loading\n<b>bold</b> is text\n\x1b[31mwarning\x1b[0m: few cores\n"
    "epoch 1:  10 %\repoch 1:  50 %\repoch 1: 100 %\ndone\n"
)


@dataclass
class InventedTasks:
    """The board's calls of tasks; tests may add to the log while a page follows it."""

    log: str = LOG

    def views(self) -> dict[str, Any]:
        """What answers, by rule."""
        return {
            "/tasks/<task_id>/log": self.task_log,
            "/tasks/<task_id>/values": self.task_values,
            "/tasks/<task_id>/decision": self.task_decision,
            "/tasks/<task_id>/outputs": self.task_outputs,
            "/tasks/<task_id>/outputs/file": self.task_output_file,
        }

    def task_log(self, task_id: str) -> ResponseReturnValue:
        """GET /tasks/ID/log."""
        task, stream, offset = _task(task_id), request.args["stream"], int(request.args.get("offset", 0))
        log = self.log if stream == "stdout" else ""
        attempt = int(request.args.get("attempt", 0)) or task.attempt or 1
        return _answer(TaskLogPiece(task_id, task.state, stream, attempt, offset, len(log), False, log[offset:]))

    def task_values(self, task_id: str) -> ResponseReturnValue:
        """GET /tasks/ID/values."""
        task = _task(task_id)
        begun, used = task.started_at or 0.0, request.args.get("of") == "used"
        rate = int(task_id[-2:], 16) / 64
        made = (
            {
                "cpu_cores": lambda at: 1 + math.sin(at / 5) / 5,
                "memory_bytes": lambda at: 3e8 + 1e6 * at,
                "received_bytes_per_second": lambda at: 4e5 + 1e3 * at,
            }
            if used
            else {"loss": lambda at: 1 / (1 + rate * at / 20), "accuracy": lambda at: 1 - 1 / (1 + rate * at / 20)}
        )
        curves = tuple(_curve(name, value, begun) for name, value in sorted(made.items()))
        return _answer(TaskValues(task_id, task.state, None, True, curves))

    def task_decision(self, task_id: str) -> ResponseReturnValue:
        """GET /tasks/ID/decision."""
        nodes = (ConsideredNode("n1", True, True, 4096, 3, 0.9), ConsideredNode("n2", False, True, 2048, 1, None))
        said = "1 of 2 nodes may run it, of which 1 had room."
        return _answer(TaskDecision(task_id, 1, "n1", 1_700_000_000.0, "perf_cpu", 2.0, nodes, said))

    def task_outputs(self, task_id: str) -> ResponseReturnValue:
        """GET /tasks/ID/outputs."""
        files = (OutputFile("model/weights.bin", len(WEIGHTS), 1_700_000_000.0),)
        return _answer(TaskOutputs(task_id, "/out/mnist", files, True))

    def task_output_file(self, task_id: str) -> ResponseReturnValue:
        """GET /tasks/ID/outputs/file."""
        offset = int(request.args.get("offset", 0))
        answer = Response(WEIGHTS[offset : offset + PIECE], content_type="application/octet-stream")
        if offset + PIECE < len(WEIGHTS):
            answer.headers["Link"] = f'<?path={request.args["path"]}&offset={offset + PIECE}>; rel="next"'
        return answer


def _task(task_id: str) -> Task:
    return find(latest().configuration, g.caller.owners, task_id).task


def _curve(name: str, value: Any, begun: float) -> TaskCurve:
    points = tuple((step, begun + 5 * step, value(step)) for step in range(0, 200, 2))
    numbers = [point[2] for point in points]
    return TaskCurve(name, numbers[-1], min(numbers), max(numbers) + 1, 2 * len(points), points)  # a peak between them


def _answer(record: Any) -> Response:
    return jsonify(answer_of(record))
