"""`nodewise job train --members`: what is refused before a cluster is asked, and what run is asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from infosvc.wire.service_options import ServiceAddress
from jobs.commands import other_python
from jobs.commands.job.train_on_members import HERE, Learning, request
from jobs.errors import JobError
from jobs.kinds.train.request import TrainRequest, order
from tests.in_process import nodewise

IMAGES = "hdfs:///data/images"


def refusal(*words: str) -> str:
    """What `nodewise job train` says when it refuses."""
    done = nodewise("job", "train", *words, "--weights", "w.params")
    assert done.returncode in (1, 2)
    return " ".join(done.stderr.split())


def test_images_of_this_machine_are_for_one_process_and_those_of_hdfs_for_members(tmp_path: Path) -> None:
    here = refusal(str(tmp_path), "--members", "2", "--output", "/out")

    assert f"members read images from HDFS, and {tmp_path} is a folder of this machine: put it there" in here
    assert f"{IMAGES} is in HDFS: say how many nodes learn from it with --members" in refusal(IMAGES)


@pytest.mark.parametrize("words", [("--output", "/out"), ("--sync", "every"), ("--memory", "4g"), ("--user", "me")])
def test_what_only_a_run_has_goes_with_members(words: tuple[str, str], tmp_path: Path) -> None:
    assert f"{words[0]} goes with --members" in refusal(str(tmp_path), *words)


def test_a_run_that_cannot_be_is_refused_as_train_submit_does_it() -> None:
    assert "--members 0 is not a number of members" in refusal(IMAGES, "--members", "0", "--output", "/out")
    assert "the run needs a folder in HDFS for its checkpoints: name one" in refusal(IMAGES, "--members", "2")
    assert "--sync: members cannot average by 'x'" in refusal(IMAGES, "--members", "2", "--output", "/o", "--sync", "x")


def test_a_python_without_pytorch_is_refused_before_anything_is_submitted() -> None:
    with pytest.raises(JobError, match="has no PyTorch, which --members needs here and on the nodes"):
        other_python.run(sys.executable, HERE, ["check", IMAGES, "--weights=w.params", "--seed=1"])


class Paths:
    """The part of a session that an order needs."""

    def path(self, name: str) -> str:
        return name.removeprefix("hdfs://")


def ask(labels: Path | None, steps: int | None, **more: Any) -> TrainRequest:
    what = Learning(images=IMAGES, labels=labels, weights=Path("w.params"), int8=None, seed=3, steps=steps)
    options = {"members": "2:4", "output": "hdfs:///out/a", "memory_mb": 3072, "cold_start": None, **more}
    service = ServiceAddress("http://127.0.0.1:1", None, None)
    return request(Path("/missing"), what, "/python", {**options, "service": service})


def test_the_program_travels_with_the_table_of_labels(tmp_path: Path) -> None:
    table = tmp_path / "labels.tsv"
    table.touch()
    paths: Any = Paths()

    made = order(paths, ask(table, 60, queue="nightly"))

    words = ["train_alexnet.py", IMAGES, "--seed=3", "--labels=labels.tsv", "--steps=60"]
    assert (made.name, made.settings["argv"]) == ("nodewise train train_alexnet.py", ["python", *words])
    assert {name: file.is_file() for name, file in made.uploads.items()} == {"train_alexnet.py": True, table.name: True}
    told = {name: made.settings[name] for name in ("members", "memory_mb", "output", "worker_python")}
    assert told == {"members": "2:4", "memory_mb": 3072, "output": "/out/a", "worker_python": "/python"}
    assert made.options.queue == "nightly"


def test_without_a_table_or_steps_the_program_finds_its_own() -> None:
    paths: Any = Paths()

    made = order(paths, ask(None, None))

    assert made.settings["argv"] == ["python", "train_alexnet.py", IMAGES, "--seed=3"]
    assert list(made.uploads) == ["train_alexnet.py"]
