"""What a worker and its application master say to each other, over HTTP in JSON.

Every call is a POST with `Authorization: Bearer TOKEN`, and names the node and the container it comes from:

    /take       {"node_name", "container_id", "holding": [lease, ...], "patience": seconds}
                -> {"lease": {...}} | {"wait": seconds} | {"done": true}: a worker that has nothing else to do has some
                patience, and an application master that knows of work later may answer so much later
    /commit     ?node_name=&container_id=&lease=&seconds=&bytes_read=, the body being rows (Arrow stream)
                -> {"answer", "why"}
    /heartbeat  {"node_name", "container_id"} -> {"holding": [the leases that still count]}; the first one also has
                "age", the seconds that the worker's process has run, and of these "libraries" and "network"
    /working    {"node_name", "container_id", "lease", "group"} -> 204: it begins now with a group that may kill it;
                `group` is [] when it is done with the one that it announced before
    /died       {"node_name", "container_id", "lease", "group", "reason"}
                -> {"groups": [...], "convicted": {name: reason}}: how to go on with these items
    /failed     {"node_name", "container_id", "reason", "everywhere"} -> 204: this worker ends; `everywhere` if every
                other one would have to, too

A `group` is a list of names of items. `answer` is accepted, repeated, superseded, expired or unknown, and `why` says
so in words; only accepted and repeated rows count. The same call may be made again when its answer was lost.

    400  the call is wrong, and stays so if it is made again; 401 the token is; 413 the body is too large.
         Every refusal says {"error": why}
    410  this container is not wanted any more: it ends. Its leases are given to others
    503  not now (there is no plan yet, or HDFS is away): again soon. A worker asks again after its own short pause,
         which `Retry-After` does not lengthen
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Item:
    """`name` stands in its row; the bytes are `length` from `offset` on of a file in HDFS, or all of it (None).

    An item that brings its `content` along is in no file.
    """

    name: str
    path: str
    offset: int | None
    length: int
    content: bytes | None = field(default=None, repr=False)

    def to_json(self) -> list[Any]:
        """A short row, because there are many; a file that is one item has its path as its name."""
        if self.content is not None:
            return [self.path, self.length, self.offset, self.name, b64encode(self.content).decode()]
        if self.offset is None and self.name == self.path:
            return [self.path, self.length]
        return [self.path, self.length, self.offset, self.name]

    @classmethod
    def from_json(cls, body: Sequence[Any]) -> Self:
        """Inverse of `to_json`."""
        if len(body) == 2:
            return cls(body[0], body[0], None, body[1])
        path, length, offset, name, *content = body
        return cls(name, path, offset, length, b64decode(content[0]) if content else None)


@dataclass(frozen=True, slots=True)
class Group:
    """Items done together; `suspect` when one of them may have ended a process: it is announced, and done apart."""

    items: tuple[Item, ...]
    suspect: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it travels."""
        return {"items": [item.to_json() for item in self.items], "suspect": self.suspect}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        return cls(tuple(Item.from_json(one) for one in body["items"]), bool(body["suspect"]))


@dataclass(frozen=True, slots=True)
class Task:
    """One lease as a worker sees it; `lease` names it and fences it: attempt and token, as in 1-17.

    Items in `convicted` stand in no group: each gets a row with the reason given there. There may be no group left.
    Somebody waits for the rows of an `urgent` lease: it is done before all others.
    """

    lease: str
    groups: tuple[Group, ...]
    convicted: Mapping[str, str] = field(default_factory=dict)
    urgent: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it travels."""
        groups = [group.to_json() for group in self.groups]
        return {
            "lease": self.lease,
            "groups": groups,
            "convicted": dict(self.convicted),
            **({"urgent": True} if self.urgent else {}),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        groups = tuple(Group.from_json(one) for one in body["groups"])
        return cls(str(body["lease"]), groups, dict(body.get("convicted", {})), bool(body.get("urgent")))
