"""Three frameworks on one node at the same time, each in an environment with the version of numpy that it needs."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest

from hadoop.local import ports
from hadoop.local.lifecycle import Cluster
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskState
from tests.cluster.machine_torch import has_torch, write_torch_image
from tests.cluster.site import nodewise, succeed
from tests.cluster.standing import Standing
from tests.cluster.task_platform import Platform
from tests.cluster.test_node_labels import administer

MOST_SECONDS = 200
MEETINGS = 2
_BEGIN = f"""
import json, socket, sys
meeting = socket.create_connection(("127.0.0.1", int(sys.argv[1])), {MOST_SECONDS})

def meet():
    meeting.sendall(b"x")
    assert meeting.recv(1), "one of the others does not run any more"

def tell(framework, result):
    print(json.dumps([framework.__version__, numpy.__version__, bool(numpy.allclose(result, expected, atol=1e-4))]))
    meet()

import numpy
picture = numpy.random.default_rng(1).random((1, 3, 16, 16), dtype="float32")
expected = sum(picture[0, :, row : row + 14, column : column + 14].sum(0) for row in range(3) for column in range(3))
"""
"""Each meets the others before its step and after it: none begins before all are there, or ends before all did it."""
PROGRAMS = {
    "mxnet@1.9": """
numpy.bool = bool # MXNet 1.9 asks for a name that numpy 1.23 warns of
import mxnet
meet()
given = mxnet.nd.array(picture), mxnet.nd.ones((1, 3, 3, 3)), mxnet.nd.zeros(1)
tell(mxnet, mxnet.nd.Convolution(*given, kernel=(3, 3), num_filter=1).asnumpy()[0, 0])
""",
    "torch@1.13": """
import torch
meet()
tell(torch, torch.nn.functional.conv2d(torch.from_numpy(picture), torch.ones(1, 3, 3, 3)).numpy()[0, 0])
""",
    "onnx@2": """
import onnx, onnxruntime
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info as value
meet()
node = make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3])
sides = [value("x", 1, [1, 3, 16, 16]), value("w", 1, [1, 3, 3, 3])], [value("y", 1, [1, 1, 14, 14])]
model = make_model(make_graph([node], "conv", *sides), opset_imports=[make_opsetid("", 17)], ir_version=8)
session = onnxruntime.InferenceSession(model.SerializeToString())
given = {"x": picture, "w": numpy.ones((1, 3, 3, 3), "float32")}
tell(onnxruntime, session.run(None, given)[0][0, 0])
""",
}
PYTHONS = {"torch@1.13": "/usr/bin/python3"}
"""That of its own system; the others' is `python`."""
PACKAGES = {
    "mxnet@1.9": ("mxnet==1.9.1", "numpy==1.23.5"),
    "onnx@2": ("onnxruntime==1.31.1", "onnx==1.23.2", "numpy==2.4.6"),
}


@pytest.fixture(scope="module")
def node(cluster: Cluster, standing: Standing) -> Iterator[str]:
    """A node on which three containers fit."""
    node = cluster.nodes[0]
    standing.note_changed("resourcemanager")
    administer(cluster, "-updateNodeResource", f"{node}:{ports.NODEMANAGER}", "memory-mb=6144Mi,vcores=4")
    yield node


@pytest.fixture(scope="module")
def made(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two environments of packages, and Debian's PyTorch with a system of its own."""
    if not has_torch():
        pytest.skip("Debian's PyTorch is not installed: run scripts/setup --torch")
    for name, packages in PACKAGES.items():
        words = [word for one in packages for word in ("--package", one)]
        _make(cluster, name, *words)
    archive = tmp_path_factory.mktemp("image") / "torch.tar"
    write_torch_image(archive)
    _make(cluster, "torch@1.13", "--image", str(archive))
    archive.unlink()


def _make(cluster: Cluster, name: str, *words: str) -> None:
    first, _, version = name.partition("@")
    succeed(nodewise(cluster.home, "env", "make", first, "--version", version, *words))


@contextmanager
def meetings() -> Iterator[int]:
    """The port at which programs meet: each gets a byte when all have sent one, and is let go when one has ended."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        server.settimeout(MOST_SECONDS)
        pool.submit(_hold, server)
        yield server.getsockname()[1]


def _hold(server: socket.socket) -> None:
    with ExitStack() as stack:
        there = [stack.enter_context(server.accept()[0]) for _ in PROGRAMS]
        for _ in range(MEETINGS):
            for one in there:
                if not one.recv(1):
                    return  # it has ended, and its task tells why
            for one in there:
                one.sendall(b"x")


@pytest.mark.usefixtures("only_when_long")
def test_three_frameworks_with_three_versions_of_numpy_run_at_once_on_a_node(
    made: None, node: str, platform: Platform
) -> None:
    with meetings() as port:
        tasks = {}
        for name, program in PROGRAMS.items():
            argv = (PYTHONS.get(name, "python"), "-W", "ignore", "-c", _BEGIN + program, str(port))
            spec = TaskSpec(argv, env=name, nodes=[node], memory_mb=700)
            tasks[name] = platform.user.submit_task(spec).task_id
        ended = {name: platform.ended(task_id) for name, task_id in tasks.items()}

    said = {name: platform.log(task_id, "stderr") for name, task_id in tasks.items()}
    assert {one.state for one in ended.values()} == {TaskState.SUCCEEDED}, said
    found = {name: json.loads(platform.log(task_id)) for name, task_id in tasks.items()}
    assert {name: fits for name, (_, _, fits) in found.items()} == dict.fromkeys(PROGRAMS, True)
    assert [found[name][:2] for name in PACKAGES] == [["1.9.1", "1.23.5"], ["1.31.1", "2.4.6"]]
    torch, numpy, _ = found["torch@1.13"]
    assert torch.startswith("1.13.") and numpy.startswith("1.24.")
