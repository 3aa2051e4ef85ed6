"""Tells the application master of a job something in the name of the job's owner, who may read its folder in HDFS."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from urllib.parse import urlsplit

from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError

PATIENCE_SECONDS = 4.0


def tell(filesystem: FileSystem, staging: str, call: str) -> None:
    """Make a call without a body; HadoopError when it is not heard, or the folder is not there any more."""
    address = json.loads(filesystem.read(f"{staging}/master.json"))["address"]
    token = json.loads(filesystem.read(f"{staging}/job.json"))["token"]
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE_SECONDS)
    try:
        with closing(connection):
            connection.request("POST", call, b"", {"Authorization": f"Bearer {token}"})
            status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise HadoopError(f"the application master at {address} does not answer: {error}") from error
    if status != 204:
        raise HadoopError(f"the application master at {address} answers {status} to {call}")
