"""`python -m tests.jobs.played_rows FOLDER ROWS NODES`: stores rows that no worker made, and tells the memory it takes.

The rows come out of a real journal's frames and go into real Parquet files; HDFS alone is a local folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.application.frames import contents, frame
from jobs.application.journal import Record
from jobs.images.rows import SCHEMA
from jobs.itemwork.commits import Commit
from jobs.itemwork.results.output import Output
from jobs.itemwork.rows import node_rows
from tests.jobs.stored import SPEC

ROWS_OF_A_LEASE = 500
CHUNK_BYTES = 1 << 20
_BEST = [{"class_id": number, "class_name": f"class {number}", "score": 0.1} for number in range(5)]


class Folder:
    """A folder in the place of HDFS."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def make_folder(self, name: str) -> None:
        (self.root / name[1:]).mkdir(parents=True)

    @contextmanager
    def open_writer(self, name: str, block_bytes: int | None = None) -> Iterator[Callable[[bytes], None]]:
        with (self.root / name[1:]).open("xb") as file:

            def write(piece: bytes) -> None:
                file.write(piece)

            yield write


def write_journal(file: Path, rows: int, nodes: int) -> None:
    """Leases of the nodes in turn."""
    with file.open("wb") as journal:
        for number, first in enumerate(range(0, rows, ROWS_OF_A_LEASE)):
            body = _commit(f"node-{number % nodes}", first, min(ROWS_OF_A_LEASE, rows - first)).to_record()
            journal.write(frame(msgspec.msgpack.encode((number + 1, body.kind, body.body, body.payload))))


def read_journal(file: Path) -> Iterator[Record]:
    """Its records, as an application master reads them."""
    with file.open("rb") as journal:
        for content in contents(iter(lambda: journal.read(CHUNK_BYTES), b"")):
            _, kind, body, payload = msgspec.msgpack.decode(content)
            yield Record(kind, body, payload)


def peak_mb() -> float:
    """The most memory that this process has had since it was reset."""
    status = Path("/proc/self/status").read_text()
    return float(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def reset_peak() -> None:
    """What it has now counts as the most."""
    Path("/proc/self/clear_refs").write_text("5")


def _commit(node: str, first: int, count: int) -> Commit:
    names = [f"/data/packed/images-{number // 1300:05}.rec#{number:08}.jpg" for number in range(first, first + count)]
    columns = [
        pa.array(names),
        pa.array([0] * count, pa.int32()),
        pa.array(["class 0"] * count),
        pa.array([0.1] * count, pa.float32()),
        pa.array([_BEST] * count, SCHEMA.field("top5").type),
        pa.array([node] * count),
        pa.array(["onnx.alexnet"] * count),
        pa.nulls(count, pa.string()),
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
    parts = [(names[0], 0, count)]
    rows = sink.getvalue().to_pybytes()
    return Commit(node, "c", f"1-{first}", node, parts, 0.0, 1.0, count, 0, count, 0, 0, 1.0, rows)


def main(folder: str, rows: int, nodes: int) -> None:
    """Print the growth of memory while the rows are stored."""
    root, journal = Path(folder), Path(folder) / "journal"
    write_journal(journal, rows, nodes)
    reset_peak()
    before = peak_mb()
    Output(Folder(root), SPEC, "/out", 1).store(lambda: node_rows(read_journal(journal)), rows)  # type: ignore[arg-type]
    parts = (root / "staging/output-1").iterdir()
    found = {"storing_mb": peak_mb() - before, "rows": sum(pq.ParquetFile(part).metadata.num_rows for part in parts)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
