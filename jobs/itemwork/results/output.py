"""The results of a job: every item's row once, made from the journal, or not there at all."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError
from hadoop.rest.addresses import namenode_addresses
from hadoop.rest.masters import in_order
from jobs.application.job_spec import JobSpec
from jobs.division import decision_store
from jobs.division.decision import Decision
from jobs.errors import JobError
from jobs.itemwork.results.part_files import ReadRows, write_part_files
from jobs.itemwork.results.tally import Tally
from jobs.reports.pages import html
from jobs.reports.report import JobReport


class Output:
    """Everything is put below the staging folder; `commit` moves it to the output path in one step.

    Each attempt has a folder of its own, as one that was taken for dead may still write.
    """

    def __init__(self, filesystem: FileSystem, spec: JobSpec, target: str, attempt: int) -> None:
        self._filesystem = filesystem
        self._target = target
        self._job_id = spec.job_id
        self._work = f"{spec.staging}/output-{attempt}"
        self._decision = f"{spec.staging}/{decision_store.NAME}"
        self._owners_folder = spec.owners_folder

    def prepare(self, decision: Decision) -> None:
        """Keep the record of how the nodes got their shares, where a later attempt and the results' reader find it.

        It is also kept where it stays if the job fails.
        """
        content = decision.to_bytes()
        decision_store.keep(self._filesystem, self._owners_folder, decision.job_id, content)
        whole = f"{self._decision}.new"
        self._filesystem.write(whole, content)
        self._filesystem.rename(whole, self._decision)

    def decision(self) -> Decision | None:
        """What an earlier attempt decided, if it came so far."""
        if not self._filesystem.exists(self._decision):
            return None
        return Decision.from_bytes(self._filesystem.read(self._decision), self._decision)

    def find_stored(self) -> JobReport | None:
        """The report of this very job, if an earlier attempt ended after its results had been put in place.

        JobError when the output is another's: it was put there after this job had been submitted.
        """
        if not self._filesystem.exists(self._target):
            return None
        where = f"{self._target}/report.json"
        content = self._filesystem.read(where) if self._filesystem.exists(where) else b""
        if _job_of(content) != self._job_id:
            raise JobError(
                f"{self._target} exists already and is not of this job",
                remedy="submit it again with another --output, results are never overwritten",
            )
        return JobReport.from_json(json.loads(content))

    def store(self, read_rows: ReadRows, items: int) -> None:
        """One Parquet file for each node; JobError unless there are as many rows as `items`, each with its own path.

        Only some of the rows are in memory at a time, however many there are.
        """
        self._filesystem.make_folder(self._work)  # one that comes by itself would be as closed as the staging folder
        tally = Tally(items)
        write_part_files(self._filesystem, self._work, read_rows, tally)
        tally.check()

    def commit(self, report: JobReport) -> None:
        """Add the report and make everything visible at the output path at once."""
        self._filesystem.write(f"{self._work}/report.json", json.dumps(report.to_json(), indent=1).encode())
        self._filesystem.write(f"{self._work}/report.html", html(report).encode())
        self._filesystem.copy(self._decision, f"{self._work}/{decision_store.NAME}")
        self._filesystem.make_folder(self._target.rpartition("/")[0] or "/")
        self._filesystem.rename(self._work, self._target)


def report_url(conf_dir: str, output: str) -> str:
    """Where a browser finds the page of a job that has succeeded; "" where the site files name no such place.

    Of two NameNodes it is the one that was active when this process last asked, if it has.
    """
    try:
        namenode = in_order(namenode_addresses(Path(conf_dir)))[0]
    except HadoopError:
        return ""
    return f"{namenode}/webhdfs/v1{quote(output)}/report.html?op=OPEN"


def _job_of(report: bytes) -> object:
    """The job that a report.json says it is of."""
    try:
        body = json.loads(report)
    except ValueError:
        return None
    return body.get("job_id") if isinstance(body, dict) else None
