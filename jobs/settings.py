"""What a job is told: written by `submit`, read by the application master and by the workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self


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


@dataclass(frozen=True)
class JobSettings(Settings):
    """One job. Paths of HDFS have no scheme; `conf_dir`, `jars` and the pythons are paths on the nodes.

    `container_wait` is how many seconds a plan waits for its
    containers, `worker_silence` how many seconds a worker may say nothing. `weights` and `labels` are names of
    files laid beside the worker, None for seeded weights and numbered classes.
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
    batch: int = 32
    memory_mb: int = 1152
    vcores: int = 1
    container_wait: float = 60.0
    worker_silence: float = 120.0
    weights: str | None = None
    labels: str | None = None


@dataclass(frozen=True)
class WorkerSettings(Settings):
    """One container's share: `images` are paths in HDFS in reading order, `results` the Parquet file to write.

    `master` is the application master's address (http://host:port) and `token` what it wants to hear.
    """

    node_name: str
    master: str
    token: str
    engine: str
    batch: int
    threads: int
    weights: str | None
    labels: str | None
    results: str
    images: list[str]
