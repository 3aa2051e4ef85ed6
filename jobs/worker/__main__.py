"""`python -m jobs.worker worker.json`: started by the application master in a container on a node."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import cv2

from jobs.engines import Engine, create
from jobs.engines.loading import Loaded, load
from jobs.errors import JobError
from jobs.images.rows import Rows, rows_of
from jobs.images.storage import Hdfs, Storage
from jobs.own_age import own_age
from jobs.worker.child import Broken, Looker, Pulse
from jobs.worker.children import Children, Serve
from jobs.worker.lookout import Lookout
from jobs.worker.master import Away, Master, NotWanted
from jobs.worker.settings import WorkerSettings
from jobs.worker.worker import Worker

RETRY_SECONDS = 0.1


def main(
    settings_file: str,
    environment: Mapping[str, str],
    storage: Callable[[], Storage] = Hdfs,
    engines: Callable[[str], Engine] = create,
) -> int:
    """Work until the job needs no more, exit 0; or tell the application master why not, exit 1."""
    begun, libraries = time.monotonic(), own_age()
    settings = WorkerSettings.from_json(json.loads(Path(settings_file).read_text()))
    # Where the application master is, is read while the framework is loaded.
    lookout = Lookout(settings.master, storage, lambda: None, begun)
    node_name, container_id = environment["NODE_NAME"], environment["CONTAINER_ID"]
    master = Master(lookout, settings.token, node_name, container_id, settings.orphan_seconds, begun)
    lookout.in_child = master.close
    try:
        loaded = _load(settings, master, engines)
        if loaded is None:
            return 1
        rows = _rows(loaded, node_name, settings)
        ready = time.monotonic()
        serve = _serve(loaded, storage, rows, settings)
        with closing(Children(settings.processes, serve, settings.picture_seconds, master.close)) as children:
            network = ready - begun
            print(_ready_line(settings, libraries, network, time.monotonic() - ready), flush=True)
            Worker(children, master, rows, settings.batch, {"libraries": libraries, "network": network}).run()
        return 0
    except NotWanted as ended:
        print(ended, flush=True)
        return 0
    except JobError as error:
        return _fail(master, str(error), everywhere=False)
    except Exception as error:
        _fail(master, f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0], everywhere=False)
        raise
    finally:
        lookout.close()


def _load(settings: WorkerSettings, master: Master, engines: Callable[[str], Engine]) -> Loaded | None:
    """Have the engine ready to be shared; None when no worker of this job can load what it needs, which is told."""
    try:
        loaded = load(settings.network, settings.batch, engines)
    except ValueError as error:
        _fail(master, str(error), everywhere=True)
        return None
    for note in loaded.description.notes:
        print(f"{settings.network.program}: {note}", flush=True)
    return loaded


def _rows(loaded: Loaded, node_name: str, settings: WorkerSettings) -> Rows:
    program, most = settings.network.program, settings.largest_row
    return rows_of(node_name, program, loaded.labels, loaded.has_softmax, loaded.tensors, most)


def _serve(loaded: Loaded, storage: Callable[[], Storage], rows: Rows, settings: WorkerSettings) -> Serve:
    """What each process does."""

    def serve(parent: Connection, pulse: Pulse) -> None:
        cv2.setNumThreads(settings.threads)
        try:
            opened = storage()
        except BaseException as error:  # the client panics beside all Exceptions
            parent.send(Broken.by(error, "HDFS cannot be opened: ", blameless=True))
            raise
        Looker(loaded, opened, rows, settings.batch, pulse).serve(parent)

    return serve


def _ready_line(settings: WorkerSettings, libraries: float, network: float, processes: float) -> str:
    """How many seconds it took since this process was started, and for what."""
    return (
        f"ready after {libraries + network + processes:.1f} s: libraries {libraries:.1f}, "
        f"{settings.network.program} {network:.1f}, {settings.processes} processes {processes:.2f}"
    )


def _fail(master: Master, reason: str, everywhere: bool) -> int:
    """Say why this worker ends, as long as somebody may hear it."""
    print(reason, file=sys.stderr, flush=True)
    try:
        while True:
            now = time.monotonic()
            if master.is_reached(now):
                try:
                    master.call("/failed", {"reason": reason, "everywhere": everywhere}, now)
                    return 1
                except Away:
                    continue
            time.sleep(RETRY_SECONDS)
    except (NotWanted, JobError):
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], os.environ))
