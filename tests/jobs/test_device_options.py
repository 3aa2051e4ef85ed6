"""GPUs and devices of each container of a job: what may be said of them, and what starts a program that has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from boxes.gpus.cards import Wanted
from jobs.application.environments.laid import python_argv
from jobs.application.job_spec import JobOptions
from jobs.application.submit import Order
from jobs.commands.job.job_submit import submit as submit_job
from jobs.commands.made_options import collect
from jobs.commands.training.train_submit import submit as submit_training
from jobs.errors import JobError
from jobs.kinds.classify.settings import ClassifySettings
from jobs.kinds.train.settings import TrainSettings

SAID = (
    *("--gpus", "2", "--gpu-model", "T4", "--gpu-memory", "16g", "--gpu-capability", "7.5"),
    *("--device", "nvidia.com/gpu=0", "--device", "vendor.example/card=all"),
)
WANTED = Wanted(2, "T4", 16384, "7.5")


def settings(**said: Any) -> TrainSettings:
    return TrainSettings(argv=["true"], output="hdfs:///out", **said)


def test_jobs_and_training_runs_are_told_on_the_command_line() -> None:
    of_job = ["--input", "i", "--output", "o", "--capability", "c", *SAID]
    for command, words, kind, others in (
        (submit_job, of_job, ClassifySettings, {}),
        (submit_training, [*SAID, "--", "true"], TrainSettings, {"argv": ["true"]}),
    ):
        with command.make_context("submit", words, obj=Path("/nowhere")) as context:
            made: Any = collect(kind, context.params, **others)
        told = kind.from_json(json.loads(made.to_bytes()))

        assert told.wanted_gpus == made.wanted_gpus == WANTED
        assert list(told.devices) == ["nvidia.com/gpu=0", "vendor.example/card=all"]
        told.check_devices()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"gpu_model": "T4"}, "and no GPU: give --gpus, too"),
        ({"gpu_memory_mb": 1}, "and no GPU: give --gpus, too"),
        ({"gpus": 1, "gpu_model": "T4;"}, "--gpu-model is 'T4;': give words of its name"),
        ({"gpus": 1, "gpu_capability": "7"}, "--gpu-capability is '7': give a number such as 7.5"),
        ({"gpus": 1, "gpu_capability": "7.5\n"}, "--gpu-capability is"),
        ({"devices": ["/dev/nvidia0"]}, "--device /dev/nvidia0 is not VENDOR/CLASS=NAME: name one"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(said: dict[str, Any], why: str) -> None:
    with pytest.raises(JobError) as refused:
        settings(**said).check_devices()

    assert why in str(refused.value)
    settings().check_devices()


def test_yarn_counts_the_gpus_beside_what_else_is_asked_for() -> None:
    options = JobOptions(resources={"disk": 1, "yarn.io/gpu": 9})

    assert Order("train", "n", {}, options, gpus=Wanted(2)).resources == {"disk": 1, "yarn.io/gpu": 2}
    assert Order("train", "n", {}, options).resources == options.resources
    assert Order("train", "n", {}).resources == {}


def test_a_program_takes_its_cards_before_it_begins() -> None:
    parts = {"/opt/env": "/nodewise/env/blobs/a.sqfs"}

    argv = python_argv(parts, "python", ["-m", "x"], ["v.com/c=0"], WANTED)

    assert argv[:3] == ["/usr/bin/python3", "-m", "boxes.gpus"]
    assert Wanted(**json.loads(argv[3])) == WANTED
    assert argv[4:] == ["--device=v.com/c=0", "/opt/env=a.sqfs", "--", "/opt/env/bin/python", "-m", "x"]
    assert python_argv({}, "/p", ["-m", "x"], ["v.com/c=0"])[2:] == [
        "boxes.mounting",
        "--device=v.com/c=0",
        "--",
        "/p",
        "-m",
        "x",
    ]
    assert python_argv({}, "/p", ["-m", "x"], seen=["code.zip"]) == ["/p", "-m", "x"]


def test_a_worker_in_a_system_of_its_own_sees_its_files_and_runs_the_python_of_its_packages() -> None:
    below, packages = {"/": "/blobs/a.sqfs"}, {"/opt/env": "/blobs/b.sqfs"}
    seen = ["code.zip", "/etc/hadoop"]
    begin = ["/usr/bin/python3", "-m", "boxes.mounting"]

    argv = python_argv({**below, **packages}, "python", ["-m", "x"], seen=seen)

    links = ["--see=code.zip", "--see=/etc/hadoop"]
    assert argv == [*begin, *links, "/=a.sqfs", "/opt/env=b.sqfs", "--", "/opt/env/bin/python", "-m", "x"]
    assert python_argv(packages, "python", ["-m", "x"], seen=seen)[3] == "/opt/env=b.sqfs", "it sees all of its node"
