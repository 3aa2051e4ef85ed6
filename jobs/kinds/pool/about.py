"""What is told of a pool, by its command and by the service: what it was told itself, and what each worker does."""

from __future__ import annotations

from typing import Any

from jobs.application.status import NodeStatus
from jobs.kinds.pool.client import Pool
from jobs.kinds.pool.wishes import READY


def tell_settings(name: str, pool: Pool) -> dict[str, Any]:
    """What it is for and what it has loaded."""
    settings = pool.settings
    job, graph = settings.job, settings.job.get("graph")
    return {
        "name": name,
        "job_id": pool.application_id,
        "kind": settings.of,
        "engine": job.get("engine"),
        "model": job.get("model"),
        "model_file": graph and graph.removeprefix("graph-"),
        "batch": job.get("batch"),
        "vcores": job.get("vcores"),
        "queue": pool.spec.queue,
        "most_nodes": settings.most_nodes,
        "best_by": settings.best_by,
        "most_jobs": settings.most_jobs,
        "idle_seconds": settings.idle_seconds,
        "idle": settings.idle_text,
    }


def tell_worker(node: NodeStatus) -> str:
    """What the worker of a node does, in a word; to YARN's application one works as soon as its container runs."""
    if node.said == READY:
        return "working" if node.running else "ready"
    return {"working": "loading", "starting": "asked for", "waiting": "asked for"}.get(node.state, node.state)
