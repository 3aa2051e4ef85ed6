"""The real network on real MXNet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jobs.engines import create
from jobs.engines.mxnet_alexnet import MxnetAlexnet


@pytest.fixture(scope="module")
def engine() -> MxnetAlexnet:
    made = create("mxnet_alexnet")
    assert isinstance(made, MxnetAlexnet)
    made.load(None, batch=4)
    return made


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((4, 3, 224, 224), dtype=np.float32)


def test_every_picture_gets_a_thousand_probabilities(engine: MxnetAlexnet, pictures: np.ndarray) -> None:
    probabilities = engine.infer(pictures)

    assert probabilities.shape == (4, 1000)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


def test_a_short_batch_gives_the_same_as_a_full_one(engine: MxnetAlexnet, pictures: np.ndarray) -> None:
    np.testing.assert_allclose(engine.infer(pictures[:1]), engine.infer(pictures)[:1], rtol=1e-4)


def test_seeded_weights_are_the_same_in_every_process(engine: MxnetAlexnet, pictures: np.ndarray) -> None:
    other = create("mxnet_alexnet")
    other.load(None, batch=4)

    np.testing.assert_allclose(other.infer(pictures), engine.infer(pictures), rtol=1e-5)


def test_weights_of_the_user_s_own_are_used(engine: MxnetAlexnet, pictures: np.ndarray, tmp_path: Path) -> None:
    import mxnet as mx
    from mxnet.gluon.model_zoo import vision

    mx.random.seed(99)
    net = vision.alexnet()
    net.initialize(mx.init.Xavier())
    net(mx.nd.zeros((1, 3, 224, 224)))
    net.save_parameters(str(tmp_path / "own.params"))
    own = create("mxnet_alexnet")
    own.load(tmp_path / "own.params", batch=4)

    expected = mx.nd.softmax(net(mx.nd.array(pictures))).asnumpy()

    np.testing.assert_allclose(own.infer(pictures), expected, rtol=1e-3)
    assert np.abs(own.infer(pictures) - engine.infer(pictures)).max() > 1e-6


def test_weights_that_are_none_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "cat.params").write_bytes(b"not parameters")

    with pytest.raises(ValueError, match=r"cat\.params does not fit AlexNet"):
        create("mxnet_alexnet").load(tmp_path / "cat.params", batch=1)
