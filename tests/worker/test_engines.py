"""AlexNet on every framework: one life, the same numbers, and weights that do not fit."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from jobs.engines import alexnet, gluon_file, gluon_net, onnx_graph
from jobs.engines.description import ImageInput
from jobs.engines.loading import Loaded, load
from jobs.engines.network import NAMED, choose
from jobs.engines.parameters import parameters
from jobs.training.labelled_images import batches
from jobs.training.train import preparation_of
from locality.program_names import FORMER
from tests.worker.trained import Trained

EXACT = ("mxnet_alexnet", "onnx_alexnet")
ENGINES = sorted(FORMER)


def loaded_as(name: str, weights: Path | None = None, batch: int = 4) -> Loaded:
    return load(choose(name, None, weights), batch)


@pytest.fixture(scope="module")
def loaded(trained: Trained) -> dict[str, Loaded]:
    weights = {name: trained.int8 if name.endswith("int8") else trained.weights for name in ENGINES}
    return {name: loaded_as(name, weights[name], 8) for name in ENGINES}


@pytest.fixture(scope="module")
def seeded() -> dict[str, Loaded]:
    return {name: loaded_as(name) for name in EXACT}


@pytest.fixture(scope="module")
def noise() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((4, 3, 224, 224), dtype=np.float32)


def in_a_child(loaded: Loaded, pictures: np.ndarray) -> np.ndarray:
    """What a process that was forked after `load` makes of the pictures."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs is a failure, too
        try:
            with os.fdopen(write, "wb") as out:
                out.write(loaded.probabilities(pictures).tobytes())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        content = answer.read()
    assert os.waitpid(child, 0)[1] == 0
    return np.frombuffer(content, dtype=np.float32).reshape(len(pictures), -1)


@pytest.mark.parametrize("name", ENGINES)
def test_what_was_loaded_once_infers_in_forked_children(
    name: str, loaded: dict[str, Loaded], noise: np.ndarray
) -> None:
    before = loaded[name].probabilities(noise)

    children = [in_a_child(loaded[name], noise) for _ in range(2)]

    for made in children:
        np.testing.assert_array_equal(made, before)
    np.testing.assert_array_equal(loaded[name].probabilities(noise), before)


def test_a_session_starts_no_thread_that_a_fork_would_lose() -> None:
    import onnxruntime  # noqa: F401 the library itself starts one, which no session needs

    before = threads()

    session = onnx_graph.session_of(alexnet.NETWORK, parameters(alexnet.NETWORK, None))
    session.run(None, {onnx_graph.INPUT: np.zeros((2, 3, 224, 224), dtype=np.float32)})

    assert not threads() - before


def threads() -> set[str]:
    return {task.name for task in Path("/proc/self/task").iterdir()}


@pytest.mark.parametrize("name", ENGINES)
def test_as_many_probabilities_as_the_weights_have_classes(
    name: str, loaded: dict[str, Loaded], noise: np.ndarray
) -> None:
    probabilities = loaded[name].probabilities(noise)

    assert probabilities.shape == (4, 5)
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("name", ENGINES)
def test_a_short_batch_gives_the_same_as_a_full_one(name: str, loaded: dict[str, Loaded], noise: np.ndarray) -> None:
    full = loaded[name].probabilities(noise)

    np.testing.assert_allclose(loaded[name].probabilities(noise[:1]), full[:1], rtol=1e-3, atol=1e-6)


@pytest.fixture(scope="module")
def seen(loaded: dict[str, Loaded], trained: Trained) -> dict[str, np.ndarray]:
    """What each engine makes of all the real pictures."""
    made: dict[str, list[np.ndarray]] = {name: [] for name in loaded}
    for pixels in batches(trained.pictures, 8, preparation_of(alexnet.NETWORK)):
        for name, one in loaded.items():
            made[name].append(one.probabilities(pixels))
    return {name: np.concatenate(parts) for name, parts in made.items()}


def test_the_exact_engines_see_the_same_five_classes_in_real_pictures(seen: dict[str, np.ndarray]) -> None:
    ours, theirs = (seen[name] for name in EXACT)

    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    for one, other in zip(ours, theirs, strict=True):
        first, second = (np.argsort(row, kind="stable")[::-1][:5] for row in (one, other))
        swapped = first != second
        np.testing.assert_allclose(one[first[swapped]], one[second[swapped]], atol=1e-5)
    assert len(ours) >= 100


def test_in_8_bits_it_sees_the_same_best_class(seen: dict[str, np.ndarray]) -> None:
    same = seen["onnx_alexnet_int8"].argmax(axis=1) == seen["onnx_alexnet"].argmax(axis=1)

    assert same.mean() >= 0.99


def test_seeded_weights_are_the_same_numbers_in_both(seeded: dict[str, Loaded], noise: np.ndarray) -> None:
    ours, theirs = (seeded[name].probabilities(noise) for name in EXACT)

    assert ours.shape == (4, 1000)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    np.testing.assert_array_equal(ours.argmax(axis=1), theirs.argmax(axis=1))


def test_seeded_weights_are_the_same_in_every_process() -> None:
    values = parameters(alexnet.NETWORK, None)

    assert values["output.weight"][7, 7] == np.float32(-0.012302692979574203)
    assert not values["output.bias"].any()


