"""`nodewise` run in the process of the tests, where a process of its own would spend its time on importing.

What a process is, signals, terminals and exit included, is tested with real ones.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest import mock

from nodewise.__main__ import main


def nodewise(*words: str, env: Mapping[str, str] | None = None) -> CompletedProcess[str]:
    """One run of the command with these words and no other environment, and how it ended."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        mock.patch.dict(os.environ, dict(os.environ if env is None else env), clear=True),
        mock.patch.object(sys, "argv", ["nodewise", *words]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
            status: object = 0
        except SystemExit as left:
            status = left.code or 0
    assert isinstance(status, int), status
    return CompletedProcess(["nodewise", *words], status, *(one.buffer.getvalue().decode() for one in (out, err)))
