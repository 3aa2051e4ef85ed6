"""What --engine, --model and --weights choose together, and that a job with another network has speeds of its own."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from infosvc.wire.client import InfoClient
from jobs.division import speed_history
from jobs.engines.network import Network, choose
from jobs.errors import JobError
from locality.program_names import FORMER
from tests.jobs.stored import SETTINGS


@pytest.fixture
def onnx(tmp_path: Path) -> Path:
    file = tmp_path / "own.onnx"
    file.write_bytes(b"some model")
    return file


def test_a_former_name_is_a_framework_with_its_network() -> None:
    for former, program in FORMER.items():
        assert choose(former, None, Path("w")).program == program
    assert choose("mxnet_alexnet", None) == choose("mxnet", None) == choose("mxnet", "alexnet")
    with pytest.raises(JobError, match="--engine onnx_alexnet already includes its network: leave out --model"):
        choose("onnx_alexnet", "alexnet")


def test_a_file_is_called_by_its_digest_and_brings_its_preparation(onnx: Path) -> None:
    digits = hashlib.sha256(b"some model").hexdigest()[:12]
    assert choose("onnx", str(onnx)) == Network("onnx", digits, onnx)
    first = choose("onnx", str(onnx)).model
    (onnx.parent / "own.toml").write_text("crop = [8, 8]")
    again = choose("onnx", str(onnx))
    onnx.write_bytes(b"another model")

    assert again.model == first
    assert again.preparation == onnx.parent / "own.toml"
    assert choose("onnx", str(onnx)).model != first


@pytest.mark.parametrize(
    ("engine", "model", "weights", "reason"),
    [
        ("onnx", "vgg", None, "model 'vgg' is unknown to onnx, and there is no such file: choose one of alexnet"),
        ("mxnet", "alexnet_int8", None, "model 'alexnet_int8' is unknown to mxnet"),
        ("mxnet", "own.onnx", None, "ONNX files go with --engine onnx"),
        ("mxnet", "folder", None, "is 0 symbols"),
        ("mxnet", "net-symbol.json", None, r"there is no net-0000\.params beside"),
        ("onnx", "net-symbol.json", None, "give --engine mxnet for a Gluon symbol"),
        ("onnx", "own.onnx", "w", "--weights are parameters of alexnet"),
    ],
)
def test_what_does_not_go_together_is_refused(
    engine: str, model: str, weights: str | None, reason: str, onnx: Path
) -> None:
    (onnx.parent / "folder").mkdir()
    (onnx.parent / "net-symbol.json").write_text("{}")
    path = onnx.parent / model
    with pytest.raises(JobError, match=reason):
        choose(engine, str(path) if path.exists() else model, Path(weights) if weights else None)


def test_the_newest_parameters_beside_a_symbol_are_taken(tmp_path: Path) -> None:
    for name in ("net-symbol.json", "net-0000.params", "net-0012.params", "net.toml"):
        (tmp_path / name).write_text("x")

    found = choose("mxnet", str(tmp_path), labels=Path("l"))

    assert found.staged_names() == {
        "graph": "graph-net-symbol.json",
        "weights": "weights-net-0012.params",
        "preparation": "preparation-net.toml",
        "labels": "labels-l",
    }


def test_workers_find_beside_them_what_was_staged() -> None:
    settings = replace(SETTINGS, engine="onnx", model="abc", graph="graph-x", labels="labels-y")

    assert settings.files == ("graph-x", "labels-y")
    assert settings.network == Network("onnx", "abc", Path("graph-x"), None, None, Path("labels-y"))


def test_a_job_with_another_network_is_not_planned_by_alexnet_s_speeds(client: InfoClient, onnx: Path) -> None:
    speed_history.prepare(client, choose("onnx", None).program, 32)
    speed_history.record(client, choose("onnx", None).program, 32, {"a": 40, "b": 10})
    own = choose("onnx", str(onnx)).program

    assert speed_history.recorded_speeds(client, own, 32) == {}
    speed_history.prepare(client, own, 32)
    speed_history.record(client, own, 32, {"a": 5})
    assert speed_history.recorded_speeds(client, own, 32) == {"a": 5}
    assert speed_history.recorded_speeds(client, "onnx_alexnet", 32) == {"a": 40, "b": 10}
