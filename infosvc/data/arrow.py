"""Values as an Apache Arrow stream: one record batch, numbers beside the texts that hold one."""

from __future__ import annotations

from collections.abc import Sequence

from infosvc.state.value import number_of
from infosvc.wire.records import Datum

MEDIA_TYPE = "application/vnd.apache.arrow.stream"


def stream(data: Sequence[Datum]) -> bytes:
    """Columns data_name, node_name, data_value, number (null for other text), age, ttl, state, outcome, unit."""
    import pyarrow  # 40 MB that only callers who ask for it should cost

    columns = {
        "data_name": pyarrow.array([datum.data_name for datum in data], pyarrow.string()),
        "node_name": pyarrow.array([datum.node_name for datum in data], pyarrow.string()),
        "data_value": pyarrow.array([datum.data_value for datum in data], pyarrow.string()),
        "number": pyarrow.array([number_of(datum.data_value) for datum in data], pyarrow.float64()),
        "age": pyarrow.array([datum.age for datum in data], pyarrow.float64()),
        "ttl": pyarrow.array([datum.ttl for datum in data], pyarrow.float64()),
        "state": pyarrow.array([datum.state.value for datum in data], pyarrow.string()),
        "outcome": pyarrow.array([datum.outcome.value for datum in data], pyarrow.string()),
        "unit": pyarrow.array([datum.unit for datum in data], pyarrow.string()),
    }
    batch = pyarrow.RecordBatch.from_pydict(columns)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
