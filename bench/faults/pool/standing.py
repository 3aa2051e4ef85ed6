"""A local cluster on which pools stand, as a place for faults: what is right of each picture is known beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.faults.local import NODES, SPEEDS, Local, home_of
from bench.faults.trials import read_rows
from bench.info.errors import BenchError
from bench.stage import stage, words_of_job
from jobs.itemwork.coordinator import SILENCES

BEFORE = "/bench/before"
LEASE_SECONDS = 5
FROZEN_SECONDS = SILENCES * LEASE_SECONDS + 8.0
"""A worker that says nothing for so long counts as hung, and is ended."""
SINGLE = 41
"""So many pictures are asked about one by one, in turn by their paths in HDFS and by their bytes: each in both ways,
as the number is odd."""


@dataclass
class Pooled(Local):
    """A stage whose jobs are given to a pool.

    `classes` are the right ones of all pictures by their paths, `contents` the bytes of those that are asked about.
    """

    name: str = "pool"
    frozen_seconds: float = FROZEN_SECONDS
    classes: Mapping[str, int] = field(default_factory=dict)
    contents: Mapping[str, bytes] = field(default_factory=dict)

    def back_up(self) -> None:
        """No fault here brings an older database back."""

    def learn(self, pictures: int) -> None:
        """Have a job with workers of its own, which nothing hits, tell the classes; BenchError when one is missing."""
        self.hdfs().delete(BEFORE, recursive=True)
        self.nodewise("job", "submit", *words_of_job(BEFORE), "--wait", "--json")
        rows = read_rows(self, BEFORE, "path", "class_id", "error")
        self.classes = {row["path"]: row["class_id"] for row in rows if not row["error"]}
        if not len(rows) == len(self.classes) == pictures:
            raise BenchError(f"a job that nothing hits has {len(rows)} rows of {len(self.classes)} right pictures")
        paths = sorted(self.classes)
        single = min(SINGLE, len(paths) - 1 + len(paths) % 2)
        self.contents = {path: self._read(path) for path in (paths[at * len(paths) // single] for at in range(single))}

    def _read(self, path: str) -> bytes:
        with self.hdfs().read(path) as stream:
            return bytes(stream.read())


@contextmanager
def pool(home: Path | None, pictures: int, nodes: int = NODES) -> Iterator[Pooled]:
    """Such a cluster; a given home is used again."""
    with ExitStack() as stack:
        where = stack.enter_context(home_of(home))
        made = stack.enter_context(stage(where, pictures, nodes=nodes))
        made.judge(SPEEDS[-nodes:])
        place = Pooled(made)
        place.learn(pictures)
        yield place
