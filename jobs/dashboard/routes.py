"""The list of the board's calls: what Flask answers and what the OpenAPI document shows are made from it."""

from __future__ import annotations

import re
from typing import NamedTuple

from infosvc.wire.records import Role

_IN_RULE = re.compile(r"<(\w+)>")


class BoardRoute(NamedTuple):
    """One call: its path below /api/v1, its name, which a method of `Calls` has too, and who may make it."""

    rule: str
    name: str
    role: Role = Role.READER
    method: str = "GET"

    @property
    def path(self) -> str:
        """The rule as OpenAPI writes it.

        >>> BoardRoute("/jobs/<job_id>", "job").path
        '/jobs/{job_id}'
        """
        return _IN_RULE.sub(r"{\1}", self.rule)

    @property
    def variables(self) -> list[str]:
        """What stands for parts of the path."""
        return _IN_RULE.findall(self.rule)


ROUTES = (
    BoardRoute("/path", "path"),
    BoardRoute("/jobs", "jobs"),
    BoardRoute("/jobs/<job_id>", "job"),
    BoardRoute("/jobs/<job_id>", "end", Role.ADMIN, "DELETE"),
    BoardRoute("/jobs/<job_id>/logs", "logs"),
    BoardRoute("/jobs/<job_id>/decision", "decision"),
    BoardRoute("/queue", "queue", Role.USER),
    BoardRoute("/pools", "pools"),
    BoardRoute("/pools/<pool>", "pool"),
    BoardRoute("/pools/<pool>/jobs", "give", Role.USER, "POST"),
    BoardRoute("/pools/<pool>/infer", "infer", Role.USER, "POST"),
    BoardRoute("/tasks/<task_id>/log", "task_log", Role.USER),
    BoardRoute("/tasks/<task_id>/values", "task_values", Role.USER),
    BoardRoute("/tasks/<task_id>/decision", "task_decision", Role.USER),
    BoardRoute("/tasks/<task_id>/outputs", "task_outputs", Role.USER),
    BoardRoute("/tasks/<task_id>/outputs/file", "task_output_file", Role.USER),
)
