"""What all workers of a job are told: written by the application master, read in the containers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jobs.application.job_spec import Settings
from jobs.application.options import option
from jobs.engines import ENGINES
from jobs.engines.network import NAMED, USUAL, Network, names_of
from jobs.images.rows_size import LARGEST_ROW
from locality.program_names import FORMER


@dataclass(frozen=True, kw_only=True)
class InferenceOptions(Settings):
    """What users may say of the network and of how images go through it.

    In the containers, `engine` and `model` are those of a Network, and its files are names beside the worker: None for
    a file that the network does not have, which means seeded weights, the usual preparation, numbered classes.
    picture_seconds   a process that needs longer for an image, or for a batch in the network, has hung
    """

    engine: str = option(
        "mxnet",
        help=f"Framework, one of {', '.join(sorted(ENGINES))}; {', '.join(FORMER)} also choose the network.",
    )
    model: str | None = option(
        None,
        help=f"Network: {', '.join(names_of('onnx'))}, a file (ONNX, or a Gluon symbol), or task:ID[/PATH] for what a "
        f"task left  [default: {USUAL}].",
        metavar="NAME|FILE|task:ID",
    )
    batch: int = option(32, help="Images per inference.", least=1, most=1024)
    weights: str | None = option(
        None, help=f"Weights of {', '.join(NAMED)}, see `nodewise job train`  [default: seeded].", is_file=True
    )
    labels: str | None = option(None, help="File with one class a line.", is_file=True)
    picture_seconds: float = option(60.0, help="Seconds after which an image is given up.", least=1)
    graph: str | None = None
    preparation: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files beside the worker."""
        return tuple(name for name in (self.graph, self.weights, self.preparation, self.labels) if name)

    @property
    def network(self) -> Network:
        """As an engine takes it, beside these files."""
        files = {name: getattr(self, name) for name in ("graph", "weights", "preparation", "labels")}
        paths = {name: Path(file) for name, file in files.items() if file}
        return Network(self.engine, self.model or next(iter(names_of(self.engine)), ""), **paths)


@dataclass(frozen=True, kw_only=True)
class WorkerSettings(InferenceOptions):
    """What all workers of a job are told; a worker's node and container stand in its environment.

    master            the file in HDFS that says where the application master is now: {"address": "http://host:port"}
    token             what the application master wants to hear
    processes         that read, decode and infer, each with `threads` threads
    orphan_seconds    a worker that hears nothing of an application master for so long ends
    largest_row       the most bytes of a row, so that one commit holds those of a lease
    """

    job_id: str
    master: str
    token: str
    processes: int
    threads: int
    orphan_seconds: float = 60.0
    largest_row: int = LARGEST_ROW
