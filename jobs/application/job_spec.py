"""What a job is told, whatever its kind: `submit` writes it, the application master reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self


class Settings:
    """To and from the JSON file that lies beside a running program; what the file lacks has its default."""

    def to_bytes(self) -> bytes:
        """The file's content."""
        record: Any = self
        return json.dumps(asdict(record), indent=1).encode()

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_bytes`, from the decoded object."""
        record: Any = cls
        built: Self = record(**{f.name: body[f.name] for f in fields(record) if f.name in body})
        return built


@dataclass(frozen=True)
class JobSpec(Settings):
    """One job. Paths of HDFS have no scheme; `conf_dir` and `jars` are paths on the nodes.

    kind              a name in jobs.kinds.KINDS
    settings          what that kind is told, as JSON
    token             what containers tell the application master, and it them
    container_wait    seconds that a node may take to give its container, and its program to begin, before it is given
                      up for the time being; the job ends when no node is left that took less
    failures          so many of them leave a node out
    attempts          at being the application master
    """

    kind: str
    job_id: str
    staging: str
    info_url: str
    conf_dir: str
    jars: str
    user: str
    token: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    container_wait: float = 60.0
    failures: int = 3
    attempts: int = 2

    @property
    def owners_folder(self) -> str:
        """The folder in HDFS that holds the staging folders of one owner's jobs, and what is kept of them."""
        return self.staging.rpartition("/")[0]
