"""What YARN tells of the end of an application or a container, in one line for people."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_UNFETCHED = re.compile(r"Failed to download resource \{ \{ ([^\s,]+), [^\n]*\} (?:[\w.$]+: )*([^\n]+)")
_EXCEPTION = re.compile(r"\s*(Caused by: )?(?:\[[^]]*\])?(?:[a-z]\w*\.)+([\w$]+(?:Exception|Error)): (.+)")
_IN_A_STACK = re.compile(r"^\s*at |\d\)\s*$|\(Native Method\)\s*$|^\s*\.\.\. \d+ more")
"""What a line of a stack begins or ends with, which may lack its beginning."""
_MISSING = re.compile(
    r"^(?:\S*/)?bash: (?:line \d+: )?(\S+): (?:No such file or directory|command not found)$", re.MULTILINE
)
_NOT_FOUND = re.compile(r"exit code:? 127\b", re.IGNORECASE)
_UNRENEWED = re.compile(r"Failed to renew token: Kind: ([^,]+), .*?\brenewer=([^,]*),", re.DOTALL)
_RESTARTED = "Attempt recovered after RM restart"


def find_unfetched(diagnostics: str) -> str:
    """Which file a node could not fetch, and why, "" where that is not what has happened.

    >>> what = "{ { hdfs://a:8020/env/part.sqfs, 1, FILE, null },pending,[(container_1)],5,DOWNLOADING}"
    >>> find_unfetched(f"[now]Failed to download resource {what} java.io.IOException: No space left on device")
    'its node cannot fetch part.sqfs: No space left on device'
    """
    match = _UNFETCHED.search(diagnostics)
    return f"its node cannot fetch {PurePosixPath(match[1]).name}: {match[2].strip()}" if match else ""


def find_unrenewed(diagnostics: str) -> tuple[str, str]:
    """The kind of a token that the ResourceManager could not renew, and whom the token lets do so; "" for neither.

    >>> what = "Kind: HDFS_DELEGATION_TOKEN, Service: a:8020, Ident: (token for ava: owner=ava@A, renewer=rm2, now=1)"
    >>> find_unrenewed(f"Failed to submit application_1_0001 to YARN : Failed to renew token: {what}")
    ('HDFS_DELEGATION_TOKEN', 'rm2')
    """
    match = _UNRENEWED.search(diagnostics)
    return (match[1], match[2]) if match else ("", "")


def find_missing(diagnostics: str) -> str:
    r"""Which program a node does not have, "" where that is not what has ended a container.

    >>> find_missing("[now]Exit code: 127\nLast 4096 bytes of stderr :\nbash: line 1: /a/python: command not found")
    '/a/python'
    """
    match = _MISSING.search(diagnostics) if _NOT_FOUND.search(diagnostics) else None
    return match[1] if match else ""


def find_cause(diagnostics: str) -> str:
    r"""What went wrong in Java, of a text that has its stack or the end of it; "" where it names no exception.

    >>> find_cause("ava:842)\nCaused by: java.net.ConnectException: refused\n\tat a.B(B.java:2)")
    'ConnectException: refused'
    """
    found = [match for line in diagnostics.splitlines() if (match := _EXCEPTION.match(line))]
    causes = [match for match in found if match[1]] or found
    return f"{causes[-1][2]}: {causes[-1][3].strip()}" if causes else ""


def without_restarts(diagnostics: str) -> str:
    """What is told, without the words that a ResourceManager which takes over puts before them, with no blank between.

    >>> without_restarts("Attempt recovered after RM restartall 64 steps are done")
    'all 64 steps are done'
    """
    return diagnostics.replace(_RESTARTED, "").strip()


def tell_end(diagnostics: str) -> str:
    r"""The line that says most: YARN's first, unless a file could not be fetched, or that line is one of Java's stack.

    YARN keeps the last part of what is long, which may begin anywhere.

    >>> tell_end("ava:842)\njava.io.IOException: no room\n\tat a.B(B.java:2)")
    'IOException: no room'
    """
    first = diagnostics.partition("\n")[0]
    return find_unfetched(diagnostics) or (_IN_A_STACK.search(first) and find_cause(diagnostics)) or first
