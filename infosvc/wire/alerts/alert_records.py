"""Alerts as they are asked for and told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from infosvc.wire.fields import SECONDS, Limits, Record, describe
from infosvc.wire.task_spec import LONGEST_URL, WEB_ADDRESS

ALERT_ID = r"^alert_[0-9a-f]{16}$"
EXAMPLE_ALERT = "alert_0f0f0f0f0f0f0f0f"
LONGEST_CONDITION = 500
_CONDITION = "what it is about: a comparison of data names and numbers, or `node lost`, `queue stuck`, `job failed`"
_EXAMPLE_CONDITION = "load_1m > 8"


@dataclass(frozen=True)
class AlertBody(Record):
    """An alert that is to be added."""

    condition: str = field(
        metadata=describe(_CONDITION, limits=Limits(shortest=1, longest=LONGEST_CONDITION), example=_EXAMPLE_CONDITION)
    )
    seconds: float = field(
        default=0.0,
        metadata=describe(
            "that the condition must hold before the alert is on, and not hold before it is off",
            unit="seconds",
            limits=SECONDS,
            example=300,
        ),
    )
    notify: str | None = field(
        default=None,
        metadata=describe(
            "web address that gets a POST when the alert goes on or off; without one it stands on the dashboard alone",
            limits=Limits(longest=LONGEST_URL, pattern=WEB_ADDRESS),
            example="https://hooks.example.org/nodewise",
        ),
    )


@dataclass(frozen=True)
class AlertOn(Record):
    """What an alert is on for."""

    about: str = field(metadata=describe("a node, a queue, a task or a job", example="127.0.1.11"))
    since: float = field(metadata=describe("when it went on", unit="Unix seconds", example=1700000000.0))
    said: str = field(metadata=describe("what was found then", example="load_1m 9.5"))


@dataclass(frozen=True)
class Alert(Record):
    """One alert, and what it is on for."""

    alert_id: str = field(metadata=describe(example=EXAMPLE_ALERT))
    condition: str = field(metadata=describe(_CONDITION, example=_EXAMPLE_CONDITION))
    seconds: float = field(
        metadata=describe("that the condition must hold, or not hold", unit="seconds", example=300.0)
    )
    notify: str | None = field(
        metadata=describe(
            "where it is told; who is no admin sees only the host", example="https://hooks.example.org/..."
        )
    )
    created_by: str = field(metadata=describe("the user name of who added it", example="admin"))
    created_at: float = field(metadata=describe("when", unit="Unix seconds", example=1700000000.0))
    on: tuple[AlertOn, ...] = field(default=(), metadata=describe("what it is on for, as far as the caller may know"))
    undelivered: int = field(default=0, metadata=describe("how many of its messages wait", example=0))
    trouble: str = field(
        default="", metadata=describe("why its last message did not arrive; empty if it did", example="")
    )

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object with what it is on for."""
        return super().from_json({**body, "on": tuple(AlertOn.from_json(one) for one in body["on"])})


@dataclass(frozen=True)
class AlertList(Record):
    """All alerts."""

    alerts: tuple[Alert, ...] = field(metadata=describe("oldest first"))


@dataclass(frozen=True)
class AlertTest(Record):
    """What became of a message that tries the way to a receiver."""

    delivered: bool = field(metadata=describe("whether it arrived", example=True))
    trouble: str = field(metadata=describe("why not; empty if it arrived", example=""))
