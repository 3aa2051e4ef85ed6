"""Run on a node by the worker's Python: the plain loop over an equal part of a folder, without anything of nodewise.

`slice.py CODE FOLDER ENGINE BATCH COUNT SECONDS OUTPUT`: CODE is a zip in HDFS with the engines. Of COUNT equal parts
it does the one that Hadoop's distributed shell gave this container a number for, and writes what it did into the folder
OUTPUT; with SECONDS other than 0 it stops after so many, and with "-" for OUTPUT it prints. Needs only the libraries.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def main(code: str, folder: str, engine_name: str, batch: str, count: str, seconds: str, output: str) -> None:
    """Load the engine, then read, decode and infer; the clock begins with the first read."""
    number = int(os.environ.get("YARN_SHELL_ID", "1"))
    if number > int(count):
        return  # the shell asks for one container too many at times
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from hdfs_native import Client

    client = Client()
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / "code.zip"
        archive.write_bytes(_read(client, code))
        sys.path.insert(0, str(archive))
        done = _classify(client, folder, engine_name, int(batch), (number - 1, int(count)), float(seconds))
    told = json.dumps({"node": os.environ.get("NM_HOST", socket.gethostname()), **done})
    if output == "-":
        print(told)
    else:
        with client.create(f"{output}/{number}.json") as stream:
            stream.write(told.encode())


def _classify(
    client: Any, folder: str, engine_name: str, batch: int, part: tuple[int, int], seconds: float
) -> dict[str, Any]:
    import numpy as np

    from jobs.engines.loading import load
    from jobs.engines.network import choose

    loaded = load(choose(engine_name, None), batch)
    paths = sorted(status.path for status in client.list_status(folder))
    mine = paths[len(paths) * part[0] // part[1] : len(paths) * (part[0] + 1) // part[1]]
    rows: list[tuple[str, int]] = []
    started = time.time()
    for at in range(0, len(mine), batch):
        group = mine[at : at + batch]
        images = loaded.images([_read(client, path) for path in group])
        rows += [(path, int(np.argmax(row))) for path, row in zip(group, loaded.probabilities(images), strict=True)]
        if seconds and time.time() - started > seconds:
            break
    return {"started": started, "ended": time.time(), "images": len(rows), "paths": len({path for path, _ in rows})}


def _read(client: Any, path: str) -> bytes:
    with client.read(path) as stream:
        content: bytes = stream.read()
        return content


if __name__ == "__main__":
    main(*sys.argv[1:])
