"""What YARN tells of the end of an application or a container, in one line for people."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_UNFETCHED = re.compile(r"Failed to download resource \{ \{ ([^\s,]+), [^\n]*\} (?:[\w.$]+: )*([^\n]+)")


def find_unfetched(diagnostics: str) -> str:
    """Which file a node could not fetch, and why, "" where that is not what has happened.

    >>> what = "{ { hdfs://a:8020/env/part.sqfs, 1, FILE, null },pending,[(container_1)],5,DOWNLOADING}"
    >>> find_unfetched(f"[now]Failed to download resource {what} java.io.IOException: No space left on device")
    'its node cannot fetch part.sqfs: No space left on device'
    """
    match = _UNFETCHED.search(diagnostics)
    return f"its node cannot fetch {PurePosixPath(match[1]).name}: {match[2].strip()}" if match else ""


def tell_end(diagnostics: str) -> str:
    """The line that says most: YARN's first, unless a file could not be fetched."""
    return find_unfetched(diagnostics) or diagnostics.partition("\n")[0]
