"""How far a job is: what its application master answers to GET /status, and what its page and the client show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self, cast

from infosvc.wire.fields import answer_of, describe, describe_property, fields_of

_A_NODE = describe(example="127.0.1.11")
UNIT = "items"
"""What is counted before a kind of job has said what."""
BEFORE_KINDS = {"kind": "classify", "unit": "images"}
"""Of the application masters of earlier versions, which name no kind because there was one."""
_SAID = describe("why it is so, if anything tells", example="")


@dataclass(frozen=True)
class NodeStatus:
    """One node of a job. In JSON what it has done is called `images` whatever the unit: others read it by this name."""

    node_name: str = field(metadata=_A_NODE)
    state: str = field(
        metadata=describe(
            "waiting, starting, working, done, lost or left out; ended where the job was before the node was done",
            example="working",
        )
    )
    planned: int = field(metadata=describe("units that it was given at first", example=5))
    done: int = field(metadata=describe("units that count", name="images", example=6))
    errors: int = field(metadata=describe("units of these that have an error", example=0))
    local: int = field(metadata=describe("units that came from its own disk", name="local_images", example=5))
    running: int = field(metadata=describe("units that are in work now", example=2))
    rate: float = field(metadata=describe("per second", unit="units", name="images_per_second", example=2.0))
    failures: int = field(default=0, metadata=describe("that speak against it", example=0))
    said: str = field(default="", metadata=_SAID)

    def to_json(self) -> dict[str, Any]:
        """As it travels."""
        return answer_of(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        return cls(**{one.name: body[one.answer_name] for one in fields_of(cast(type, cls)) if one.described.sent})


@dataclass(frozen=True)
class ContainerStatus:
    """One container that the job started, whatever became of it."""

    role: str = field(metadata=describe("what it is for", example="worker"))
    index: int = field(metadata=describe("its number among those of its role", example=0))
    node_name: str = field(metadata=_A_NODE)
    container_id: str = field(metadata=describe(example="container_1700000000000_0001_01_000002"))
    log_address: str = field(metadata=describe("HOST:PORT of its NodeManager", example="127.0.1.11:8042"))


@dataclass(frozen=True)
class JobStatus:
    """A whole job, as its application master tells it."""

    job_id: str = field(metadata=describe(example="application_1700000000000_0001"))
    state: str = field(metadata=describe("planning, running, storing, succeeded, failed or killed", example="running"))
    attempt: int = field(metadata=describe("which start of its application master this is", example=1))
    of: int = field(metadata=describe("units in all", example=40))
    done: int = field(metadata=describe("units that are done", example=10))
    errors: int = field(metadata=describe("units of these that have an error", example=0))
    seconds: float = field(metadata=describe("since it began", unit="seconds", example=5.0))
    seconds_left: float | None = field(
        metadata=describe("that it takes still at the speeds seen; null before any", unit="seconds", example=15.0)
    )
    nodes: tuple[NodeStatus, ...]
    news: tuple[str, ...] = field(default=(), metadata=describe("sentences, the last one last", example=[]))
    kind: str = field(default="", metadata=describe("the kind of job", example="classify"))
    unit: str = field(default=UNIT, metadata=describe("what is counted", example="images"))
    containers: tuple[ContainerStatus, ...] = ()
    section: Mapping[str, Any] | None = field(
        default=None, metadata=describe("what the kind of job tells beyond that", example=None)
    )

    @property
    @describe_property("the same as `of`", example=40)
    def images(self) -> int:
        """`of` under the name by which others read it, whatever the unit."""
        return self.of

    def section_lines(self) -> list[str]:
        """What the kind of job tells beyond that, for people."""
        return [f"{name}: {value}" for name, value in self.section_facts().items()]

    def section_facts(self) -> dict[str, Any]:
        """What of it is a word or a number: lists and objects are for the dashboard."""
        return {name: value for name, value in (self.section or {}).items() if not isinstance(value, list | dict)}

    def to_json(self) -> dict[str, Any]:
        """As it travels."""
        return answer_of(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`; the answer of an application master of the version before is understood, too."""
        body = {**BEFORE_KINDS, **body}
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
