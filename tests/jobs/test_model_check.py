"""A model is loaded here, by the worker's real Python, before anything is submitted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jobs.application.package import ROOT
from jobs.engines.network import choose
from jobs.errors import JobError
from jobs.images.rows_size import ROW_BYTES
from jobs.kinds.classify.model_check import check
from tests.recipes.pages import block

WORKER_PYTHON = str(ROOT / ".venv-worker" / "bin" / "python")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """What the page shows, with its preparation."""
    subprocess.run([WORKER_PYTHON, "-c", block("own-model")], check=True, cwd=tmp_path)
    (tmp_path / "colours.toml").write_text(block("own-model-preparation"))
    return tmp_path / "colours.onnx"


def test_what_fits_tells_how_large_its_rows_are_and_what_to_know(model: Path) -> None:
    said: list[str] = []
    network = choose("onnx", str(model))

    assert check(network, WORKER_PYTHON, 8, said.append) == ROW_BYTES + 4 * (3 * 4 * 4 + 3)
    assert said == [f"{network.program}: its batch is fixed at 1: it was changed to take any number of images"]


def test_what_does_not_fit_is_refused_in_one_sentence(model: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("a\nb\n")
    with pytest.raises(JobError, match=r"^labels\.txt names 2 classes, and the network gives tensors"):
        check(choose("onnx", str(model), None, labels), WORKER_PYTHON, 8, print)
    model.write_text("no model")
    with pytest.raises(JobError, match=r"^colours\.onnx is not an ONNX model$"):
        check(choose("onnx", str(model)), WORKER_PYTHON, 8, print)


def test_without_the_worker_s_python_only_alexnet_is_left_to_the_nodes(model: Path) -> None:
    said: list[str] = []

    assert check(choose("mxnet", None, model), "/no/python", 8, said.append) == ROW_BYTES
    assert said == ["mxnet.alexnet is checked only on the nodes: /no/python cannot be started here " + MISSING]
    with pytest.raises(JobError, match="name a --worker-python that is on this machine too"):
        check(choose("onnx", str(model)), "/no/python", 8, print)
    with pytest.raises(JobError, match=r"/bin/false ended before it had checked .* \(status 1\): it said nothing"):
        check(choose("onnx", str(model)), "/bin/false", 8, print)


MISSING = "(No such file or directory)"


def test_alexnet_with_seeded_weights_needs_no_check() -> None:
    assert check(choose("mxnet", None), "/no/python", 8, print) == ROW_BYTES
