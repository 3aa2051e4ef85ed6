"""The log of a container, read from the NodeManager that runs it; while it grows, only what is new is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import quote

from hadoop.rest.pages import STANDARD, NotKnown, Pages

OVERLAP_BYTES = 4096
"""How much of a log's end is asked for when nothing is known of how far it has grown."""
MOST_BYTES = 1024 * 1024 * 1024
"""What is read of one log at a time; of a longer log the beginning is passed over."""
LIMITS = replace(STANDARD, seconds=600.0)
_FRAME_BYTES = 64 * 1024
_HEADER = re.compile(rb"^LogLength:(\d+)\nLogContents:\n", re.MULTILINE)


@dataclass(frozen=True)
class Piece:
    """What a log holds from byte `begin` to its end; `begin` is 0 also when the log was begun anew."""

    begin: int
    content: bytes

    @property
    def end(self) -> int:
        """Where the next piece begins."""
        return self.begin + len(self.content)


def read_since(
    container_id: str,
    address: str,
    stream: str,
    user: str,
    seen: int,
    most: int = MOST_BYTES,
    is_node: Callable[[], bool] = lambda: True,
) -> Piece | None:
    """What a container wrote to `stream` since its byte `seen`; None when its NodeManager has no such log (yet).

    What lies more than `most` bytes before the end is passed over: the piece then begins later. `address` is the
    NodeManager's (scheme://host:port); HadoopError when it does not answer. It, and whomever it leads to, is shown a
    ticket of Kerberos if it asks for one and `is_node` says that it is one of YARN's.
    """
    path = f"/ws/v1/node/containerlogs/{quote(container_id)}/{quote(stream)}?user.name={quote(user)}"
    wanted = min(most, MOST_BYTES if seen == 0 else OVERLAP_BYTES)
    while True:
        limits = replace(LIMITS, size_bytes=wanted + _FRAME_BYTES)
        try:
            node = Pages("NodeManager", address, limits, trusts=lambda _: is_node())
            answer = node.read(f"{path}&size=-{wanted}", f"the {stream} of {container_id}")
        except NotKnown:
            return None
        length, content = parse_tail(answer.content, wanted)
        begin = length - len(content)
        if begin <= seen <= length:
            return Piece(seen, content[seen - begin :])
        if begin == 0 or wanted >= most:
            return Piece(begin, content)
        wanted = min(most, length - seen + OVERLAP_BYTES if length > seen else MOST_BYTES)


def parse_tail(answer: bytes, wanted: int) -> tuple[int, bytes]:
    """The size of the whole log, and the bytes at its end, at most `wanted`, that a NodeManager's answer frames.

    >>> parse_tail(b"LogType:stdout\\nLogLength:7\\nLogContents:\\no\\nEnd of LogType:stdout.\\n*****\\n\\n", 2)
    (7, b'o\\n')
    """
    header = _HEADER.search(answer)
    if not header:
        return 0, b""
    length = int(header.group(1))
    return length, answer[header.end() :][: min(wanted, length)]
