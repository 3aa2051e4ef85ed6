"""What a job that classifies images is told, beyond what every job is."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.application.job_spec import Settings


@dataclass(frozen=True)
class ClassifySettings(Settings):
    """Paths of HDFS have no scheme; `worker_python` is a path on the nodes.

    environment       an archive in HDFS with the worker's Python, None for `worker_python` on the node
    lease_seconds     a worker that is silent for so long loses what it holds
    picture_seconds   a picture that takes longer has hung its process
    steal             whether a node that has finished its part takes of others'
    fallback          the policy where the capability cannot be had, None to refuse
    weights, labels   names of files laid beside the worker, None for seeded weights and numbered classes
    """

    input: str
    output: str
    engine: str
    policy: str
    capability: str
    worker_python: str
    environment: str | None = None
    batch: int = 32
    memory_mb: int = 2048
    vcores: int = 1
    lease_seconds: float = 10.0
    picture_seconds: float = 60.0
    steal: bool = True
    fallback: str | None = None
    weights: str | None = None
    labels: str | None = None
