"""Reads pictures as a worker does, in the worker's environment: python -m bench.reading.read FILE FIRST STEP

FILE has the pictures as `bench.reading.where` found them; of the chunks into which they are cut, every STEPth is read,
beginning with the FIRST. Says `ready`, begins when it gets a line, and prints a JSON object of what it did.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

from jobs.images.storage import Hdfs
from jobs.itemwork.messages import Item
from jobs.worker.reading import Fetched, Reader, Unreadable

CHUNK = 32
AHEAD = 2
"""Chunks that are being read while another one is looked at."""


def read(reader: Reader, chunks: Iterable[Sequence[Item]]) -> tuple[int, int]:
    """How many pictures came, and their bytes."""
    fetched: deque[Fetched] = deque()
    pictures = size = 0
    for chunk in [*chunks, *[()] * AHEAD]:
        fetched.append(reader.fetch(chunk))
        if len(fetched) > AHEAD:
            count, length = _take(fetched.popleft())
            pictures, size = pictures + count, size + length
    return pictures, size


def _take(fetched: Fetched) -> tuple[int, int]:
    pictures = size = 0
    for one in fetched.items(60):
        if one is None or isinstance(one[1], Unreadable) or len(one[1]) != one[0].length:
            raise SystemExit(f"cannot be read as stored: {one}"[:500])
        pictures, size = pictures + 1, size + len(one[1])
    return pictures, size


def main() -> None:
    """As the module says."""
    pictures = [Item.from_json(one) for one in json.loads(Path(sys.argv[1]).read_text())]
    chunks = [pictures[at : at + CHUNK] for at in range(0, len(pictures), CHUNK)][int(sys.argv[2]) :: int(sys.argv[3])]
    reader = Reader(Hdfs())
    print("ready", flush=True)
    sys.stdin.readline()
    used = time.process_time()
    count, size = read(reader, chunks)
    print(json.dumps({"pictures": count, "bytes": size, "cpu_seconds": time.process_time() - used}), flush=True)


if __name__ == "__main__":
    main()
