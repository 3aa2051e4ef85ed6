"""Networks that others wrote: real exporters' ONNX files, hand-made ones, and Gluon symbols."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.runner import Runner

from jobs.engines import alexnet, onnx_graph
from jobs.engines.loading import Loaded, load
from jobs.engines.network import choose
from jobs.engines.parameters import parameters
from jobs.engines.preparation_file import PreparationFile
from jobs.errors import JobError
from jobs.images.rows import TENSORS_KEY, TensorRows, find_flaw, row_bytes, stream
from jobs.images.rows_size import ROW_BYTES
from jobs.training.quantize import quantize
from tests.worker.trained import Trained

LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))
CHANCE = np.random.default_rng(1)
F32 = TensorProto.FLOAT

Info = tuple[str, Sequence[int | str]]
COLOURS: Sequence[int | str] = ["n", 3, 8, 8]


def assert_close(seen: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(seen), expected, rtol=1e-3, atol=1e-3)


def made(
    file: Path,
    nodes: Sequence[Any],
    takes: Sequence[Info],
    gives: Sequence[Info],
    weights: Mapping[str, np.ndarray] | None = None,
    kind: int = F32,
) -> Path:
    """An ONNX file with these parts."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in takes],
        [helper.make_tensor_value_info(name, F32, shape) for name, shape in gives],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file.write_bytes(model.SerializeToString())
    return file


def loaded(file: Path, prepared: str = "", engine: str = "onnx", labels: Path | None = None) -> Loaded:
    if prepared:
        file.with_name(file.name.removesuffix(".onnx").removesuffix("-symbol.json") + ".toml").write_text(prepared)
    return load(choose(engine, str(file), None, labels), 4)


def pooled(file: Path, takes: Sequence[int | str], classes: int = 3, gives: Sequence[int | str] = ("n", 3)) -> Path:
    """The mean of each channel, times a matrix."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"]),
    ]
    return made(file, nodes, [("x", takes)], [("y", gives)], {"w": np.eye(3, classes, dtype=np.float32) * 4})


@pytest.mark.parametrize("file", LIGHT, ids=lambda file: file.stem)
def test_what_real_exporters_wrote_gives_what_they_say(file: Path) -> None:
    network = loaded(file)
    model = onnx.load(file)
    weights = {one.name for one in model.graph.initializer}
    (images,) = [one for one in model.graph.input if one.name not in weights]
    image = Runner.generate_dummy_data(images, seed=0, name="", random=False)
    expected = numpy_helper.to_array(onnx.load_tensor(file.with_name(f"{file.stem}_output_0.pb")))

    (once,) = network.engine.infer(image)
    (thrice,) = network.engine.infer(np.concatenate([image] * 3))

    assert_close(np.asarray(once), expected)
    assert_close(np.asarray(thrice), np.concatenate([expected] * 3))
    assert network.probabilities(image).shape == (1, 1000)
    assert network.description.notes == ("its batch is fixed at 1: it was changed to take any number of images",)


def test_there_are_as_many_light_models_as_onnx_ships() -> None:
    assert {file.stem.removeprefix("light_") for file in LIGHT} == {
        "bvlc_alexnet",
        "densenet121",
        "inception_v1",
        "inception_v2",
        "resnet50",
        "shufflenet",
        "squeezenet",
        "vgg19",
        "zfnet512",
    }


def test_a_detector_gives_all_its_outputs_as_lists(tmp_path: Path) -> None:
    weights: dict[str, np.ndarray] = {
        "w": CHANCE.standard_normal((8, 3, 4, 4)).astype(np.float32),
        "b": np.array([1, 4, -1], np.int64),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], strides=[4, 4]),
        helper.make_node("Split", ["c"], ["boxed", "s"], axis=1),
        helper.make_node("Reshape", ["boxed", "b"], ["boxes"]),
        helper.make_node("Sigmoid", ["s"], ["path"]),
    ]
    gives = [("boxes", [1, 4, 96]), ("path", [1, 4, 8, 12])]
    file = made(tmp_path / "detector.onnx", nodes, [("x", [1, 3, 32, 48])], gives, weights)

    network = loaded(file, 'output = "tensors"\nresize = "stretch"\n')
    images = CHANCE.standard_normal((3, 3, 32, 48)).astype(np.float32)
    results = network.engine.infer(images)

    assert_close(np.asarray(results[0])[:1], np.asarray(network.engine.infer(images[:1])[0]))
    assert network.tensors is not None
    assert [(one.name, one.shape) for one in network.tensors] == [("boxes", (4, 96)), ("path", (4, 8, 12))]
    rows = TensorRows("worker1", "onnx.abc", network.tensors)
    table = pa.ipc.open_stream(stream(rows.schema, [rows.of(["/a", "/b", "/c"], results), rows.failures({"/d": "no"})]))
    found = table.read_all()
    found.validate(full=True)
    assert not find_flaw(found.schema)
    assert found.schema.names == ["path", "boxes", "path_", "node_name", "engine", "error"]
    assert found.column("boxes").null_count == 1
    np.testing.assert_allclose(found.column("path_")[1].as_py(), np.asarray(results[1][1]).ravel())
    assert (
        b'"column": "path_", "name": "path", "dtype": "float32", "shape": [4, 8, 12]'
        in found.schema.metadata[TENSORS_KEY]
    )


def found_boxes(file: Path, shape: Sequence[int | str] = ("found", 4)) -> Path:
    """As many rows of four as pixels of the image are above 0: a length that differs between images."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["bright"]),
        helper.make_node("NonZero", ["bright"], ["places"]),
        helper.make_node("Transpose", ["places"], ["rows"]),
        helper.make_node("Cast", ["rows"], ["boxes"], to=F32),
    ]
    return made(file, nodes, [("x", [1, 3, 8, 8])], [("boxes", shape)], {"zero": np.zeros(1, np.float32)})


