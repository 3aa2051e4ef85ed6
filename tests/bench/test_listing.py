"""The bench of listings in small: a cluster of its own, real files, every way measured, and nothing left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.listing.__main__ import _how_to_delete
from bench.listing.table import figures, rows
from bench.stage import cluster_of
from hadoop.local import daemons
from hadoop.local.lifecycle import Cluster

ROOT = Path(__file__).resolve().parents[2]
FILES = 60


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """One quick run: where it worked and kept its results, and what it printed."""
    place = tmp_path_factory.mktemp("bench")
    words = ["--quick", "--rounds", "2", "--files", str(FILES), "--json", "--output", str(place / "results")]
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(place)}
    command = [sys.executable, "-m", "bench.listing", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place, json.loads(done.stdout)


@pytest.mark.usefixtures("only_when_long")
@pytest.mark.cluster
@pytest.mark.timeout(1800)
def test_every_way_is_measured_and_the_cluster_is_gone(run: tuple[Path, dict[str, Any]]) -> None:
    place, record = run
    found = {figure["name"]: figure["nodewise"] for figure in record["figures"]}
    least = {figure["name"]: min(figure["rounds"]) for figure in record["figures"]}

    assert set(found) == {figure.key for figure in figures(FILES)}
    # Others may keep the machine busy in one round; what is listed again would take as long in each.
    assert 0 < least["snapshot_again_seconds"] < least["snapshot_first_seconds"]
    assert (found["snapshot_again_folders"], found["snapshot_one_more_folders"]) == (0, 1)
    assert found["listing_heap_bytes"] < found["listing_rss_bytes"]
    assert (record["files"], record["sample_files"]) == (FILES, FILES)
    assert record["made_seconds"] > 0
    assert [path.name for path in place.iterdir()] == ["results"]
    assert sorted(path.suffix for path in (place / "results").iterdir()) == [".json", ".md"]


@pytest.mark.usefixtures("only_when_long")
@pytest.mark.cluster
@pytest.mark.timeout(1800)
def test_a_cluster_of_a_home_is_left_as_it_was(tmp_path: Path) -> None:
    with cluster_of(tmp_path, nodes=1) as cluster:
        with cluster_of(tmp_path) as again:
            assert again == cluster
        assert daemons.find_running(cluster), "it ran before"

    assert not daemons.find_running(cluster), "it did not run before"
    assert cluster.state.exists()


def test_what_has_to_be_deleted_is_told_as_a_command(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, "127.0.2", 1, "me", tmp_path, tmp_path)

    assert f"curl -X DELETE '{cluster.namenode_http}/webhdfs/v1/bench/5?op=DELETE" in _how_to_delete(
        cluster, "/bench/5"
    )


def test_the_sample_is_extrapolated_and_the_median_judged() -> None:
    slow, fast = ({figure.key: seconds for figure in figures(100_000)} for seconds in (16.0, 14.0))
    sample = {"iterator_sample_files": 5000.0, "iterator_sample_seconds": 2.0}

    table = {row["name"]: row for row in rows([slow | sample, fast | sample, slow | sample], 100_000)}

    assert (table["cold_seconds"]["nodewise"], table["cold_seconds"]["met"]) == (16.0, False)
    assert table["iterator_seconds"]["nodewise"] == 40.0
    assert table["plain_seconds"]["met"] is None
