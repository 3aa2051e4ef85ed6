"""The bench of reading in small: both ways stored on a cluster of a home and read, and nothing left on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.info.errors import BenchError
from bench.reading.readers import WORKER, read
from bench.reading.table import FIGURES, WAYS, markdown, rows
from hadoop.local.lifecycle import Cluster
from tests.cluster.standing import Standing

ROOT = Path(__file__).resolve().parents[2]
IMAGES = 70
KEYS = [figure.key for figure in FIGURES]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, standing: Standing) -> tuple[Path, dict[str, Any]]:
    """One quick run on the cluster that tests share: where it worked and kept its results, and what it printed."""
    place = tmp_path_factory.mktemp("bench")
    home = str(standing.cluster().home)
    words = ["--quick", "--home", home, "--images", str(IMAGES), "--json", "--output", str(place / "results")]
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(place)}
    command = [sys.executable, "-m", "bench.reading", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place, json.loads(done.stdout)


@pytest.mark.cluster
@pytest.mark.timeout(1800)
def test_both_ways_are_measured_and_nothing_is_left_here(run: tuple[Path, dict[str, Any]]) -> None:
    place, record = run
    found = {figure["name"]: figure for figure in record["figures"]}

    assert [figure["name"] for figure in record["figures"]] == [figure.key for figure in FIGURES]
    assert (found["blocks"]["files"], found["blocks"]["packed"], record["packs"]) == (IMAGES, 1, 1)
    assert set(record["stored_seconds"]) == set(WAYS)
    for way in WAYS:
        rate, size = (found[f"{what}_per_second_2"][way] for what in ("images", "bytes"))
        assert size == pytest.approx(rate * record["image_bytes"])
    assert [path.name for path in place.iterdir()] == ["results"]
    assert sorted(path.suffix for path in (place / "results").iterdir()) == [".json", ".md"]


def test_a_reader_that_cannot_read_fails_the_bench(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "pictures.json").write_text("no list")

    with pytest.raises(BenchError, match=r"a reader ended with status 1: (?s:.*)JSONDecodeError"):
        read(Cluster(tmp_path, "127.0.2", 1, "me", tmp_path, tmp_path), tmp_path / "pictures.json", 2)


def test_pictures_that_come_short_are_never_counted(tmp_path: Path) -> None:
    program = """
from bench.reading.read import read
from jobs.itemwork.messages import Item
from jobs.worker.reading import Reader

class Short:
    def read(self, path, offset, length):
        return b"x" * (3 if path == "/short" else 4)
    def exists(self, path):
        return True

sound = [Item(name, name, None, 4) for name in "abcdefg"]
print(read(Reader(Short()), [sound[:3], sound[3:]]))
read(Reader(Short()), [[Item("/short", "/short", None, 4)]])
"""
    done = subprocess.run([str(WORKER), "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)

    assert done.stdout == "(7, 28)\n"
    assert done.returncode == 1
    assert "cannot be read as stored" in done.stderr and "/short" in done.stderr


def test_the_median_of_each_way_is_kept_and_set_beside_the_other() -> None:
    speeds = (1.0, 9.0, 2.0)
    rounds = [
        {way: dict.fromkeys(KEYS, speed * times) for way, times in zip(WAYS, (1, 2), strict=True)} for speed in speeds
    ]

    table = rows(rounds)

    assert {(row["files"], row["packed"], row["packed_over_files"]) for row in table} == {(2.0, 4.0, 2.0)}
    text = markdown(
        {
            "date": "2020-01-01",
            "machine": {"cores": 2, "cpu": "c", "memory_bytes": 2**30, "system": "s"},
            "versions": {"Python": "3"},
            "images": 1000,
            "image_bytes": 87_000.0,
            "packs": 2,
            "nodes": 4,
            "load_before": 0.0,
            "steal_ratio": 0.0,
            "figures": table,
        }
    )
    assert "| read by 2 processes | 2.00 images/s | 4.00 images/s | 2.00 |" in text
