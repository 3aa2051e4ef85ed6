"""What all workers of a job are told: written by the application master, read in the containers."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.application.job_spec import Settings
from jobs.application.options import option
from jobs.engines import ENGINES


@dataclass(frozen=True, kw_only=True)
class InferenceOptions(Settings):
    """What users may say of the network and of how images go through it.

    weights, labels   files laid beside the worker, None for seeded weights and numbered classes
    picture_seconds   a process that needs longer for an image, or for a batch in the network, has hung
    """

    engine: str = option("mxnet_alexnet", help=f"One of {', '.join(sorted(ENGINES))}.")
    batch: int = option(32, help="Pictures per inference.", least=1, most=1024)
    weights: str | None = option(
        None, help="Of the network, see `nodewise job train`  [default: seeded].", is_file=True
    )
    labels: str | None = option(None, help="One class a line.", is_file=True)
    picture_seconds: float = option(60.0, help="A picture that takes longer is given up.", least=1)


@dataclass(frozen=True, kw_only=True)
class WorkerSettings(InferenceOptions):
    """What all workers of a job are told; a worker's node and container stand in its environment.

    master            the file in HDFS that says where the application master is now: {"address": "http://host:port"}
    token             what the application master wants to hear
    processes         that read, decode and infer, each with `threads` threads
    orphan_seconds    a worker that hears nothing of an application master for so long ends
    """

    job_id: str
    master: str
    token: str
    processes: int
    threads: int
    orphan_seconds: float = 60.0
