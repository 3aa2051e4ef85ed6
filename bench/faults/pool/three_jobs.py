"""Three jobs at once for a pool, others after them, and single pictures: what faults hit there, and what must be right.

A fault may come while a job is planned, done or stored: for each that has ended the pool gets another one, until all
faults are done.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from bench.faults.pool.asker import Asker
from bench.faults.pool.givers import AT_ONCE, Givers
from bench.faults.pool.standing import LEASE_SECONDS, Pooled
from bench.faults.trials import JOB_SECONDS, Outcome, count_done, find_end, look_at_rest, note_report, read_rows
from bench.info.errors import BenchError
from bench.stage import until, words_of_job
from jobs.kinds.pool.client import Pools
from jobs.kinds.pool.wishes import Picture

NAME = "bench"
UP = ("--engine", "onnx", "--batch", "8", "--idle", "0", "--lease-seconds", str(LEASE_SECONDS), "--attempts", "4")
PATIENCE = ("--wait-for-pool", "300")
"""A job that is given while the pool has no worker, or no master, waits."""


class ThreeJobs:
    """One pool from its beginning to its end; `images` are those of each job, whose rows are below `output`."""

    def __init__(self, place: Pooled, output: str, images: int) -> None:
        self._place = place
        self._output = output
        self._images = images
        self._id = ""
        self._givers = Givers(lambda path: place.submit(*words_of_job(path, "--pool", NAME, *PATIENCE)), output)
        self._asker = Asker(self._ask_in_turn(), {path: place.classes[path] for path in place.contents})

    def begin(self) -> tuple[subprocess.Popen[str] | None, str]:
        """Bring the pool up, give it three jobs, and begin to ask."""
        self._place.hdfs().delete(self._output, recursive=True)
        self._id = json.loads(self._place.nodewise("pool", "up", NAME, *UP, "--wait", "--json"))["job_id"]
        self._asker.start()
        self._givers.start()
        return None, self._id

    def count_done(self) -> float | None:
        """What its application master says of all jobs."""
        return count_done(self._place, self._id)

    def share(self, done: float, faults: int) -> float:  # noqa: ARG002 there is always more to do
        """As much as three jobs have."""
        return AT_ONCE * self._images

    def has_ended(self) -> bool:
        """Whether nobody gives it jobs any more, as these fail, or it has ended itself."""
        return not self._givers.is_at_work or find_end(self._place, self._id) is not None

    def finish(self) -> None:
        """Wait for the jobs that it has, and take it down."""
        self._givers.stop()
        try:
            until(lambda: not self._givers.is_at_work, JOB_SECONDS, "the pool's jobs have ended")
        except BenchError as error:
            raise BenchError("; ".join([str(error), *self._givers.wrong])) from error
        self._asker.stop()
        self._place.nodewise("pool", "down", NAME)
        until(lambda: find_end(self._place, self._id), JOB_SECONDS, f"the pool {self._id} ends")

    def leave(self) -> None:
        """End the commands that have given it jobs."""
        self._givers.leave()
        self._asker.stop()

    def look(self, outcome: Outcome) -> None:
        """Each job has every picture once, with its class, and each single picture had its own."""
        outcome.state, outcome.jobs = find_end(self._place, self._id) or "", len(self._givers.jobs)
        outcome.wrong += self._givers.wrong
        for output in sorted(self._givers.jobs):
            if self._place.hdfs().status(output, strict=False) is None:
                outcome.wrong.append(f"{output} is not there")
                continue
            rows = read_rows(self._place, output, "path", "class_id", "error")
            outcome.rows += len(rows)
            outcome.wrong += [f"{output}: {flaw}" for flaw in find_flaws(rows, self._place.classes)]
            note_report(self._place, output, outcome)
        outcome.answered, outcome.refused = self._asker.answered, dict(self._asker.refused)
        outcome.wrong += self._asker.wrong
        outcome.wrong += [] if outcome.answered else ["no single picture was answered"]
        look_at_rest(self._place, outcome, self._id)

    def _ask_in_turn(self) -> Callable[[str], Mapping[str, Any]]:
        """How the pool is asked about a picture: by its path the one time, by its bytes the other."""
        cluster, contents, turns = self._place.stage.cluster, self._place.contents, count()
        pools = Pools(cluster.conf_dir, cluster.user)

        def ask(path: str) -> Mapping[str, Any]:
            asked = pools.of(self._id)
            if next(turns) % 2:
                return asked.infer(Picture(name=path), contents[path])
            return asked.infer(Picture(path=path))

        return ask


def find_flaws(rows: Sequence[Mapping[str, Any]], classes: Mapping[str, int]) -> list[str]:
    """What is wrong with the rows of a job whose pictures have these classes, a sentence for each kind of flaw."""
    times = Counter(row["path"] for row in rows)
    false = {row["path"] for row in rows if row["error"] or row["class_id"] != classes.get(row["path"])}
    flaws = {
        "have no row": sorted(classes.keys() - times.keys()),
        "have more than one row": sorted(path for path, number in times.items() if number > 1),
        "have a row that is not theirs": sorted(false),
    }
    return [f"{len(paths)} pictures {flaw}, such as {paths[0]}" for flaw, paths in flaws.items() if paths]
