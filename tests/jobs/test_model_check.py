"""A model is loaded here, by the worker's real Python, before anything is submitted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hadoop.installation import ROOT
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


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The worker's Python in an environment of its own; it notes each start. Nothing was found by it yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = tmp_path / "env" / "bin" / "python"
    program.parent.mkdir(parents=True)
    (tmp_path / "env" / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (tmp_path / "env" / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    program.write_text(f'#!/bin/sh\necho >> {tmp_path}/starts\nexec {WORKER_PYTHON} "$@"\n')
    program.chmod(0o755)
    return program


def starts(tmp_path: Path) -> int:
    return len((tmp_path / "starts").read_text().splitlines())


def test_what_was_found_is_kept_until_files_or_packages_change(model: Path, python: Path, tmp_path: Path) -> None:
    def ask() -> tuple[int, list[str]]:
        said: list[str] = []
        return check(choose("onnx", str(model)), str(python), 8, said.append), said

    first = ask()
    assert (ask(), starts(tmp_path)) == (first, 1)

    (tmp_path / "env" / "lib" / "python3.11" / "site-packages" / "new.dist-info").mkdir()
    assert (ask(), starts(tmp_path)) == (first, 2)
    (tmp_path / "colours.toml").write_text((tmp_path / "colours.toml").read_text() + "# another\n")
    assert (ask(), starts(tmp_path)) == (first, 3)
    check(choose("onnx", str(model)), str(python), 4, print)
    assert (ask(), starts(tmp_path)) == (first, 4)


@pytest.mark.parametrize("said", ["include-system-site-packages = true", ""])
def test_what_has_packages_elsewhere_is_asked_each_time(model: Path, python: Path, tmp_path: Path, said: str) -> None:
    (tmp_path / "env" / "pyvenv.cfg").write_text(said)

    for number in (1, 2):
        check(choose("onnx", str(model)), str(python), 8, print)
        assert starts(tmp_path) == number


def test_a_damaged_answer_is_not_believed(model: Path, python: Path, tmp_path: Path) -> None:
    check(choose("onnx", str(model)), str(python), 8, print)
    (kept,) = (tmp_path / "cache" / "nodewise").glob("fits-*")
    kept.write_text("{")

    assert check(choose("onnx", str(model)), str(python), 8, print) == ROW_BYTES + 4 * (3 * 4 * 4 + 3)
    assert starts(tmp_path) == 2


def test_a_refusal_is_not_kept(model: Path, python: Path, tmp_path: Path) -> None:
    model.write_text("no model")
    for number in (1, 2):
        with pytest.raises(JobError, match="is not an ONNX model"):
            check(choose("onnx", str(model)), str(python), 8, print)
        assert starts(tmp_path) == number


def test_a_python_that_is_gone_is_missed_also_where_its_answer_is_kept(model: Path, python: Path) -> None:
    check(choose("onnx", str(model)), str(python), 8, print)
    python.unlink()

    with pytest.raises(JobError, match="cannot be started"):
        check(choose("onnx", str(model)), str(python), 8, print)


MAKE = """
import sys
from onnx import TensorProto, helper, save

shape, inputs, file = sys.argv[1].split(), sys.argv[2].split(), sys.argv[3]
image = [int(length) if length.isdigit() else length for length in shape]
nodes = [helper.make_node("Sum", inputs, ["s"]), helper.make_node("GlobalAveragePool", ["s"], ["p"])]
nodes.append(helper.make_node("Flatten", ["p"], ["y"]))
tensor = helper.make_tensor_value_info
given = [tensor(name, TensorProto.FLOAT, image) for name in inputs]
graph = helper.make_graph(nodes, "g", given, [tensor("y", TensorProto.FLOAT, ["n", 3])])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
"""


@pytest.mark.parametrize(
    ("image", "inputs", "reason"),
    [
        ("n 3 8 8", "x z", "takes one input, the images, and this one takes 2: x, z"),
        ("n 3 h 8", "x", "its input x leaves height or width open: write crop"),
        ("n 3 8 8", "x", r"^labels\.txt names 2 classes, and the network tells 3 classes apart$"),
    ],
)
def test_a_classifier_that_does_not_fit_is_refused_with_the_reason(
    image: str, inputs: str, reason: str, tmp_path: Path
) -> None:
    file, labels = tmp_path / "made.onnx", tmp_path / "labels.txt"
    subprocess.run([WORKER_PYTHON, "-c", MAKE, image, inputs, file], check=True)
    labels.write_text("a\nb\n")

    with pytest.raises(JobError, match=reason):
        check(choose("onnx", str(file), None, labels), WORKER_PYTHON, 8, print)


def test_without_the_worker_s_python_only_what_needs_its_framework_is_left_to_the_nodes(model: Path) -> None:
    said: list[str] = []

    assert check(choose("onnx", "alexnet_int8", model), "/no/python", 8, said.append) == ROW_BYTES
    assert said == ["onnx.alexnet_int8 is checked only on the nodes: /no/python cannot be started here " + MISSING]
    with pytest.raises(JobError, match="name a --worker-python that is on this machine too"):
        check(choose("onnx", str(model)), "/no/python", 8, print)
    with pytest.raises(JobError, match=r"/bin/false ended before it had checked .* \(status 1\): it said nothing"):
        check(choose("onnx", str(model)), "/bin/false", 8, print)


MISSING = "(No such file or directory)"


def test_alexnet_with_seeded_weights_needs_no_check() -> None:
    assert check(choose("mxnet", None), "/no/python", 8, print) == ROW_BYTES


@pytest.mark.parametrize("engine", ["mxnet", "onnx"])
def test_without_the_worker_s_python_weights_and_labels_of_alexnet_are_looked_at_here(
    engine: str, tmp_path: Path
) -> None:
    weights, labels, said = tmp_path / "cat.params", tmp_path / "labels.txt", list[str]()
    weights.write_bytes(b"not parameters at all, but long enough")
    labels.write_text("a\nb\n")

    with pytest.raises(JobError, match=r"^cat\.params does not fit AlexNet: it does not begin like Gluon parameters"):
        check(choose(engine, None, weights), "/no/python", 8, said.append)
    with pytest.raises(JobError, match=r"^labels\.txt names 2 classes, and the network tells 1000 classes apart$"):
        check(choose(engine, None, None, labels), "/no/python", 8, said.append)
    labels.write_text("\n".join(map(str, range(1000))))
    assert check(choose(engine, None, None, labels), "/no/python", 8, said.append) == ROW_BYTES
    assert said == []
