"""One way to list, measured in a process of its own: python -m bench.listing.ways WAY CONF_DIR JARS USER FOLDER

Prints a JSON object of figures in base units.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hadoop.client.blocks import list_files
from hadoop.client.disk_cache import take_current
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, java, start

Found = dict[str, float]


def bulk(filesystem: FileSystem, folder: str) -> Found:
    """Ours, twice: the first time with a JVM that has just started."""
    used = time.process_time()
    cold, files = time_call(lambda: sum(1 for _ in list_files(filesystem, folder)))
    used = time.process_time() - used
    warm, _ = time_call(lambda: sum(1 for _ in list_files(filesystem, folder)))
    return {"files": files, "cold_seconds": cold, "cold_cpu_seconds": used, "warm_seconds": warm, **memory("listing")}


def snapshot(filesystem: FileSystem, folder: str) -> Found:
    """Ours, kept on disk, then asked again with nothing changed and with one new file."""
    with tempfile.TemporaryDirectory() as kept:
        first, _ = time_call(lambda: take_current(filesystem, folder, Path(kept)))
        again, unchanged = time_call(lambda: take_current(filesystem, folder, Path(kept)))
        more = f"{folder}/000/one more"
        filesystem.write(more, b"x")
        try:
            one_more, changed = time_call(lambda: take_current(filesystem, folder, Path(kept)))
        finally:
            filesystem.delete(more)
    return {
        "snapshot_first_seconds": first,
        "snapshot_again_seconds": again,
        "snapshot_again_folders": unchanged.listed_again,
        "snapshot_one_more_seconds": one_more,
        "snapshot_one_more_folders": changed.listed_again,
        **memory("snapshot"),
    }


def iterator(filesystem: FileSystem, folder: str) -> Found:
    """Hadoop's iterator of located files, each field fetched by itself, for a sample: the first folder, warmed up."""

    def listed() -> int:
        pages, files = filesystem.java.listFiles(filesystem.path(f"{folder}/000"), True), 0
        while pages.hasNext():
            status, files = pages.next(), files + 1
            _ = (str(status.getPath().toUri().getPath()), int(status.getLen()))
            for at in status.getBlockLocations():
                _ = (int(at.getOffset()), int(at.getLength()), tuple(str(host) for host in at.getHosts()))
        return files

    listed()
    seconds, files = time_call(listed)
    return {"iterator_sample_files": files, "iterator_sample_seconds": seconds}


def plain(filesystem: FileSystem, folder: str) -> Found:
    """Names and sizes alone, as `hdfs dfs -ls -R` asks for them, and nothing done with them."""

    def listed() -> int:
        return sum(len(filesystem.java.listStatus(one.getPath())) for one in filesystem.java.listStatus(path))

    path = filesystem.path(folder)
    listed()
    seconds, _ = time_call(listed)
    return {"plain_seconds": seconds}


WAYS: dict[str, Callable[[FileSystem, str], Found]] = {
    "bulk": bulk,
    "snapshot": snapshot,
    "iterator": iterator,
    "plain": plain,
}


def time_call(action: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that an action took, and what it gave."""
    begun = time.monotonic()
    given = action()
    return time.monotonic() - begun, given


def memory(part: str) -> Found:
    """The most this process ever held, its JVM included, and what the JVM's heap needs after a collection."""
    runtime = java("java.lang.Runtime").getRuntime()
    committed = int(runtime.totalMemory())
    runtime.gc()
    return {
        f"{part}_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0,
        f"{part}_heap_committed_bytes": committed,
        f"{part}_heap_bytes": int(runtime.totalMemory() - runtime.freeMemory()),
    }


if __name__ == "__main__":
    start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
    print(json.dumps(WAYS[sys.argv[4]](FileSystem(), sys.argv[5])))