def test_a_network_that_only_infers_keeps_no_gradients() -> None:
    import mxnet as mx

    net = gluon_net.net(alexnet.NETWORK, 1000)
    gluon_net.fill(net, parameters(alexnet.NETWORK, None))
    net(mx.nd.zeros((1, 3, 224, 224)))

    for parameter in net.collect_params().values():
        with pytest.raises(RuntimeError, match="grad_req='null'"):
            parameter.grad()


def test_alexnet_is_that_of_the_model_zoo(noise: np.ndarray, tmp_path: Path) -> None:
    import mxnet as mx
    from mxnet.gluon.model_zoo import vision

    mx.random.seed(99)
    net = vision.alexnet()
    net.initialize(mx.init.Xavier())
    expected = mx.nd.softmax(net(mx.nd.array(noise))).asnumpy()
    net.save_parameters(str(tmp_path / "own.params"))

    for name in EXACT:
        own = loaded_as(name, tmp_path / "own.params").probabilities(noise)
        np.testing.assert_allclose(own, expected, rtol=1e-3)
    assert expected.std() > 1e-6


def test_seeded_in_8_bits_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"needs a quantized model .* `nodewise job quantize"):
        loaded_as("onnx_alexnet_int8")


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"not parameters at all, but long enough", "does not begin like Gluon parameters"),
        ("cut", "ends too early"),
        ("other", "its output.weight has the shape"),
        ("fewer", "it has no output.bias"),
        ("more", "it also has extra"),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name(
    name: str, content: bytes | str, reason: str, trained: Trained, tmp_path: Path
) -> None:
    file = tmp_path / "cat.params"
    file.write_bytes(content if isinstance(content, bytes) else unfit(content, trained, tmp_path))

    with pytest.raises(ValueError, match=rf"^cat\.params does not fit AlexNet: .*{reason}"):
        loaded_as(name, file)


def unfit(how: str, trained: Trained, folder: Path) -> bytes:
    """A file that is nearly AlexNet's."""
    import mxnet as mx

    if how == "cut":
        return trained.weights.read_bytes()[:5000]
    arrays = mx.nd.load(str(trained.weights))
    if how == "fewer":
        del arrays["output.bias"]
    elif how == "more":
        arrays["extra"] = mx.nd.zeros((1,))
    else:
        arrays["output.weight"] = mx.nd.zeros((10, 5))
    mx.nd.save(str(folder / "made"), arrays)
    return (folder / "made").read_bytes()


def test_every_kind_of_number_that_mxnet_saves_is_read_as_it_is(tmp_path: Path) -> None:
    import mxnet as mx

    arrays = {kind: mx.nd.array(np.arange(6).reshape(2, 3), dtype=kind) for kind in ("float16", "float64", "int8")}
    mx.nd.save(str(tmp_path / "all"), arrays)

    read = gluon_file.read(tmp_path / "all")

    assert {name: array.dtype.name for name, array in read.items()} == {name: name for name in arrays}
    for array in read.values():
        np.testing.assert_array_equal(array, np.arange(6).reshape(2, 3))


def test_a_model_that_was_not_compared_or_failed_is_refused(trained: Trained, tmp_path: Path) -> None:
    import onnx

    for agreement, said in ((None, "was never compared"), ("0.98", "agrees with float32 on 98.0% of 101 images")):
        model = onnx.load(trained.int8)
        del model.metadata_props[:]
        if agreement:
            model.metadata_props.add(key="nodewise.top1_agreement", value=agreement)
            model.metadata_props.add(key="nodewise.top1_pictures", value="101")
        onnx.save(model, tmp_path / "own.int8.onnx")

        with pytest.raises(ValueError, match=rf"^own\.int8\.onnx {said}.*: make one with"):
            loaded_as("onnx_alexnet_int8", tmp_path / "own.int8.onnx")
    with pytest.raises(ValueError, match=r"^own\.int8\.onnx agrees with float32 on 98.0%"):
        load(choose("onnx", str(tmp_path / "own.int8.onnx")), 1)


def test_parameters_are_no_model_in_8_bits(trained: Trained) -> None:
    with pytest.raises(ValueError, match=r"weights\.params is not an ONNX model: make one with"):
        loaded_as("onnx_alexnet_int8", trained.weights)


SMALL = """
from jobs.engines.description import ImageInput
from jobs.engines.layers import Convolution, Dense, Flatten, LayeredNetwork, Pooling

NETWORK = LayeredNetwork(
    "small", "Small", ImageInput(16, 16), (Convolution(4, window=3), Pooling(2, stride=2), Flatten(), Dense(8))
)
"""


def test_another_network_with_a_name_is_a_file_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small_network.py").write_text(SMALL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(NAMED, "small", "small_network")
    images = np.random.default_rng(1).standard_normal((3, 3, 16, 16), dtype=np.float32)

    one, other = (load(choose(engine, "small"), 4) for engine in ("mxnet", "onnx"))

    assert one.description.image == other.description.image == ImageInput(16, 16)
    np.testing.assert_allclose(one.probabilities(images), other.probabilities(images), rtol=1e-4)
    assert (choose("onnx", "small_int8").is_int8, choose("onnx", None).model) == (True, "alexnet")
    bad = tmp_path / "bad.params"
    bad.write_bytes(b"")
    with pytest.raises(ValueError, match=r"^bad\.params does not fit Small: the file is empty"):
        load(choose("mxnet", "small", bad), 4)
