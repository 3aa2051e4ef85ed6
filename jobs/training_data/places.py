"""The nodes that hold samples, from the blocks of their files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np
import numpy.typing as npt

from jobs.training_data.files import File, Files, Span

Numbers = npt.NDArray[np.int64]

ASKED_AT_ONCE = 8
ASK_SECONDS = 60.0
"""Each file is a call of a NameNode; samples of files that were not told by then are read by anybody."""


def find_places(files: Files, of: Sequence[File], file: Numbers, byte: Numbers) -> list[tuple[str, ...]]:
    """For each sample the nodes that hold `byte` of the file number `file`; none where nobody says so in time.

    Who computes a sample changes no result, so a NameNode that does not answer stops nothing.
    """
    used = np.unique(file).tolist()
    pool = ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="places")
    asked = {one: pool.submit(files.blocks, of[one]) for one in used}
    wait(asked.values(), ASK_SECONDS)
    pool.shutdown(wait=False, cancel_futures=True)
    told = {one: call.result() for one, call in asked.items() if _has_told(call)}
    if len(told) < len(used):
        ended = [call for call in asked.values() if call.done() and not call.cancelled()]
        late = f"the NameNode did not tell more in {ASK_SECONDS:.0f} s; packs are fewer files"
        why = next((error for call in ended if (error := call.exception())), late)
        print(f"nodewise: where {len(used) - len(told):,} of {len(used):,} files lie is not known: {why}", flush=True)
    return [_hosts(told.get(one, ()), at) for one, at in zip(file.tolist(), byte.tolist(), strict=True)]


def _has_told(call: Future[Sequence[Span]]) -> bool:
    return call.done() and not call.cancelled() and call.exception() is None


def _hosts(spans: Sequence[Span], byte: int) -> tuple[str, ...]:
    place = bisect_right(spans, byte, key=lambda span: span.begin) - 1
    return spans[place].hosts if place >= 0 else ()
