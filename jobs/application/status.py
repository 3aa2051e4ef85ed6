"""How far a job is: what its application master answers to GET /status, and what its page and the client show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

_OLD_NAMES = {"done": "images", "local": "local_images", "rate": "images_per_second"}
"""Of a node's fields in JSON, as jobs have them that count images."""


@dataclass(frozen=True)
class NodeStatus:
    """One node: `state` is waiting, starting, working, done, lost or left out; `said` tells why, if anything does.

    `done` units count, `local` of them came from its own disk; `running` are in work now, at `rate` units per second.
    `planned` is what the node was given at first.
    """

    node_name: str
    state: str
    planned: int
    done: int
    errors: int
    local: int
    running: int
    rate: float
    failures: int = 0
    said: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it travels."""
        return {_OLD_NAMES.get(name, name): value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        return cls(**{one.name: body[_OLD_NAMES.get(one.name, one.name)] for one in fields(cls)})


@dataclass(frozen=True)
class ContainerStatus:
    """One container that the job started, whatever became of it: `log_address` is its NodeManager's host:port."""

    role: str
    index: int
    node_name: str
    container_id: str
    log_address: str


@dataclass(frozen=True)
class JobStatus:
    """A whole job: `state` is planning, running, storing, succeeded or failed; `done` of `of` units are done.

    `seconds_left` is at the speeds seen, None before any. `section` is what the kind of job tells beyond that.
    """

    job_id: str
    state: str
    attempt: int
    of: int
    done: int
    errors: int
    seconds: float
    seconds_left: float | None
    nodes: tuple[NodeStatus, ...]
    news: tuple[str, ...] = ()
    kind: str = "classify"
    unit: str = "images"
    containers: tuple[ContainerStatus, ...] = ()
    section: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """As it travels; `images` is `of` under the name that it has where images are counted."""
        body = {one.name: getattr(self, one.name) for one in fields(self)}
        return body | {
            "images": self.of,
            "nodes": [node.to_json() for node in self.nodes],
            "news": list(self.news),
            "containers": [asdict(one) for one in self.containers],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`; the answer of an application master of the version before is understood, too."""
        found = {one.name: body[one.name] for one in fields(cls) if one.name in body}
        return cls(
            **{
                **found,
                "of": body["images"],
                "nodes": tuple(NodeStatus.from_json(node) for node in body["nodes"]),
                "news": tuple(body["news"]),
                "containers": tuple(ContainerStatus(**one) for one in body.get("containers", ())),
            }
        )
