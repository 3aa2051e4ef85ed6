"""The results of a job: complete and once each, or not there at all."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Sequence

import pyarrow.parquet as pq

from hadoop.filesystem import FileSystem
from jobs import kept
from jobs.decision import Decision
from jobs.errors import JobError
from jobs.report import JobReport, html
from jobs.settings import JobSettings
from locality.types import Plan


class Output:
    """Workers write below the staging folder; `commit` moves all of it to the output path in one step."""

    def __init__(self, filesystem: FileSystem, settings: JobSettings) -> None:
        self._filesystem = filesystem
        self._target = settings.output
        self._work = f"{settings.staging}/output"
        self._owners_folder = settings.staging.rpartition("/")[0]

    def prepare(self, decision: Decision) -> None:
        """Make the folder that the workers write into, with the record of how they got their shares in it.

        The record is also kept where it stays if the job fails.
        """
        content = decision.to_bytes()
        kept.keep(self._filesystem, self._owners_folder, decision.job_id, content)
        self._filesystem.make_folder(self._work)
        self._filesystem.write(f"{self._work}/{kept.NAME}", content)

    def part(self, node_name: str) -> str:
        """The file a node's worker writes."""
        return f"{self._work}/part-{node_name}.parquet"

    def check(self, images: Sequence[str], plan: Plan) -> None:
        """JobError unless every picture has exactly one row."""
        rows: Counter[str] = Counter()
        for node_name, parts in plan.parts.items():
            if parts:
                content = io.BytesIO(self._filesystem.read(self.part(node_name)))
                rows.update(pq.read_table(content, columns=["path"]).column("path").to_pylist())
        wrong = (rows - Counter(images)) + (Counter(images) - rows)
        if wrong:
            example, times = next(iter(wrong.items()))
            raise JobError(
                f"{len(wrong)} pictures do not have exactly one row, for example {example} (off by {times}): "
                "nothing was stored; run the job again and report this"
            )

    def commit(self, report: JobReport) -> None:
        """Add the report and make everything visible at the output path at once."""
        self._filesystem.write(f"{self._work}/report.json", json.dumps(report.to_json(), indent=1).encode())
        self._filesystem.write(f"{self._work}/report.html", html(report).encode())
        self._filesystem.make_folder(self._target.rpartition("/")[0] or "/")
        self._filesystem.rename(self._work, self._target)
