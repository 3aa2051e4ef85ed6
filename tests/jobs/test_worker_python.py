"""Jobs on nodes that have no Python of their own for workers: what users are told before anything is submitted."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.application.package import NO_PYTHON, check_python
from jobs.commands import other_python
from jobs.engines.network import choose
from jobs.errors import JobError
from jobs.images.rows_size import ROW_BYTES
from jobs.kinds.classify import model_check
from jobs.kinds.classify.request import Request, check
from jobs.kinds.classify.settings import ClassifySettings

WHAT_TO_DO = "^this cluster's workers have no Python of their own: name an environment with --env NAME@VERSION, "


def test_a_job_that_classifies_is_refused_without_an_environment() -> None:
    nobody: Any = None  # it is refused before anybody is asked
    settings = ClassifySettings(input="/in", output="/out", capability="perf_cpu", worker_python=NO_PYTHON)

    with pytest.raises(JobError, match=WHAT_TO_DO):
        check(nobody, Request(settings))


@pytest.mark.parametrize(("python", "has_environment"), [("/usr/bin/python3", False), (NO_PYTHON, True)])
def test_a_python_of_the_nodes_will_do_and_so_will_an_environment(python: str, has_environment: bool) -> None:
    check_python(python, has_environment)


def test_models_that_have_a_name_are_not_checked_by_a_python_that_is_not_here() -> None:
    said: list[str] = []

    assert model_check.check(choose("onnx", "alexnet"), NO_PYTHON, 8, said.append) == ROW_BYTES


def test_what_needs_a_python_here_asks_for_one() -> None:
    with pytest.raises(JobError, match=r"^the worker's Python cannot be started \(.*\): name a --worker-python$"):
        other_python.run(NO_PYTHON, "nowhere", [])
