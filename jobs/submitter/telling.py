"""Tells the application master of a job something in the name of the job's owner, who may read its folder in HDFS."""

from __future__ import annotations

import json
import time
from contextlib import closing
from http.client import HTTPException
from urllib.parse import urlsplit

from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError
from infosvc.wire.bounded_answer import answer_by, new_connection

PATIENCE_SECONDS = 4.0
"""For all of the call: whoever answers slowly must not hold up other tasks."""


def tell(filesystem: FileSystem, staging: str, call: str) -> None:
    """Make a call without a body; HadoopError when it is not heard in time, or the folder is not as it should be.

    What a task runs is its owner, too, and could have written there.
    """
    try:
        address = json.loads(filesystem.read(f"{staging}/master.json"))["address"]
        token = json.loads(filesystem.read(f"{staging}/job.json"))["token"]
        parts = urlsplit(address)
        port = parts.port
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HadoopError(f"{staging} does not tell where its application master is") from error
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        with closing(new_connection(str(parts.hostname), port, PATIENCE_SECONDS)) as connection:
            connection.request("POST", call, b"", {"Authorization": f"Bearer {token}"})
            status = answer_by(connection, deadline).status
    except (OSError, HTTPException) as error:
        raise HadoopError(f"the application master at {address} does not answer: {error}") from error
    if status != 204:
        raise HadoopError(f"the application master at {address} answers {status} to {call}")
