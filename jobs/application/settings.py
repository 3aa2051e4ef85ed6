"""What a job is told: written by `submit`, read by the application master and by the workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from jobs.engines.network import Network


class Settings:
    """Shared by both: to and from the JSON file that lies beside the running program."""

    def to_bytes(self) -> bytes:
        """The file's content."""
        record: Any = self
        return json.dumps(asdict(record), indent=1).encode()

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_bytes`, from the decoded object."""
        record: Any = cls
        built: Self = record(**{f.name: body[f.name] for f in fields(record)})
        return built


class NetworkSettings(Settings):
    """The part that says what looks at pictures: `engine`, `model`, and names of files laid beside the worker.

    None for a file that the network does not have: seeded weights, the usual preparation, numbered classes.
    """

    engine: str
    model: str
    graph: str | None
    weights: str | None
    preparation: str | None
    labels: str | None

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all of them."""
        return tuple(name for name in (self.graph, self.weights, self.preparation, self.labels) if name)

    @property
    def network(self) -> Network:
        """As an engine takes it, beside these files."""
        files = {name: getattr(self, name) for name in ("graph", "weights", "preparation", "labels")}
        return Network(self.engine, self.model, **{name: Path(file) for name, file in files.items() if file})


@dataclass(frozen=True)
class JobSettings(NetworkSettings):
    """One job. Paths of HDFS have no scheme; `conf_dir`, `jars` and the pythons are paths on the nodes.

    token             what workers tell the application master, and it them
    environment       an archive in HDFS with the worker's Python, None for `worker_python` on the node
    container_wait    seconds that a node may take to give its container, and its worker to begin, before its part
                      goes to others; the job ends when no node is left that took less
    lease_seconds     a worker that is silent for so long loses what it holds
    picture_seconds   a picture that takes longer has hung its process
    steal             whether a node that has finished its part takes of others'
    fallback          the policy where the capability cannot be had, None to refuse
    failures          so many of them leave a node out
    attempts          at being the application master
    row_bytes         about the most bytes of a row
    """

    job_id: str
    input: str
    output: str
    staging: str
    engine: str
    policy: str
    capability: str
    info_url: str
    conf_dir: str
    jars: str
    user: str
    worker_python: str
    token: str
    environment: str | None = None
    batch: int = 32
    memory_mb: int = 2048
    vcores: int = 1
    container_wait: float = 60.0
    lease_seconds: float = 10.0
    picture_seconds: float = 60.0
    steal: bool = True
    fallback: str | None = None
    failures: int = 3
    attempts: int = 2
    weights: str | None = None
    labels: str | None = None
    model: str = "alexnet"
    graph: str | None = None
    preparation: str | None = None
    row_bytes: int = 4096


@dataclass(frozen=True)
class WorkerSettings(NetworkSettings):
    """What all workers of a job are told; a worker's node and container stand in its environment.

    master            the file in HDFS that says where the application master is now: {"address": "http://host:port"}
    token             what the application master wants to hear
    processes         that read, decode and infer, each with `threads` threads
    picture_seconds   a process that needs longer for a picture, or for a batch in the network, has hung
    orphan_seconds    a worker that hears nothing of an application master for so long ends
    """

    job_id: str
    master: str
    token: str
    engine: str
    batch: int
    processes: int
    threads: int
    weights: str | None
    labels: str | None
    picture_seconds: float
    orphan_seconds: float = 60.0
    model: str = "alexnet"
    graph: str | None = None
    preparation: str | None = None
