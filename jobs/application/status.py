"""How far a job is: what its application master answers to GET /status, and what its page and the client show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class NodeStatus:
    """One node: `state` is waiting, starting, working, done, lost or left out; `said` tells why, if anything does.

    `images` are committed, `local_images` of them from its own disk; `running` are leased to it now. `planned` is what
    the plan gave it.
    """

    node_name: str
    state: str
    planned: int
    images: int
    errors: int
    local_images: int
    running: int
    images_per_second: float
    failures: int = 0
    said: str = ""


@dataclass(frozen=True)
class JobStatus:
    """A whole job: `state` is planning, running or storing; `seconds_left` at the speeds seen, None before any."""

    job_id: str
    state: str
    attempt: int
    images: int
    done: int
    errors: int
    seconds: float
    seconds_left: float | None
    nodes: tuple[NodeStatus, ...]
    news: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As it travels."""
        return asdict(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        return cls(
            **{
                **body,
                "nodes": tuple(NodeStatus(**node) for node in body["nodes"]),
                "news": tuple(body["news"]),
            }
        )
