"""A container's work: batch after batch, read, decode, infer, and one Parquet file at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jobs.engines import Engine
from jobs.settings import WorkerSettings
from jobs.worker.images import decode, prepare
from jobs.worker.master import Progress
from jobs.worker.results import Results
from jobs.worker.storage import Storage


class Worker:
    """One node's share of a job. `tell` hears of every batch; the engine is loaded already."""

    def __init__(
        self,
        settings: WorkerSettings,
        engine: Engine,
        storage: Storage,
        labels: list[str] | None,
        tell: Callable[[Progress], None],
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._storage = storage
        self._tell = tell
        self._results = Results(settings.node_name, settings.engine, labels)
        self._bytes_read = 0

    def run(self) -> None:
        """All batches, then the result file, then the last word to the application master.

        The clock runs from the first read to the stored result: what the node needed for its share, without the
        start of the process, which costs the same however much it was given.
        """
        started = time.monotonic()
        for batch in _batches(self._settings.images, self._settings.batch):
            self._step(batch)
            self._tell(self._progress(started))
        self._storage.write(self._settings.results, self._results.to_parquet())
        self._tell(self._progress(started, finished=True))

    def _step(self, paths: Sequence[str]) -> None:
        ready: list[tuple[str, np.ndarray]] = []
        for path, content in zip(paths, self._storage.read(paths), strict=True):
            try:
                ready.append((path, self._prepare(content)))
            except (ValueError, MemoryError) as error:
                self._results.add_error(path, str(error) or "needs more memory than the container has")
        if ready:
            probabilities = self._engine.infer(np.stack([pixels for _, pixels in ready]))
            for (path, _), row in zip(ready, probabilities, strict=True):
                self._results.add(path, row)

    def _prepare(self, content: bytes | Exception) -> np.ndarray:
        if isinstance(content, Exception):
            raise ValueError(f"cannot be read from HDFS: {content}") from content
        self._bytes_read += len(content)
        return prepare(decode(content))

    def _progress(self, started: float, finished: bool = False) -> Progress:
        return Progress(
            node_name=self._settings.node_name,
            images=len(self._results.rows),
            errors=self._results.errors,
            bytes_read=self._bytes_read,
            seconds=time.monotonic() - started,
            finished=finished,
        )


def _batches(images: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for first in range(0, len(images), size):
        yield images[first : first + size]