def test_lengths_that_a_model_leaves_open_differ_and_the_others_are_kept(tmp_path: Path) -> None:
    network = loaded(found_boxes(tmp_path / "detector.onnx"), 'output = "tensors"\nresize = "stretch"\n')
    images = np.full((2, 3, 8, 8), -1, np.float32)
    images[0, 0, 0, :2] = images[1] = 1

    assert network.tensors is not None
    rows = TensorRows("worker1", "onnx.abc", network.tensors, largest_row=ROW_BYTES + 100 * 16)
    table = pa.ipc.open_stream(stream(rows.schema, [rows.of(["/a", "/b"], network.engine.infer(images))])).read_all()
    table.validate(full=True)
    place = tmp_path / "part.parquet"
    pq.write_table(table, place)

    stored = pq.read_schema(place).metadata[TENSORS_KEY]
    assert json.loads(stored) == [{"column": "boxes", "name": "boxes", "dtype": "float32", "shape": [None, 4]}]
    assert [len(found) if found else found for found in table.column("boxes").to_pylist()] == [8, None]
    assert table.column("error").to_pylist() == [
        None,
        "its outputs have 3,072 bytes, and 1,600 can be stored: try a smaller --batch",
    ]


def test_an_open_length_counts_as_what_came_when_the_model_was_tried(tmp_path: Path) -> None:
    wide = found_boxes(tmp_path / "wide.onnx")
    network = loaded(wide, 'output = "tensors"\nresize = "stretch"\n')

    assert network.tensors is not None
    [output] = network.tensors
    assert output.tried[0] > 50  # half of the noise is above 0
    assert row_bytes(network.tensors) == ROW_BYTES + output.tried[0] * 16


def test_channels_may_come_last_and_the_image_is_what_was_decoded(tmp_path: Path) -> None:
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    file = made(tmp_path / "nhwc.onnx", nodes, [("x", ["n", 8, 6, 3])], [("y", ["n", 8, 6, 3])])

    network = loaded(file, 'output = "tensors"\nmean = [0, 0, 0]\nstd = [1, 1, 1]\nscale = 1\nchannels = "BGR"\n')
    red = bytes(cv2.imencode(".png", np.full((16, 12, 3), (30, 10, 200), np.uint8))[1])
    (seen,) = network.engine.infer(network.images([red, red]))

    assert network.description.image.layout == "NHWC"
    np.testing.assert_array_equal(np.asarray(seen), np.full((2, 8, 6, 3), (30, 10, 200), np.float32))


def test_whole_numbers_are_pixels_as_they_are(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=F32)]
    plane: Sequence[int | str] = ["n", 1, 4, 4]
    file = made(tmp_path / "grey.onnx", nodes, [("x", plane)], [("y", plane)], kind=TensorProto.UINT8)

    network = loaded(file, 'output = "tensors"\n')
    grey = bytes(cv2.imencode(".png", np.full((9, 9, 3), 77, np.uint8))[1])

    np.testing.assert_array_equal(
        np.asarray(network.engine.infer(network.images([grey]))[0]), np.full((1, 1, 4, 4), 77)
    )
    with pytest.raises(ValueError, match="takes uint8 pixels: leave mean, std and scale out"):
        loaded(file, 'output = "tensors"\nscale = 255\n')


def test_weights_among_the_inputs_are_no_inputs(tmp_path: Path) -> None:
    file = pooled(tmp_path / "old.onnx", ["n", 3, 8, 8])
    model = onnx.load(file)
    model.graph.input.append(helper.make_tensor_value_info("w", F32, [3, 3]))
    onnx.save(model, file)
    images = CHANCE.standard_normal((2, 3, 8, 8)).astype(np.float32)

    (seen,) = loaded(file).engine.infer(images)

    assert_close(np.asarray(seen), images.mean(axis=(2, 3)) * 4)


