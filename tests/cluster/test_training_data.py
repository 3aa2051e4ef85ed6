"""Training from the real HDFS: members read the replicas on their own nodes, and find what one process finds."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hadoop.installation import ROOT
from jobs.application.package import WORKER_PYTHON
from tests.cluster.site import Site, nodewise, succeed
from tests.learning.drawn import draw_classes
from tests.recipes.pages import block

PROGRAM = ROOT / "tests" / "learning" / "from_hdfs.py"
EXACT = 1e-10
CLASSES, FEATURES = 4, 6
SAMPLES, FILES, REPLICAS = 96, 24, 3
LAID = {"parquet": "/training/rows", "folder": "/training/pictures", "packs": "/training/packs"}


@pytest.fixture(scope="module")
def laid(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site, with the same seeded pictures as files and as packs, and rows of numbers, each on three nodes."""
    folder, chance = tmp_path_factory.mktemp("laid"), np.random.default_rng(5)
    pictures = folder / "pictures"
    draw_classes(pictures, chance, SAMPLES, CLASSES)
    hdfs = site.hdfs()
    for path in sorted(pictures.rglob("*.png")):
        hdfs.write(f"{LAID['folder']}/{path.relative_to(pictures)}", data=path.read_bytes(), replication=REPLICAS)
    pack = ["images", "pack", str(pictures), f"hdfs://{LAID['packs']}", "--file-size", "6k"]
    succeed(nodewise(site.cluster.home, *pack, url=site.url))
    for name in hdfs.list(LAID["packs"]):
        hdfs.set_replication(f"{LAID['packs']}/{name}", REPLICAS)
    for number in range(FILES):
        columns = {f"x{at}": chance.normal(size=SAMPLES // FILES) for at in range(FEATURES)}
        table = pa.table({**columns, "y": chance.integers(CLASSES, size=SAMPLES // FILES)})
        pq.write_table(table, folder / "rows.parquet", row_group_size=10)
        content = (folder / "rows.parquet").read_bytes()
        hdfs.write(f"{LAID['parquet']}/{number}.parquet", data=content, replication=REPLICAS)
    return site


def python(site: Site, *words: str) -> str:
    """What the last line is that a program of the workers' Python prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HADOOP_CONF_DIR": str(site.cluster.conf_dir)}
    environment["HADOOP_USER_NAME"] = site.cluster.user
    ran = subprocess.run([WORKER_PYTHON, *words], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]


def test_the_lines_of_the_manual_read_pictures_and_rows(laid: Site) -> None:
    lines = block("training-data").replace("/data/pictures", LAID["folder"]).replace("/data/rows", LAID["parquet"])
    lines = lines.replace('["width", "height"], "price"', '["x0", "x1"], "y"')

    told = python(laid, "-c", f"{lines}\nprint(len(pictures), pictures[0][0].shape, len(rows), rows[0][0].shape)")

    assert told == f"{SAMPLES} (3, 224, 224) {SAMPLES} (2,)"


@pytest.mark.parametrize("kind", LAID)
def test_members_read_their_own_replicas_and_find_what_one_process_finds(laid: Site, kind: str) -> None:
    output, program = f"/training/from-{kind}", (PROGRAM.name, kind, f"hdfs://{LAID[kind]}")
    words = ["--members", "3", "--output", f"hdfs://{output}", "--file", str(PROGRAM), "--memory", "768", "--wait"]
    # With equal shares, as a node that gets nearly all samples reads many from others.
    words += ["--capability", "perf_even", "--capability-wait", "120"]

    ran = nodewise(laid.cluster.home, "train", "submit", "--json", *words, "--", "python", *program, url=laid.url)

    job_id = re.findall(r"application_\d+_\d+", succeed(ran))[0]
    with laid.hdfs().read(f"{output}/report.json") as source:
        told: dict[str, Any] = json.load(source)
    reads, local = (sum(node[name] for node in told["nodes"].values()) for name in ("reads", "local_reads"))
    assert reads == 3 * SAMPLES and len(told["nodes"]) == 3
    assert local >= 0.95 * reads
    logs = succeed(nodewise(laid.cluster.home, "train", "logs", job_id, url=laid.url))
    lines = [line.partition(" | ")[2] for line in logs.splitlines()]
    found = [json.loads(line) for line in lines if line.startswith("[")]
    expected = json.loads(python(laid, str(PROGRAM), *program[1:]))
    assert len(found) == 3
    assert max(abs(one - other) for each in found for one, other in zip(each, expected, strict=True)) < EXACT
