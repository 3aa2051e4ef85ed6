"""`python -m jobs.worker worker.json`: started by the application master in a container on a node."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cv2

from jobs.engines import create
from jobs.settings import WorkerSettings
from jobs.worker.master import Master
from jobs.worker.storage import Storage
from jobs.worker.worker import Worker


def main(settings_file: str) -> None:
    """Work through the share, or tell the application master why not and exit 1."""
    settings = WorkerSettings.from_json(json.loads(Path(settings_file).read_text()))
    master = Master(settings.master, settings.token)
    cv2.setNumThreads(settings.threads)
    try:
        labels = Path(settings.labels).read_text().splitlines() if settings.labels else None
        engine = create(settings.engine)
        engine.load(Path(settings.weights) if settings.weights else None, settings.batch)
        Worker(settings, engine, Storage(), labels, master.progress).run()
    except Exception as error:
        master.failed(settings.node_name, f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0])
        raise


if __name__ == "__main__":
    main(sys.argv[1])