@pytest.mark.parametrize("size", [1, 4])
def test_a_batch_that_cannot_be_changed_is_kept_and_said(
    size: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[2, 3], keepdims=0),
        helper.make_node("Add", ["m", "own"], ["y"]),  # as many rows as images, so that no other number fits
    ]
    own = np.arange(size * 3, dtype=np.float32).reshape(size, 3)
    if size == 1:  # one row would fit any number: a shape that is computed does not
        nodes[1:] = [helper.make_node("Reshape", ["m", "shape"], ["y"])]
    weights = {"own": own} if size > 1 else {}
    if size == 1:
        nodes.insert(1, helper.make_node("Add", ["one", "zero"], ["shape"]))
        weights = {"one": np.array([1, 3], np.int64), "zero": np.array([0, 0], np.int64)}
    file = made(tmp_path / "fixed.onnx", nodes, [("x", [size, 3, 8, 8])], [("y", [size, 3])], weights)

    network = loaded(file)
    images = CHANCE.standard_normal((5, 3, 8, 8)).astype(np.float32)
    (seen,) = network.engine.infer(images)

    rows = np.resize(own, (5, 3)) if size > 1 else 0
    assert_close(np.asarray(seen), images.mean(axis=(2, 3)) + rows)
    (note,) = network.description.notes
    assert f"its batch is fixed at {size} and cannot be changed" in note
    assert note.endswith("one by one" if size == 1 else "in groups")
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith("another batch does not fit: it does not run: [ONNXRuntimeError]")


def refused(folder: Path) -> dict[str, tuple[Path, str, str]]:
    """File, preparation, and why it is refused."""
    two = [helper.make_node("Add", ["x", "z"], ["y"])]
    image = COLOURS
    pooled(folder / "good.onnx", image)
    (folder / "text.onnx").write_text("no model")
    return {
        "two inputs": (
            made(folder / "two.onnx", two, [("x", image), ("z", image)], [("y", image)]),
            "",
            "takes one input, the images, and this one takes 2: x, z",
        ),
        "no size": (pooled(folder / "open.onnx", ["n", 3, "h", "w"]), "", "leaves height or width open: write crop"),
        "no layout": (pooled(folder / "any.onnx", ["n", "c", "h", "w"]), "", "where its channels are: write layout"),
        "flat": (pooled(folder / "flat.onnx", ["n", 3]), "", "has 2 dimensions, and images have 4"),
        "channels": (
            pooled(folder / "deep.onnx", ["n", 7, 8, 8]),
            "",
            "no dimension is 1 or 3, the number of channels",
        ),
        "text": (folder / "text.onnx", "", "text.onnx is not an ONNX model"),
        "crop": (folder / "good.onnx", "crop = [9, 9]", r"crop is \[9, 9\], and the model takes \[8, 8\]"),
        "key": (folder / "good.onnx", "size = 8", "good.toml has the key size, which nothing reads"),
        "value": (folder / "good.onnx", 'crop = "large"', r"crop cannot be 'large': write \[height, width\]"),
        "toml": (folder / "good.onnx", "crop", "good.toml cannot be read"),
        "map": (
            made(folder / "map.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", image)], [("y", image)]),
            "",
            'not a row of numbers, one for each class: write output = "tensors"',
        ),
    }


@pytest.mark.parametrize(
    "what", ["two inputs", "no size", "no layout", "flat", "channels", "text", "crop", "key", "value", "toml", "map"]
)
def test_what_does_not_fit_is_refused_with_the_reason(what: str, tmp_path: Path) -> None:
    file, prepared, reason = refused(tmp_path)[what]

    with pytest.raises(ValueError, match=reason):
        loaded(file, prepared)


def test_an_open_size_is_that_of_the_preparation(tmp_path: Path) -> None:
    network = loaded(pooled(tmp_path / "open.onnx", ["n", "c", "h", "w"]), 'crop = [10, 20]\nlayout = "NCHW"\n')

    assert network.description.image.shape == (3, 10, 20)
    assert network.preparation.resize == 11


def test_numbers_that_come_out_of_no_softmax_become_probabilities(tmp_path: Path) -> None:
    images = CHANCE.standard_normal((2, 3, 8, 8)).astype(np.float32)
    file = pooled(tmp_path / "logits.onnx", ["n", 3, 8, 8])

    np.testing.assert_allclose(loaded(file).probabilities(images).sum(axis=1), 1, rtol=1e-5)
    raw = loaded(file, "softmax = false\n").probabilities(images)
    assert_close(raw, images.mean(axis=(2, 3)) * 4)


