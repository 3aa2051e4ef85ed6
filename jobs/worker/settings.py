"""What all workers of a job are told: written by the application master, read in the containers."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.application.job_spec import Settings


@dataclass(frozen=True)
class WorkerSettings(Settings):
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
