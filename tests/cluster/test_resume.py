"""A job that fails when all its work is done loses nothing: `job resume` stores it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.site import BROKEN, PICTURES, Site, succeed, until
from tests.cluster.test_job import left_behind, rows

pytestmark = pytest.mark.cluster

OUTPUT = "/out/resumed"


def planned_job(site: Site) -> str | None:
    """The job that has its plan and has not ended."""
    folder = f"/user/{site.cluster.user}/.nodewise"
    names = site.hdfs().list(folder) if site.hdfs().status(folder, strict=False) else []
    return next((name for name in names if site.hdfs().status(f"{folder}/{name}/decision.json", strict=False)), None)


def test_a_job_whose_results_could_not_be_stored_is_resumed(site: Site) -> None:
    with ThreadPoolExecutor(1) as background:
        submitted = background.submit(site.submit, f"hdfs://{OUTPUT}", "--master-memory", "700m")
        job_id = str(until(lambda: planned_job(site)))
        site.hdfs().write(f"{OUTPUT}/foreign", data=b"of somebody else")
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
    assert left_behind(site, OUTPUT) == [OUTPUT]
    assert "nothing of" in site.nodewise("job", "resume", job_id).stderr
    assert "nothing of" in site.nodewise("job", "resume", "application_1_0001").stderr, "YARN does not know it"
