"""The log of a container while it grows: only what is new is asked of the NodeManager that runs it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from urllib.parse import quote

from hadoop.rest.logs import NotKnown, get

OVERLAP_BYTES = 4096
"""How much of a log's end is asked for when nothing is known of how far it has grown."""
_HEADER = re.compile(rb"^LogLength:(\d+)\nLogContents:\n", re.MULTILINE)


@dataclass(frozen=True)
class Piece:
    """What stands in a log from byte `begin` on, up to its end; 0 also when it was begun anew."""

    begin: int
    content: bytes

    @property
    def end(self) -> int:
        """Where the next piece begins."""
        return self.begin + len(self.content)


def read_on(
    container_id: str, address: str, stream: str, user: str, seen: int, most: int = sys.maxsize
) -> Piece | None:
    """What a container wrote to `stream` since its byte `seen`; None when its NodeManager has no such log (yet).

    What lies more than `most` bytes before the end is passed over: the piece then begins later. HadoopError when the
    NodeManager at `address` does not answer.
    """
    url = f"http://{address}/ws/v1/node/containerlogs/{container_id}/{stream}?user.name={quote(user)}"
    wanted = min(most, sys.maxsize if seen == 0 else OVERLAP_BYTES)
    while True:
        try:
            answer = get(f"{url}&size=-{wanted}", f"the {stream} of {container_id}")
        except NotKnown:
            return None
        length, content = parse_tail(answer, wanted)
        begin = length - len(content)
        if begin <= seen <= length:
            return Piece(seen, content[seen - begin :])
        if begin == 0 or wanted >= most:
            return Piece(begin, content)
        wanted = min(most, length - seen + OVERLAP_BYTES if length > seen else sys.maxsize)


def parse_tail(answer: bytes, wanted: int) -> tuple[int, bytes]:
    """Bytes of the whole log, and those at its end, `wanted` at most, that a NodeManager's answer frames.

    >>> parse_tail(b"LogType:stdout\\nLogLength:7\\nLogContents:\\no\\nEnd of LogType:stdout.\\n*****\\n\\n", 2)
    (7, b'o\\n')
    """
    found = _HEADER.search(answer)
    if not found:
        return 0, b""
    length = int(found.group(1))
    return length, answer[found.end() :][: min(wanted, length)]
