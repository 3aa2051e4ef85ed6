"""`nodewise job train` and `quantize`, with the worker's real Python behind them."""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from jobs.commands.job.job_train import quantize, train
from jobs.errors import JobError
from jobs.images import labels


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of five small pictures."""
    made = tmp_path / "pictures"
    made.mkdir()
    shown = {f"{at}.png": ("dark", "light")[at % 2] for at in range(10)}
    for name, shows in shown.items():
        Image.new("RGB", (80, 60), "black" if shows == "dark" else "white").save(made / name)
    labels.write(made, shown, ["dark", "light"])
    return made


def call(command: click.Command, *arguments: object) -> Result:
    """Its end; a refusal is raised as the front door would see it."""
    result = CliRunner().invoke(command, [str(one) for one in arguments])
    if isinstance(result.exception, JobError):
        raise result.exception
    return result


def test_weights_classes_and_what_was_measured_lie_beside_each_other(folder: Path, tmp_path: Path) -> None:
    result = call(train, folder, "--weights", tmp_path / "photos.params", "--no-int8", "--steps", 1, "--json")

    assert result.exit_code == 0
    made = json.loads(result.stdout)
    assert made["held_out"] == 2
    assert made["classes"] == ["dark", "light"]
    assert (tmp_path / "photos.params").stat().st_size > 200_000_000
    assert (tmp_path / "photos.classes.txt").read_text() == "dark\nlight\n"
    assert json.loads((tmp_path / "photos.json").read_text()) == made
    assert {path.name for path in tmp_path.glob("photos.*")} == {"photos.params", "photos.classes.txt", "photos.json"}


def test_too_few_pictures_for_8_bits_are_told_before_anything_is_learned(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"^10 images are too few .* 100 to judge by are needed: .* with --no-int8$"):
        call(train, folder, "--weights", tmp_path / "w.params", "--steps", 1)
    assert {path.name for path in tmp_path.iterdir()} == {"pictures"}


@pytest.fixture
def faint(tmp_path: Path) -> Path:
    """Images of nearly one colour among a few loud ones, beside which 8 bits are too few to tell them apart."""
    made, chance = tmp_path / "faint", np.random.default_rng(1)
    made.mkdir()
    for at in range(164):
        loudness = 4 if at % 8 else 120
        pixels = np.array([124, 116, 104]) + chance.integers(-loudness, loudness + 1, (3, 3, 3))
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(made / f"{at}.png")
    classes = [str(number) for number in range(32)]
    labels.write(made, {f"{at}.png": classes[at % 32] for at in range(164)}, classes)
    return made


def test_a_network_that_8_bits_change_is_kept_with_a_note(faint: Path, tmp_path: Path) -> None:
    (tmp_path / "w.int8.onnx").write_text("of other weights")

    result = call(train, faint, "--weights", tmp_path / "w.params", "--steps", 1)

    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "of 32 images that it had not seen" in said
    assert "no model in 8 bits: the 8-bit network names the same class as the float32 one for" in said
    made = json.loads((tmp_path / "w.json").read_text())
    assert made["int8"]["weights"] is None
    assert "of 100 images, and 99% are needed: train it longer" in made["int8"]["note"]
    assert {path.name for path in tmp_path.glob("w.*")} == {"w.params", "w.classes.txt", "w.json"}


def test_a_refusal_of_the_other_python_is_ours(folder: Path, tmp_path: Path) -> None:
    (folder / labels.LABELS).unlink()
    with pytest.raises(JobError, match=r"labels\.tsv cannot be read"):
        call(train, folder, "--weights", tmp_path / "w.params")
    with pytest.raises(JobError, match=r"w\.params cannot be read: No such file or directory"):
        call(quantize, folder, "--weights", tmp_path / "w.params")
    assert {path.name for path in tmp_path.iterdir()} == {"pictures"}


def test_a_python_that_cannot_do_it_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"/missing/python cannot be started \(No such file or directory\): name"):
        call(train, folder, "--weights", tmp_path / "w", "--worker-python", "/missing/python")
    with pytest.raises(JobError, match=r"/bin/false ended before it was done \(status 1\): it said nothing"):
        call(train, folder, "--weights", tmp_path / "w", "--worker-python", "/bin/false")
