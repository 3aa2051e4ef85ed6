"""What is said between the mounter and those who ask it: a request and its answer are one message each.

A request has two descriptors: the file, and a pidfd of who will use the mount. The answer has one of a copy of the
mount, or says why there is none.
"""

from __future__ import annotations

REQUEST, MOUNTED = b"mount", b"mounted"
ANSWER_BYTES = 1024


def reason(error: OSError) -> str:
    """Why something failed, in words.

    >>> reason(FileNotFoundError(2, "No such file or directory", "part.sqfs"))
    'part.sqfs: No such file or directory'
    >>> reason(TimeoutError("timed out"))
    'timed out'
    """
    why = error.strerror or str(error)
    return f"{error.filename}: {why}" if error.filename else why
