"""Images of HDFS to teach AlexNet with: divided as on one machine, named, and varied whoever shows them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from jobs.errors import JobError
from jobs.images import labels
from jobs.kinds.train.alexnet.images_to_learn import ImagesToLearn, Varied
from jobs.kinds.train.alexnet.learner import new_learner, to_arrays
from jobs.training import labelled_images
from jobs.training.train import LAST_RATE, RATE
from tests.worker.training_data.shelf import Shelf

CROP = (8, 8)
PER_CLASS = 10


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """/flat without sub-folders, with its table; /named with a sub-folder a class. Files stand in the place of HDFS."""
    monkeypatch.setattr("jobs.training_data.images.HdfsFiles", lambda: Shelf(tmp_path))
    chance, shown = np.random.default_rng(3), {}
    for at in range(2 * PER_CLASS):
        name = ("dark", "light")[at % 2]
        for file in (tmp_path / "flat" / f"{at}.png", tmp_path / "named" / name / f"{at}.png"):
            file.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(file), chance.integers(256, size=(20, 24, 3), dtype=np.uint8))
        shown[f"{at}.png"] = name
    labels.write(tmp_path, shown, ["dark", "light"])
    return tmp_path


def learn(pictures: Path, seed: int = 1) -> ImagesToLearn:
    return ImagesToLearn("hdfs:///flat", str(pictures / labels.LABELS), seed, CROP)


def test_the_same_images_are_held_out_as_on_one_machine(pictures: Path) -> None:
    images = learn(pictures)
    for name in (labels.LABELS, labels.CLASSES):
        (pictures / name).rename(pictures / "flat" / name)
    learned, held = labelled_images.split(labelled_images.read_labelled(pictures / "flat"), seed=1)

    for numbers, alone in ((images.learned, learned), (images.held, held)):
        assert [Path(images.all.path(number) or "").name for number in numbers] == [file.name for file in alone.files]
        assert images.all.labels[numbers].tolist() == alone.numbers.tolist()
    assert images.classes == alone.classes == ["dark", "light"]


def test_classes_are_called_as_their_sub_folders(pictures: Path) -> None:
    images = ImagesToLearn("hdfs:///named/", None, 1, CROP)

    assert images.classes == ["dark", "light"]
    assert (len(images.learned), len(images.held)) == (16, 4)


def test_one_class_or_too_few_images_of_one_are_refused(pictures: Path) -> None:
    for file in sorted((pictures / "named" / "light").iterdir())[4:]:
        file.unlink()
    with pytest.raises(JobError, match="class light has 4 images: at least 5 of each are needed"):
        ImagesToLearn("/named", None, 1, CROP)
    with pytest.raises(JobError, match="/alone names 1 classes: to learn takes two or more"):
        one = pictures / "alone"
        one.mkdir()
        (pictures / "named" / "dark").rename(one / "dark")
        ImagesToLearn("/alone", None, 1, CROP)


def test_a_sample_is_cut_alike_wherever_and_whenever_it_is_shown(pictures: Path) -> None:
    images = learn(pictures)
    data = Varied(images, 40, seed=1)

    together, numbers = data.batch_of(range(40))
    alone = np.concatenate([data.batch_of([number])[0] for number in reversed(range(40))])[::-1]

    np.testing.assert_array_equal(together, alone)
    assert together.shape == (40, 3, *CROP)
    assert numbers.tolist() == [int(images.all.labels[images.learned[at % 16]]) for at in range(40)]
    assert np.abs(together[0] - together[16]).max() > 0.1  # the same image, shown again
    assert np.abs(together - Varied(images, 40, seed=2).batch_of(range(40))[0]).max() > 0.1


def test_each_image_is_shown_as_often_as_any_other_and_none_that_is_held_out(pictures: Path) -> None:
    images = learn(pictures)
    shown = Counter(Varied(images, 40, seed=1)._rows(range(40)).tolist())

    assert set(shown) == set(images.learned)
    assert set(shown.values()) == {2, 3}


def test_the_images_are_handed_out_as_they_are_stored(pictures: Path) -> None:
    images = learn(pictures)

    stored = list(images.all.stored(images.held))

    assert stored == [(pictures / (images.all.path(number) or "")[1:]).read_bytes() for number in images.held]


@pytest.mark.parametrize("count", [1, 2])
def test_a_network_takes_images_however_few(pictures: Path, count: int) -> None:
    images = learn(pictures)
    given = map(torch.as_tensor, Varied(images, 4, seed=1).batch_of(range(count)))

    pixels, numbers = to_arrays(list(given))

    assert (pixels.shape[0], numbers.shape) == (count, (count,))


def test_a_learner_takes_a_state_and_its_rate_falls_evenly() -> None:
    steps = 4
    net, learner = new_learner(2, 1, steps)
    state = learner.state()
    learner.load(state)

    assert learner.state() == state
    assert net.output.weight.shape == (2, 4096)
    rates = learner._optimizer._optimizer.lr_scheduler
    expected = [RATE * (1 - (1 - LAST_RATE) * step / steps) for step in range(1, steps + 1)]
    assert [rates(step) for step in range(1, steps + 1)] == pytest.approx(expected)
