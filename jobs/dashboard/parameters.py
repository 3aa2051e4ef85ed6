"""Parameters of the board's calls, as the request has them."""

from __future__ import annotations

import re

from flask import request

from infosvc.wire.errors import InvalidInput

JOB_ID = re.compile(r"application_[0-9]{1,20}_[0-9]{1,20}")
LARGEST_NUMBER = 2**53


def check_job_id(job_id: str) -> str:
    """The same id; InvalidInput for what can be none."""
    if not JOB_ID.fullmatch(job_id):
        raise InvalidInput(
            f"{job_id!r} is not a job id", "job_id", remedy="it looks like application_1700000000000_0001"
        )
    return job_id


def read_whole_number(name: str, default: str) -> int:
    """A parameter of the call; InvalidInput names it when it is no such number."""
    said = request.args.get(name, default)
    if not (said.isascii() and said.isdecimal() and len(said) < 17 and int(said) <= LARGEST_NUMBER):
        raise InvalidInput(f"{name} is {said[:30]!r}: it must be a whole number, 0 or more", name)
    return int(said)