def test_labels_must_be_as_many_as_classes(tmp_path: Path) -> None:
    file, labels = pooled(tmp_path / "three.onnx", ["n", 3, 8, 8]), tmp_path / "labels.txt"
    labels.write_text("a\nb\nc\n")
    assert loaded(file, labels=labels).labels == ["a", "b", "c"]
    labels.write_text("a\nb\n")
    with pytest.raises(ValueError, match=r"labels\.txt names 2 classes, and the network tells 3 classes apart"):
        loaded(file, labels=labels)


def exported(folder: Path) -> tuple[Path, Any, np.ndarray]:
    """A small network as Gluon exports it, images, and what it makes of them."""
    import mxnet as mx

    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3, activation="relu"), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(6))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    images = CHANCE.standard_normal((3, 3, 12, 16)).astype(np.float32)
    expected = net(mx.nd.array(images)).asnumpy()
    net.export(str(folder / "small"))
    return folder / "small-symbol.json", images, expected


def test_a_gluon_symbol_gives_what_it_gave_before_it_was_exported(tmp_path: Path) -> None:
    symbol, images, expected = exported(tmp_path)
    with pytest.raises(ValueError, match="does not tell how large its images are: write crop"):
        loaded(symbol, engine="mxnet")

    network = loaded(symbol, "crop = [12, 16]\n", engine="mxnet")

    assert_close(np.asarray(network.engine.infer(images)[0]), expected)
    np.testing.assert_allclose(network.probabilities(images).sum(axis=1), 1, rtol=1e-5)
    assert choose("mxnet", str(tmp_path)) == choose("mxnet", str(symbol))
    with pytest.raises(JobError, match="ONNX files go with --engine onnx"):
        choose("mxnet", str(pooled(tmp_path / "x.onnx", ["n", 3, 8, 8])))
    with pytest.raises(ValueError, match="does not fit: MXNet does not take it"):
        loaded(symbol, "crop = [2, 2]\n", engine="mxnet")


def test_any_classifier_can_be_brought_to_8_bits(trained: Trained, tmp_path: Path) -> None:
    """AlexNet as another program would export it: its batch fixed, its opset old, and logits instead of softmax."""
    model = onnx_graph.model(alexnet.NETWORK, parameters(alexnet.NETWORK, trained.weights))
    del model.graph.node[-1]
    model.graph.output[0].name = "classes"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 1
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    model.opset_import[0].version = 11
    for node in model.graph.node:
        node.name = ""
    onnx.save(model, tmp_path / "own.onnx")
    network = loaded(tmp_path / "own.onnx")

    file = tmp_path / "own.int8.onnx"
    gate = quantize(onnx.load(tmp_path / "own.onnx"), PreparationFile(), trained.pictures, file, lambda *_: None).gate

    assert gate.has_passed
    assert file.stat().st_size < (tmp_path / "own.onnx").stat().st_size / 3
    quick = loaded(file)
    images = network.images([picture.read_bytes() for picture in trained.pictures[:16]])
    same = network.probabilities(images).argmax(axis=1) == quick.probabilities(images).argmax(axis=1)
    assert same.mean() >= 0.9


def test_a_classifier_with_its_channels_last_is_brought_to_8_bits(tmp_path: Path) -> None:
    """It tells the strongest colour of an image; its preparation says how its images are made."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["t", "k"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"]),
    ]
    kernel = np.zeros((3, 3, 3, 3), np.float32)
    kernel[range(3), range(3)] = 1 / 9
    weights = {"k": kernel, "w": np.eye(3, dtype=np.float32) * 4}
    file = made(tmp_path / "nhwc.onnx", nodes, [("x", ["n", 16, 16, 3])], [("y", ["n", 3])], weights)
    exact = loaded(file, 'resize = "stretch"\n')
    pictures = [tmp_path / f"{number:03}.png" for number in range(170)]
    for number, picture in enumerate(pictures):
        image = CHANCE.integers(0, 60, (20, 20, 3), np.uint8)
        image[..., number % 3] += 150
        picture.write_bytes(bytes(cv2.imencode(".png", image)[1]))

    small = tmp_path / "nhwc.int8.onnx"
    given = PreparationFile.read(tmp_path / "nhwc.toml")
    made_small = quantize(onnx.load(file), given, pictures, small, lambda *_: None)

    assert made_small.gate.has_passed
    assert {node.op_type for node in onnx.load(small).graph.node} >= {"QuantizeLinear"}
    quick = loaded(small, 'resize = "stretch"\n')
    assert quick.description.image.layout == exact.description.image.layout == "NHWC"
    images = exact.images([picture.read_bytes() for picture in pictures[:12]])
    assert quick.probabilities(images).argmax(axis=1).tolist() == [2 - number % 3 for number in range(12)]
