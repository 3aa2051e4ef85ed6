"""An answer that goes on until its caller hangs up."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator

from flask import Response


class _Parts(Iterator[bytes]):
    """The answer's body; `close` is called when the server closes it or forgets it, begun or not."""

    def __init__(self, parts: Iterator[bytes], close: Callable[[], object]) -> None:
        self._parts = parts
        self.close = weakref.finalize(self, close)

    def __next__(self) -> bytes:
        return next(self._parts)


def stream(parts: Iterator[bytes], kind: str, close: Callable[[], object]) -> Response:
    """Answer with parts of this media type as they come; `close` hears that nobody reads them any more."""
    answer = Response(_Parts(parts, close), mimetype=kind)
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["X-Accel-Buffering"] = "no"  # proxies that collect answers would hold parts back
    return answer
