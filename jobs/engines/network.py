"""Which network a job runs, on which framework: what --engine, --model, --weights and --labels choose together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path

from jobs.engines.layers import LayeredNetwork
from jobs.errors import JobError
from locality.program_names import FORMER, program_name

NAMED = {
    "alexnet": "jobs.engines.alexnet",
}
"""Name -> module whose NETWORK it is, written down as layers."""
USUAL = next(iter(NAMED))
"""What is taken where none is named, by frameworks that know it."""
INT8 = "_int8"
"""What follows a name in that of the same network in 8 bits, which comes from a file."""
FRAMEWORKS = {"mxnet": ("",), "onnx": ("", INT8)}
"""The forms in which a framework knows networks by name. To others, a word that is not a file is a name."""
DIGITS = 12
_SYMBOL, _ONNX = "-symbol.json", ".onnx"


@dataclass(frozen=True)
class Network:
    """A framework, and its network as files.

    model        a name, or the first digits of the SHA-256 of `graph`
    graph        the model file: ONNX, or a Gluon symbol
    weights      Gluon parameters; for a name in 8 bits the model that `nodewise job quantize` made
    preparation  the TOML file beside the model
    labels       a class a line
    """

    engine: str
    model: str
    graph: Path | None = None
    weights: Path | None = None
    preparation: Path | None = None
    labels: Path | None = None

    @property
    def program(self) -> str:
        """What speeds, rows and reports call it."""
        return program_name(self.engine, self.model)

    @property
    def file(self) -> Path | None:
        """What a report names as the source of the numbers."""
        return self.weights or self.graph

    @property
    def is_int8(self) -> bool:
        """Whether it is a name in 8 bits."""
        return self.graph is None and self.model.endswith(INT8)

    def files(self) -> Iterator[tuple[str, Path]]:
        """Each file that it has, by what it is."""
        for field in fields(self):
            if isinstance(value := getattr(self, field.name), Path):
                yield field.name, value

    def staged_names(self) -> dict[str, str]:
        """The same files by the names under which they lie beside a worker."""
        return {name: f"{name}-{file.name}" for name, file in self.files()}


def names_of(engine: str) -> list[str]:
    """The networks that a framework knows by name, the usual one first."""
    return [name + form for form in FRAMEWORKS.get(engine, ()) for name in NAMED]


def network_named(model: str) -> LayeredNetwork:
    """The layers of a network that has a name, also of one in 8 bits."""
    network: LayeredNetwork = import_module(NAMED[model.removesuffix(INT8)]).NETWORK
    return network


def choose(engine: str, model: str | None, weights: Path | None = None, labels: Path | None = None) -> Network:
    """What was asked for; JobError when there is no such network. A former engine's name includes its network."""
    if engine in FORMER:
        if model is not None:
            raise JobError(
                f"--engine {engine} already includes its network",
                remedy="leave out --model, or give --engine mxnet or onnx",
            )
        engine, _, model = FORMER[engine].partition(".")
    model = model or next(iter(names_of(engine)), None)
    if model is None:
        raise JobError(f"--engine {engine} has no network of its own", remedy="name one with --model")
    if model in names_of(engine) if engine in FRAMEWORKS else not Path(model).is_file():
        return Network(engine, model, None, weights, None, labels)
    graph = _graph(engine, model)
    if weights is not None:
        raise JobError(f"--weights are parameters of {', '.join(NAMED)}: {model} has its own, so leave them out")
    parameters = _parameters(graph) if engine == "mxnet" else None
    preparation = preparation_beside(graph)
    return Network(engine, digits_of(graph), graph, parameters, preparation if preparation.exists() else None, labels)


def digits_of(file: Path) -> str:
    """The first digits of the SHA-256 of a file; JobError when it cannot be read."""
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()[:DIGITS]
    except OSError as error:
        raise JobError(f"{file} cannot be read: {error.strerror}") from None


def preparation_beside(graph: Path) -> Path:
    """Where the TOML file of a model lies: photos.toml beside photos.onnx or photos-symbol.json."""
    return graph.with_name(f"{graph.name.removesuffix(_SYMBOL).removesuffix(_ONNX)}.toml")


def _graph(engine: str, model: str) -> Path:
    """The file of a graph; JobError when there is none."""
    path = Path(model)
    if engine not in FRAMEWORKS:
        return path
    known = f"choose one of {', '.join(names_of(engine))}, or name a file"
    if not path.exists():
        raise JobError(f"model {model!r} is unknown to {engine}, and there is no such file: {known}")
    if engine == "onnx":
        if path.is_dir() or path.name.endswith(_SYMBOL):
            raise JobError(f"{model} is not an ONNX file: {known}, or give --engine mxnet for a Gluon symbol")
        return path
    found = sorted(path.glob(f"*{_SYMBOL}")) if path.is_dir() else [path]
    if len(found) != 1 or not found[0].name.endswith(_SYMBOL):
        said = f"{len(found)} symbols" if path.is_dir() else "no Gluon symbol"
        raise JobError(
            f"{model} is {said}",
            remedy=(
                f"--engine mxnet takes NAME{_SYMBOL} with NAME-0000.params beside it, or a folder with "
                "both, as net.export writes them; ONNX files go with --engine onnx"
            ),
        )
    return found[0]


def _parameters(graph: Path) -> Path:
    """The newest parameters beside a Gluon symbol: the number in their name is that of the epoch."""
    stem = graph.name.removesuffix(_SYMBOL)
    found = sorted(graph.parent.glob(f"{stem}-[0-9][0-9][0-9][0-9].params"))
    if not found:
        raise JobError(f"there is no {stem}-0000.params beside {graph}", remedy="write both with net.export")
    return found[-1]
