"""The bench of environments: one quick run of all ways on a real cluster, what follows from readings, and the sum."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import pytest
from click.testing import CliRunner

from bench.environments import total
from bench.environments.__main__ import Told, fetch_all, main
from bench.environments.asking import MAKE_AGAIN, REFUSAL
from bench.environments.content import MXNET, NUMPY, SIX, TORCH, Content, worker_lock
from bench.environments.goals import GOALS, NOT_MEASURED
from bench.environments.pieces import PIECES
from bench.environments.run import localised_seconds
from bench.environments.scene import REGISTRY
from bench.environments.ways import BOTH, COLD, OURS
from bench.info.errors import BenchError
from bench.stage import until
from tests.command_lines import command_line

ROOT = Path(__file__).resolve().parents[2]
NODE_LOG = """\
2026-11-28 08:11:18,651 INFO ContainerImpl: Container container_1_0003_01_1 transitioned from NEW to LOCALIZING
2026-11-28 08:11:19,000 INFO ContainerImpl: Container container_1_0004_01_1 transitioned from NEW to LOCALIZING
2026-11-28 08:11:20,901 INFO ContainerImpl: Container container_1_0003_01_1 transitioned from LOCALIZING to SCHEDULED
"""


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A short path: Docker's sockets are below it."""
    folder = Path(tempfile.mkdtemp(prefix="nw-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.usefixtures("only_when_long")
@pytest.mark.timeout(1800)
def test_a_quick_run_measures_all_ways_and_leaves_nothing(temporary: Path, tmp_path: Path) -> None:
    pieces = [
        word for piece in ("cold-100", "four-1000", "torch", "cached", "memory", "asking") for word in ("--only", piece)
    ]
    words = ["--quick", "--json", *pieces, "--output", str(tmp_path / "results")]
    command = [sys.executable, "-m", "bench.environments", *words]

    environment = os.environ | {"TMPDIR": str(temporary)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1700, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads(done.stdout)
    here = {"ours", "tar.gz", "docker load", "docker pull from HDFS"}
    here |= {"docker pull"} if shutil.which(REGISTRY) else set()
    cold, debian = record["readings"]["cold-100"], record["readings"]["torch"]
    assert set(cold) == set(record["readings"]["four-1000"]) == here | {"uv"} and set(debian) == here
    for found, content, bandwidth in ((cold, "ours", 100e6), (debian, "torch: ours", 1000e6)):
        assert found["ours"]["fetch"][0] > 0.9 * record["sizes"][content] * 8 / bandwidth, "the card was in the way"
        assert all(phases["import"][0] > 0 for phases in found.values())
    cached = {"plain folder", "ours", "ours, without the mounter", "tar.gz", "docker", "uv, its cache warm"}
    assert set(record["readings"]["cached"]) == cached
    assert all(phases["one"][0] > 5e6 for phases in record["readings"]["memory"].values())
    asked = record["readings"]["asking"]
    assert set(asked) == {MAKE_AGAIN, REFUSAL}
    assert 0 < min(asked[REFUSAL]["ready"]) < min(asked[MAKE_AGAIN]["ready"])
    (kept,) = (tmp_path / "results").glob("environments-*.md")
    assert kept.read_text() == total.markdown([record], record["date"])
    assert list(temporary.iterdir()) == []
    # What Docker has started for itself ends a moment after it.
    until(lambda: not find_programs(temporary), 60, "all that the bench has started has ended")


def find_programs(folder: Path) -> list[psutil.Process]:
    """Those with this folder in their words."""
    return [one for one in psutil.process_iter() if str(folder) in " ".join(command_line(one))]


def test_packages_that_cannot_be_fetched_are_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    told, folder = Told(), tmp_path / "fetched"
    folder.mkdir()
    unknown = {MXNET: Content("none", debian=("no-such-package-of-debian",)), TORCH: SIX}

    with patch.dict("bench.environments.__main__.QUICK", unknown):
        found = fetch_all(["cold-100", "torch"], folder, quick=True, told=told)

    assert [*found] == [SIX] and any(one.name.startswith("python3-six_") for one in found[SIX])
    assert [*told.failed] == ["cold-100"]
    assert told.failed["cold-100"].startswith(
        "Debian's lists on this machine have no package no-such-package-of-debian"
    )


def record(**pieces: dict[str, dict[str, float]]) -> dict[str, Any]:
    """A part in which each phase was measured once; `cold_1000` is cold-1000."""
    readings = {
        piece.replace("_", "-"): {
            way: {phase: [value] for phase, value in phases.items()} for way, phases in ways.items()
        }
        for piece, ways in pieces.items()
    }
    return {
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {"cores": 2, "cpu": "a CPU", "file_system": "ext4"},
        "versions": {"uv": "1"},
        "load_before": 0.1,
        "steal_ratio": 0.0,
        "seed": 1,
        "part": [1, 1],
        "on": "local",
        "pieces": list(readings),
        "nodes": 4,
        "sizes": {"ours": 125e6, "tar.gz": 250e6},
        "seconds": 60.0,
        "readings": readings,
        "failed": {},
    }


def test_goals_follow_from_bytes_bandwidth_and_other_ways() -> None:
    cold = {"ours": {"ready": 2.1}, "tar.gz": {"ready": 4.0}, "docker load": {"ready": 6.3}}
    part = record(cold_1000=cold, four_1000={"ours": {"ready": 4.2}})

    values = total.values([part])

    assert values["ours, one node at 1000 Mbit/s, 1 s taken away: times bytes / bandwidth"] == pytest.approx(1.1)
    assert values["docker load, one node at 1000 Mbit/s: times ours"] == pytest.approx(3.0)
    missing = total.find_missing_goals([part])
    assert "not reached: tar.gz, one node at 1000 Mbit/s: times ours: 1.90, not >= 2" in missing
    assert "not reached: ours, four nodes at once at 1000 Mbit/s: times one node: 2.00, not <= 1.3" in missing
    assert "not measured: docker pull, one node at 1000 Mbit/s: times ours" in missing
    assert not [one for one in missing if "docker load, one node at 1000" in one]


def test_what_is_cached_is_compared_with_a_folder_that_was_there() -> None:
    ours = {"start": 0.07, "ready": 0.16, "import": 1.2}
    alone = {"start": 0.07, "ready": 0.15, "import": 1.4}
    plain = {"start": 0.02, "ready": 0.02, "import": 1.0}
    part = record(cached={"ours": ours, "ours, without the mounter": alone, "plain folder": plain})

    missing = total.find_missing_goals([part])

    assert "not reached: ours, cached: seconds until the first line beyond a plain folder: 0.14, not <= 0.1" in missing
    assert "not reached: import from the mount of the node: times a plain folder: 1.20, not <= 1.1" in missing
    assert not [one for one in missing if "fresh mount" in one]


def test_what_is_asked_must_be_answered_soon() -> None:
    part = record(asking={MAKE_AGAIN: {"ready": 2.5}, REFUSAL: {"ready": 0.04}})

    missing = total.find_missing_goals([part])

    assert "not reached: env make with nothing changed: seconds: 2.50, not <= 2" in missing
    assert not [one for one in missing if "is refused" in one]
    assert f"| {REFUSAL} | 40 ms | 40 ms | 1 |" in total.markdown([part], "HEAD").splitlines()


def test_packages_of_debian_have_sizes_and_goals_of_their_own() -> None:
    torch = {"ours": {"ready": 5.6}, "tar.gz": {"ready": 30.0}, "docker load": {"ready": 8.4}}
    part = record(cold_1000={"ours": {"ready": 2.1}}, torch=torch)
    part["sizes"]["torch: ours"] = 500e6

    values = total.values([part])

    assert values["ours, one node at 1000 Mbit/s, 1 s taken away: times bytes / bandwidth"] == pytest.approx(1.1)
    place = "Debian's torch on one node at 1000 Mbit/s"
    assert values[f"ours, {place}, 1 s taken away: times bytes / bandwidth"] == pytest.approx(1.15)
    assert values[f"tar.gz, {place}: times ours"] == pytest.approx(30 / 5.6)
    assert f"not reached: docker load, {place}: times ours: 1.50, not >= 2" in total.find_missing_goals([part])
    assert "torch: ours 500.0 MB" in total.markdown([part], "HEAD")


def test_nothing_measured_names_every_piece_goal_and_what_cannot_be_measured() -> None:
    missing = total.find_missing_goals([])

    assert missing == [
        *(f"not measured: {piece}" for piece in PIECES),
        *(f"not measured: {goal.text}" for goal in GOALS),
        *(f"not measured: {what}" for what in NOT_MEASURED),
    ]
    assert {goal.piece for goal in GOALS} <= set(PIECES)


def test_a_table_tells_medians_and_phases_that_cannot_be_told_apart() -> None:
    parts = [
        record(cold_100={"ours": {"fetch": took, "start": 0.05, "ready": took, "import": 1.0, "step": 0.01}})
        for took in (20.0, 22.0, 30.0)
    ]
    parts.append(record(cold_100={"tar.gz": {BOTH: 44.0, "start": 0.02, "ready": 44.0, "import": 1.0, "step": 0.01}}))

    lines = total.markdown(parts, "HEAD").splitlines()

    assert "| ours | 22.0 s |  | 50 ms | 22.0 s | 1.00 | 1.00 s |  | 10 ms | 3 |" in lines
    assert "| tar.gz | 44.0 s, with laying out |  | 20 ms | 44.0 s | 2.00 | 1.00 s |  | 10 ms | 1 |" in lines


def test_the_time_of_fetching_is_that_of_the_container_alone() -> None:
    assert localised_seconds(NODE_LOG, "container_1_0003_01_1") == pytest.approx(2.25)
    with pytest.raises(BenchError, match="does not tell"):
        localised_seconds(NODE_LOG, "container_1_0004_01_1")


def test_the_content_is_of_the_workers_lock() -> None:
    assert len(worker_lock(NUMPY).splitlines()) == 1
    assert any(line.startswith("mxnet==") for line in worker_lock(MXNET).splitlines())
    assert all("--hash=sha256:" in line for line in worker_lock(MXNET).splitlines())


def test_every_way_is_known_by_a_name_of_its_own() -> None:
    assert len({way.name for way in COLD}) == len(COLD) and OURS in COLD


def test_the_sum_of_kept_parts_is_told_as_json(tmp_path: Path) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    kept = record(cold_1000={"ours": {"ready": 2.1}}) | {"commit": commit.stdout.strip()}
    (tmp_path / "environments-2026-01-01-000000.json").write_text(json.dumps(kept))

    done = CliRunner().invoke(main, ["--sum", "HEAD", "--json", "--output", str(tmp_path)])

    assert done.exit_code == 1
    assert list(json.loads(done.output)["values"].values()) == [pytest.approx(1.1)]
