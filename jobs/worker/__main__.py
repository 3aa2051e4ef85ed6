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
from jobs.errors import JobError
from jobs.images.rows import Rows
from jobs.images.storage import Hdfs, Storage
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
    begun = time.monotonic()
    settings = WorkerSettings.from_json(json.loads(Path(settings_file).read_text()))
    # Where the application master is, is read while the framework is loaded.
    lookout = Lookout(settings.master, storage, lambda: None, begun)
    node_name, container_id = environment["NODE_NAME"], environment["CONTAINER_ID"]
    master = Master(lookout, settings.token, node_name, container_id, settings.orphan_seconds, begun)
    lookout.in_child = master.close
    try:
        engine = engines(settings.engine)
        rows = _load(engine, settings, node_name, master)
        if rows is None:
            return 1
        loaded = time.monotonic()
        serve = _serve(engine, storage, rows, settings)
        with closing(Children(settings.processes, serve, settings.picture_seconds, master.close)) as children:
            print(_ready(settings, begun, loaded), flush=True)
            Worker(children, master, rows, settings.batch).run()
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


def _load(engine: Engine, settings: WorkerSettings, node_name: str, master: Master) -> Rows | None:
    """Have the engine ready to be shared; None when no worker of this job can load what it needs, which is told."""
    try:
        rows = Rows(node_name, settings.engine, _labels(settings.labels))
        engine.load(Path(settings.weights) if settings.weights else None, settings.batch)
    except ValueError as error:
        _fail(master, str(error), everywhere=True)
        return None
    return rows


def _labels(name: str | None) -> list[str] | None:
    """What the classes are called; ValueError when that is no text."""
    if name is None:
        return None
    try:
        return Path(name).read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8 ({error.reason} at byte {error.start}): save it as UTF-8") from None


def _serve(engine: Engine, storage: Callable[[], Storage], rows: Rows, settings: WorkerSettings) -> Serve:
    """What each process does."""

    def serve(parent: Connection, pulse: Pulse) -> None:
        cv2.setNumThreads(settings.threads)
        try:
            opened = storage()
        except BaseException as error:  # the client panics beside all Exceptions
            parent.send(Broken.by(error, "HDFS cannot be opened: ", blameless=True))
            raise
        Looker(engine, opened, rows, settings.batch, pulse).serve(parent)

    return serve


def _ready(settings: WorkerSettings, begun: float, loaded: float) -> str:
    """How long it took since this process was started, and for what."""
    now = time.monotonic()
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return (
        f"ready after {age:.1f} s: libraries {age - (now - begun):.1f}, {settings.engine} {loaded - begun:.1f}, "
        f"{settings.processes} processes {now - loaded:.2f}"
    )


def _fail(master: Master, reason: str, everywhere: bool) -> int:
    """Say why this worker ends, as long as somebody may hear it."""
    print(reason, file=sys.stderr, flush=True)
    try:
        while True:
            now = time.monotonic()
            if master.reached(now):
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
