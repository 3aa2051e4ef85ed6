"""What a user asks of a result, and what `nodewise job` refuses before it looks for a cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from infosvc.wire.service_options import ServiceAddress
from jobs.application.job_spec import JobOptions
from jobs.application.options import options_of
from jobs.application.submit import InfoAccess
from jobs.commands.job.job_group import job
from jobs.commands.job.job_submit import submit
from jobs.commands.job.tables import accuracy_table
from jobs.commands.options import HADOOP_NAMES
from jobs.commands.request_options import request
from jobs.errors import JobError
from jobs.images.accuracy import Accuracy
from jobs.images.result import accuracy_json
from jobs.kinds.classify.request import Request
from jobs.kinds.classify.settings import ClassifySettings
from jobs.kinds.command.settings import CommandSettings
from jobs.kinds.pool.settings import PoolSettings
from jobs.kinds.train.settings import TrainSettings

KNOWN = Accuracy(right=9, wrong=3, unknown=2, by_class={"cat": (8, 10), "dog": (1, 2)})


def printed(known: Accuracy) -> list[str]:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(accuracy_table(known))
    return [" ".join(line.replace("\u2502", " ").split()) for line in capture.get().splitlines()]


def test_accuracy_is_told_by_class_and_in_all() -> None:
    lines = printed(KNOWN)

    assert "cat 8 10 80.0%" in lines
    assert "dog 1 2 50.0%" in lines
    assert "all 9 12 75.0%" in lines
    assert "The truth of 2 images is not known" in " ".join(lines)
    assert json.loads(json.dumps(accuracy_json(KNOWN))) == {
        "right": 9,
        "wrong": 3,
        "unknown": 2,
        "ratio": 0.75,
        "by_class": {"cat": [8, 10], "dog": [1, 2]},
    }


def test_an_accuracy_of_nothing_is_unknown_and_not_zero() -> None:
    nothing = Accuracy(0, 0, 4, {})

    assert "all 0 0 unknown" in printed(nothing)
    assert accuracy_json(nothing)["ratio"] is None


def test_errors_alone_have_no_accuracy(tmp_path: Path) -> None:
    truth = tmp_path / "labels.tsv"
    truth.write_text("")

    done = CliRunner().invoke(job, ["result", "hdfs:///out/x", "--errors", "--truth", str(truth)], obj=tmp_path)

    assert done.exit_code == 2
    assert "give one of them" in done.output


def given(*words: str) -> Request:
    """What `nodewise job submit` makes of its options."""
    with submit.make_context("submit", ["--input", "i", "--output", "o", "--capability", "c", *words]) as context:
        others = {"wait", "as_json", *HADOOP_NAMES}
        values = {name: context.params[name] for name in context.params.keys() - others}
    service = ServiceAddress(*(values.pop(name) for name in ("url", "token_file", "ca_file")))
    return request(Path("/nowhere"), values | {"service": service})


def test_every_part_of_a_request_can_be_said_on_the_command_line(tmp_path: Path) -> None:
    for name in ("weights", "labels", "ca", "token"):
        (tmp_path / name).write_text("x")
    words = (
        *("--engine", "e", "--policy", "p", "--url", "u", "--token-file", f"{tmp_path}/token"),
        *("--master-python", "m", "--worker-python", "w", "--batch", "3", "--memory", "999", "--vcores", "4"),
        *("--container-wait", "5", "--capability-wait", "6", "--lease-seconds", "7", "--picture-seconds", "8"),
        *("--no-steal", "--fallback", "f", "--env", "a.tar.gz", "--attempts", "9"),
        *("--weights", f"{tmp_path}/weights", "--labels", f"{tmp_path}/labels", "--ca-file", f"{tmp_path}/ca"),
        *("--queue", "q", "--resource", "yarn.io/gpu=2", "--resource", "disk=1", "--priority", "3"),
        *("--program", "p"),
        *("--master-memory", "2g", "--cold-start", "z"),
    )

    settings = ClassifySettings(
        input="i",
        output="o",
        engine="e",
        policy="p",
        capability="c",
        cold_start="z",
        worker_python="w",
        batch=3,
        memory_mb=999,
        vcores=4,
        lease_seconds=7.0,
        picture_seconds=8.0,
        steal=False,
        fallback="f",
        environment="a.tar.gz",
        weights=f"{tmp_path}/weights",
        labels=f"{tmp_path}/labels",
    )
    options = JobOptions(
        queue="q",
        program="p",
        master_python="m",
        capability_wait=6.0,
        container_wait=5.0,
        attempts=9,
        resources={"yarn.io/gpu": 2, "disk": 1},
        priority=3,
        master_memory=2048,
    )
    assert given(*words) == Request(settings, options, InfoAccess("u", "x", tmp_path / "ca"))


@pytest.mark.parametrize("flag", ["--master-memory", "--memory"])
@pytest.mark.parametrize(("said", "mb"), [("640", 640), ("640m", 640), ("1G", 1024)])
def test_memory_is_given_in_mb_or_with_its_unit(flag: str, said: str, mb: int) -> None:
    asked = given(flag, said)

    assert mb in (asked.options.master_memory, asked.settings.memory_mb)


@pytest.mark.parametrize("said", ["511m", "much", "0.5g", "m", "-1g"])
def test_memory_that_is_none_or_too_little_is_refused(said: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        given("--master-memory", said)

    assert "--master-memory" in refused.value.format_message()


def test_what_is_not_said_has_the_default_of_the_settings() -> None:
    asked = given()

    assert asked.settings == ClassifySettings(input="i", output="o", capability="c", cold_start="perf_cpu")
    assert asked.options == JobOptions()


@pytest.mark.parametrize("kind", [ClassifySettings, CommandSettings, JobOptions, PoolSettings, TrainSettings])
def test_every_option_has_words_and_limits_of_numbers(kind: type[Any]) -> None:
    for field, known in options_of(kind):
        assert known.help, field.name
        assert known.least is not None or field.type in ("str", "str | None", "bool", "Sequence[str]"), field.name


def test_settings_with_a_number_outside_of_its_limits_are_refused_wherever_they_are_read() -> None:
    body = {"input": "i", "output": "o", "capability": "c", "batch": 2000}

    with pytest.raises(JobError, match="--batch is 2000: it has to be at most 1024"):
        ClassifySettings.from_json(body)


def test_a_count_of_a_resource_that_is_none_is_refused_on_the_command_line_and_in_the_settings() -> None:
    with pytest.raises(click.BadParameter, match=r"'yarn.io/gpu' has to be NAME=COUNT"):
        given("--resource", "yarn.io/gpu")
    with pytest.raises(JobError, match=r"--resource is yarn.io/gpu=0: it has to be at least 1"):
        JobOptions.from_json({"resources": {"yarn.io/gpu": 0}})


@pytest.mark.parametrize(
    ("option", "least"), [("--lease-seconds", 5), ("--container-wait", 1), ("--capability-wait", 0)]
)
def test_a_wait_that_cannot_work_is_refused_with_the_least_that_does(option: str, least: int) -> None:
    field = option.removeprefix("--").replace("-", "_")

    asked = given(option, str(least))
    assert {**vars(asked.settings), **vars(asked.options)}[field] == least
    with pytest.raises(click.BadParameter, match=re.escape(f"x>={least}")):
        given(option, str(least - 0.5))
