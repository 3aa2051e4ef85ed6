"""What is said between the mounter and those who ask it: a request and its answer are one message each.

A request has two descriptors: the file, and a pidfd of who will use the mount. The answer has one of a copy of the
mount, or says why there is none. Before it stands the word that the file is read first, where that is so.
"""

from __future__ import annotations

REQUEST, MOUNTED, READING = b"mount", b"mounted", b"reading"
DAMAGED = b"damaged: "
"""Begins the answer for a file that nobody should mount."""
ANSWER_BYTES = 1024


class DamagedError(OSError):
    """A file holds something else than its name tells."""


def reason(error: OSError) -> str:
    """Why something failed, in words.

    >>> reason(FileNotFoundError(2, "No such file or directory", "part.sqfs"))
    'part.sqfs: No such file or directory'
    >>> reason(TimeoutError("timed out"))
    'timed out'
    """
    why = error.strerror or str(error)
    return f"{error.filename}: {why}" if error.filename else why
