"""What a job that lays an environment out is told, beyond what every job is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobs.application.job_spec import Settings

MEMORY_MB = 64
"""Of a container that only has YARN fetch its files: the least that YARN gives."""


@dataclass(frozen=True, kw_only=True)
class WarmSettings(Settings):
    """`environment` is NAME@VERSION; `parts` are its files in HDFS by their folders, as containers are told of them."""

    environment: str
    nodes: Sequence[str]
    parts: Mapping[str, str]
