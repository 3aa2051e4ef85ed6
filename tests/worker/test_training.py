"""Training and quantizing, as a process of the worker's environment."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from jobs.engines import alexnet, onnx_graph
from jobs.engines.parameters import parameters
from jobs.engines.preparation_file import PreparationFile
from jobs.errors import JobError
from jobs.images import labels
from jobs.training import labelled_images
from jobs.training.quantize import CALIBRATION, quantize
from jobs.training.train import preparation_of, train
from jobs.training.writing import open_part
from tests.worker.conftest import ROOT
from tests.worker.trained import Trained


def run(*arguments: object) -> tuple[int, list[dict[str, object]]]:
    command = [sys.executable, "-W", "ignore", "-m", "jobs.training", *map(str, arguments)]
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE)
    return ran.returncode, [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes, five small images each."""
    made = tmp_path / "pictures"
    made.mkdir()
    shown = {}
    for at in range(10):
        name, value = (("dark", 20), ("light", 230))[at % 2]
        cv2.imwrite(str(made / f"{at}.png"), np.full((60, 80, 3), value, dtype=np.uint8))
        shown[f"{at}.png"] = name
    labels.write(made, shown, ["dark", "light"])
    return made


def test_it_recognises_pictures_it_has_not_learned_from(trained: Trained) -> None:
    done = trained.said[-1]["done"]
    assert isinstance(done, dict)

    assert done["held_out"] == 30
    assert done["learned"] == 135
    assert done["accuracy"] >= 0.95
    assert sum(of for _, of in done["by_class"].values()) == 30
    assert done["int8"]["agreement"] >= 0.99
    assert done["int8"]["pictures"] == 165 - CALIBRATION
    assert parameters(alexnet.NETWORK, trained.weights)["output.weight"].shape == (5, 4096)


def test_it_tells_every_step(trained: Trained) -> None:
    training = [line for line in trained.said if line.get("doing") == "training"]

    assert [line["step"] for line in training] == list(range(1, 21))
    assert {line["of"] for line in training} == {20}


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(folder: Path, tmp_path: Path) -> None:
    assert run("train", folder, f"--weights={tmp_path / 'w'}", "--steps=1")[0] == 0
    made = parameters(alexnet.NETWORK, tmp_path / "w")
    learned, held = labelled_images.split(labelled_images.read_labelled(folder), seed=1)

    nets = (train(alexnet.NETWORK, learned, held, seed, 1, lambda step, of, loss: None).net for seed in (1, 2))
    same, other = (net.features[9].weight.data().asnumpy() for net in nets)

    one = made["features.9.weight"]
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.01  # more than a step changes
    assert made["output.weight"].shape == (2, 4096)


def test_no_picture_that_is_held_out_is_learned_from(folder: Path) -> None:
    everything = labelled_images.read_labelled(folder)

    learned, held = labelled_images.split(everything, seed=1)

    assert not set(learned.files) & set(held.files)
    assert sorted(learned.files + held.files) == sorted(everything.files)
    assert sorted(held.numbers.tolist()) == [0, 1]
    assert [everything.classes[number] for number in everything.numbers] == ["dark", "light"] * 5


def test_a_varied_picture_is_of_the_network_s_shape_and_never_twice_the_same(trained: Trained) -> None:
    chance = np.random.default_rng(1)

    one, other = (labelled_images.vary(trained.pictures[0], preparation_of(alexnet.NETWORK), chance) for _ in range(2))

    assert one.shape == other.shape == (3, 224, 224)
    assert np.abs(one - other).max() > 0.1


def refusals(folder: Path) -> Iterator[tuple[str, str]]:
    table = (folder / labels.LABELS).read_text()
    yield table.replace("light", "dark").replace("\t1\t", "\t0\t"), "names 1 classes"
    yield table + "11.png\t0\tdark\n", r"11\.png is not there"
    yield "\n".join(table.splitlines()[:8]), "class dark has 4 images: at least 5"
    yield table.replace("\t1\t", "\t9999\t"), "class number 9999 for 2 classes"


def test_folders_that_cannot_teach_are_refused(folder: Path) -> None:
    for table, reason in list(refusals(folder)):
        (folder / labels.LABELS).write_text(table)
        with pytest.raises(JobError, match=reason):
            labelled_images.split(labelled_images.read_labelled(folder), seed=1)


def test_a_broken_picture_is_named(folder: Path, tmp_path: Path) -> None:
    for at in range(10):
        (folder / f"{at}.png").write_bytes(b"broken")

    status, said = run("train", folder, f"--weights={tmp_path / 'w'}", "--steps=2")

    assert status == 1
    assert ".png cannot be used (not an image of a known format" in str(said[-1]["refused"])


def test_a_place_that_refuses_weights_is_one_sentence_before_any_step(folder: Path, tmp_path: Path) -> None:
    status, said = run("train", folder, f"--weights={tmp_path / 'missing' / 'w'}", "--steps=2")

    assert status == 1
    assert said == [{"refused": f"{tmp_path / 'missing' / 'w'} cannot be written: No such file or directory"}]


def test_too_few_pictures_to_judge_by_are_refused(trained: Trained, tmp_path: Path) -> None:
    model = onnx_graph.model(alexnet.NETWORK, parameters(alexnet.NETWORK, trained.weights))

    with pytest.raises(JobError, match="100 images are too few to quantize with: 64 to calibrate and 100 to judge"):
        quantize(model, PreparationFile(), trained.pictures[:100], tmp_path / "q.onnx", lambda step, of: None)


def test_a_network_that_8_bits_change_does_not_pass_the_gate(trained: Trained, tmp_path: Path) -> None:
    # A weight that is never used, so large that beside it all others of its layer become 0 in 8 bits.
    values = {name: value.copy() for name, value in parameters(alexnet.NETWORK, trained.weights).items()}
    values["features.9.weight"][0], values["features.9.bias"][0] = 0, -1
    values["features.11.weight"][:, 0] = 1e4

    told = r"names the same class as the float32 one for .* of 101 images, and 99% are needed"
    with pytest.raises(JobError, match=told):
        quantize(
            onnx_graph.model(alexnet.NETWORK, values),
            PreparationFile(),
            trained.pictures,
            tmp_path / "q.onnx",
            lambda step, of: None,
        )

    assert list(tmp_path.iterdir()) == []


def test_a_model_that_cannot_be_written_is_named_before_any_work(trained: Trained, tmp_path: Path) -> None:
    steps: list[int] = []
    (tmp_path / "folder.onnx").mkdir()
    for name, reason in (("missing/q.onnx", "No such file or directory"), ("folder.onnx", "Is a directory")):
        with pytest.raises(JobError, match=rf"{name} cannot be written: {reason}"):
            quantize(None, PreparationFile(), trained.pictures, tmp_path / name, lambda step, of: steps.append(step))
    assert not steps


def test_a_file_stands_under_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "q.onnx"
    file.write_text("old")

    with pytest.raises(KeyboardInterrupt), open_part(file) as part:
        part.write_text("half of the n")
        raise KeyboardInterrupt
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"q.onnx": "old"}

    with open_part(file) as part:
        part.write_text("new")
        assert file.read_text() == "old"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"q.onnx": "new"}
