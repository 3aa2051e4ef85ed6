"""`nodewise job train --members` on a real cluster: two members teach AlexNet, and its files are as one process's."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
from PIL import Image

from jobs.engines import alexnet
from jobs.engines.parameters import parameters
from tests.cluster.site import Site, nodewise, succeed
from tests.recipes.pages import block

PICTURES, STEPS, BATCH = 10, 2, 8


def test_two_members_teach_alexnet_the_classes_of_sub_folders(site: Site, tmp_path: Path) -> None:
    chance, hdfs = np.random.default_rng(1), site.hdfs()
    for number in range(PICTURES):
        file = tmp_path / f"{number}.png"
        Image.fromarray(chance.integers(256, size=(20, 24, 3), dtype=np.uint8)).save(file)
        name = f"/learning/pictures/{('dark', 'light')[number % 2]}/{file.name}"
        hdfs.write(name, data=file.read_bytes(), replication=2)
    weights = tmp_path / "photos.params"
    line = block("training-alexnet").replace("--labels pictures/labels.tsv ", "").replace("\\\n", "")
    line = line.replace("/data/images", "/learning/pictures").replace("photos.params", str(weights))
    words = [*shlex.split(line)[1:], "--steps", str(STEPS), "--no-int8", "--json"]

    ran = nodewise(site.cluster.home, *words, url=site.url)

    made = json.loads(succeed(ran)[ran.stdout.index("{") :])
    assert (made["learned"], made["held_out"], made["classes"]) == (8, 2, ["dark", "light"])
    assert parameters(alexnet.NETWORK, weights)["output.weight"].shape == (2, 4096)
    assert (tmp_path / "photos.classes.txt").read_text() == "dark\nlight\n"
    assert json.loads((tmp_path / "photos.json").read_text()) == made
    with hdfs.read(f"{made['output']}/report.json") as source:
        told = json.load(source)
    assert (told["steps"], len(told["generations"][0]["nodes"])) == (STEPS, 2)
    assert sum(node["samples"] for node in told["nodes"].values()) == STEPS * BATCH
