"""Run in the worker's environment: the framework alone on this machine, from memory or from HDFS, without YARN.

`python -m bench.inference.plain ENGINE WEIGHTS BATCH PROCESSES FOLDER memory|hdfs CPUS` prints JSON; "-" is no WEIGHTS.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing.queues import Queue
from pathlib import Path

from hdfs_native import Client

from jobs.engines.loading import Loaded, load
from jobs.engines.network import choose


def main(engine_name: str, weights: str, batch: str, processes: str, folder: str, source: str, cpus: str) -> None:
    """Images per second of all processes together, from a common start to the end of the last one."""
    os.sched_setaffinity(0, map(int, cpus.split(",")))
    loaded = load(choose(engine_name, None, None if weights == "-" else Path(weights)), int(batch))
    fork = multiprocessing.get_context("fork")
    ready, ended, go = fork.Queue(), fork.Queue(), fork.Event()
    count = int(processes)
    children = [
        fork.Process(target=_child, args=(loaded, int(batch), folder, source, (at, count), ready, go, ended))
        for at in range(count)
    ]
    for child in children:
        child.start()
    for _ in children:
        ready.get()
    started = time.monotonic()
    go.set()
    images = sum(ended.get() for _ in children)
    seconds = time.monotonic() - started
    for child in children:
        child.join()
    print(json.dumps({"images": images, "seconds": seconds, "images_per_second": images / seconds}))


def _child(
    loaded: Loaded,
    batch: int,
    folder: str,
    source: str,
    turn: tuple[int, int],
    ready: Queue[int],
    go: multiprocessing.synchronize.Event,
    ended: Queue[int],
) -> None:
    client = Client()
    paths = sorted(status.path for status in client.list_status(folder))[turn[0] :: turn[1]]
    held = {path: _read(client, path) for path in paths} if source == "memory" else {}
    ready.put(1)
    go.wait()
    for group in _groups(paths, batch):
        contents = [held[path] if held else _read(client, path) for path in group]
        loaded.probabilities(loaded.images(contents))
    ended.put(len(paths))


def _read(client: Client, path: str) -> bytes:
    with client.read(path) as stream:
        content: bytes = stream.read()
        return content


def _groups(paths: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for first in range(0, len(paths), size):
        yield paths[first : first + size]


if __name__ == "__main__":
    main(*sys.argv[1:])
