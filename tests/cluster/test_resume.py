"""A job that fails when all its work is done loses nothing: `job resume` stores it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jobs.application.package import WORKER_PYTHON
from tests.cluster.site import BROKEN, PICTURES, Site, job_files, succeed, until
from tests.cluster.test_job import UNHURRIED, left_behind, rows

pytestmark = pytest.mark.cluster

OUTPUT = "/out/resumed"
# The client looks at the network with the same Python.
WAITING = """#!/bin/sh
case "$*" in
  *jobs.worker*) while [ ! -e "{opened}" ]; do sleep 0.1; done ;;
esac
exec "{python}" "$@"
"""


def planned_job(site: Site, before: set[str]) -> str | None:
    """The job that has its plan and has not ended, beside those of before."""
    folder, hdfs = f"/user/{site.cluster.user}/.nodewise", site.hdfs()
    names = job_files(site.cluster) - before
    return next((name for name in names if hdfs.status(f"{folder}/{name}/decision.json", strict=False)), None)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A folder with a `python` by which workers begin once there is a file `open` beside it."""
    program = WAITING.format(opened=tmp_path / "open", python=WORKER_PYTHON)
    (tmp_path / "python").write_text(program)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def test_a_job_whose_results_could_not_be_stored_is_resumed(site: Site, gate: Path) -> None:
    before = job_files(site.cluster)
    words = ("--master-memory", "700m", "--worker-python", str(gate / "python"), *UNHURRIED)
    with ThreadPoolExecutor(1) as background:
        submitted = background.submit(site.submit, f"hdfs://{OUTPUT}", *words)
        try:
            job_id = str(until(lambda: planned_job(site, before) or submitted.done()))
            assert not submitted.done(), submitted.result().stderr
            site.hdfs().write(f"{OUTPUT}/foreign", data=b"of somebody else")
        finally:
            (gate / "open").touch()
        failed = submitted.result()

    assert failed.returncode == 1
    assert f"{OUTPUT} exists already" in failed.stderr
    assert f"`nodewise job resume {job_id}`" in failed.stderr
    assert site.nodewise("job", "resume", job_id).returncode == 1, "the output is still there"

    site.hdfs().delete(OUTPUT, recursive=True)
    said = json.loads(succeed(site.nodewise("job", "resume", job_id, "--json")))

    assert said["job_id"] == job_id
    paths = [row["path"] for row in rows(site, OUTPUT)]
    assert len(paths) == len(set(paths)) == PICTURES + len(BROKEN)
    report = json.loads(succeed(site.nodewise("job", "report", f"hdfs://{OUTPUT}", "--json")))
    assert (report["job_id"], report["images"], report["master_memory_mb"]) == (job_id, len(paths), 700)
    assert 100 < report["master_peak_mb"] < 700
    assert left_behind(site, OUTPUT, before) == [OUTPUT]
    assert "nothing of" in site.nodewise("job", "resume", job_id).stderr
    assert "nothing of" in site.nodewise("job", "resume", "application_1_0001").stderr, "YARN does not know it"
