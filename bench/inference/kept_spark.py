"""A session of Spark that is kept: its driver does the jobs that it is told, one after the other."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any, cast

from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.programs import TOLD
from bench.spark import SPARK_PYTHON, environment_of_driver
from hadoop.local.lifecycle import Cluster
from jobs.code_archive import code_zip

END_SECONDS = 60.0


class KeptSpark:
    """Speaks with a driver over its input and output; `begun` is when it was started, in seconds since the epoch.

    Lines of its output that are not answers are ignored. When it ends, or does not answer within `seconds`, BenchError
    tells the last lines of its log.
    """

    def __init__(self, argv: Sequence[str], log: Path, environment: Mapping[str, str], seconds: float) -> None:
        self.begun = time.time()
        self._log, self._seconds = log, seconds
        piped = subprocess.PIPE
        with log.open("wb") as said:
            self._driver = subprocess.Popen(
                argv, stdin=piped, stdout=piped, stderr=said, text=True, cwd=ROOT, env=environment
            )
        self._input, self._output = cast(IO[str], self._driver.stdin), cast(IO[str], self._driver.stdout)
        self._heard: Queue[str | None] = Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def hear(self) -> dict[str, Any]:
        """Its next answer; the first says that it is up."""
        deadline = time.monotonic() + self._seconds
        while True:
            try:
                line = self._heard.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                raise BenchError(f"Spark has not answered in {self._seconds:.0f} s: {self._last_words()}") from None
            if line is None:
                self._heard.put(None)  # whoever asks again hears of it, too
                raise BenchError(f"Spark has ended: {self._last_words()}")
            with suppress(ValueError):
                answer = json.loads(line)
                if isinstance(answer, dict):
                    return answer

    def ask(self, folder: str, slices: int, output: str) -> dict[str, Any]:
        """Have a folder classified in so many partitions, the rows put into a file; what it says of that."""
        try:
            self._input.write(json.dumps({"folder": folder, "slices": slices, "output": output}) + "\n")
            self._input.flush()
        except OSError:
            raise BenchError(f"Spark has ended: {self._last_words()}") from None
        return self.hear()

    def close(self) -> None:
        """End the session, and the driver where it does not."""
        with suppress(OSError):
            self._input.close()
        try:
            self._driver.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._driver.kill()
            self._driver.wait()
        self._listener.join(END_SECONDS)
        if not self._listener.is_alive():  # a JVM that outlives the driver has its output still
            self._output.close()

    def _listen(self) -> None:
        for line in self._output:
            self._heard.put(line)
        self._heard.put(None)

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace").strip()[-TOLD:]


@contextmanager
def keep_spark(cluster: Cluster, settings: Mapping[str, Any], seconds: float) -> Iterator[KeptSpark]:
    """A session with these settings of spark_job, its code aside, until the end of the block; it is up.

    `seconds` are how long its start, and each job, may take.
    """
    with tempfile.TemporaryDirectory(prefix="bench-spark-", ignore_cleanup_errors=True) as directory:
        folder = Path(directory)
        (folder / "code.zip").write_bytes(code_zip())
        file = folder / "settings.json"
        file.write_text(json.dumps({**settings, "code": str(folder / "code.zip")}))
        argv = [str(SPARK_PYTHON), "-m", "bench.inference.spark_job", str(file)]
        kept = KeptSpark(argv, folder / "said", environment_of_driver(cluster), seconds)
        try:
            kept.hear()
            yield kept
        finally:
            kept.close()
