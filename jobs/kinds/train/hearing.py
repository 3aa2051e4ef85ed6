"""Answers the members of a run over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from jobs.application.calls import Gone, Refused, Request
from jobs.application.coordinator import Hearing
from learning.lead.calls import MEMBER, Say
from learning.lead.leader import Leader, Unwanted

MOST_BYTES = 4096
"""Of what a member says."""


class RunHearing(Hearing):
    """What members say goes to the leader of their run."""

    calls: ClassVar[Mapping[str, int]] = {MEMBER: MOST_BYTES}

    def __init__(self, leader: Leader) -> None:
        self.leader = leader

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None:  # noqa: ARG002 there is one call
        """Answer a member; Gone when it takes part no more. What else goes wrong is no fault of who calls."""
        try:
            say = Say.from_json(json.loads(request.body))
        except (ValueError, RecursionError) as error:
            raise Refused(f"the body is not what a member says: {error}") from None
        try:
            return self.leader.hear(say).to_json()
        except Unwanted as error:
            raise Gone(str(error)) from None
