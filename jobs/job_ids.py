"""What jobs are called: by their application of YARN, or, in a pool, by the pool's application and a number."""

from __future__ import annotations

import re

POOL_JOB = re.compile(r"pool_(\d+_\d+)_(\d+)")
"""The id of a job in a pool."""


def pool_job_id(application_id: str, number: int) -> str:
    """The id of the so many-th job of a pool, whose own id is that of its application.

    >>> pool_job_id("application_1700000000000_0001", 3)
    'pool_1700000000000_0001_3'
    """
    return f"pool_{application_id.removeprefix('application_')}_{number}"


def application_of(job_id: str) -> str:
    """The application of YARN whose containers do a job.

    >>> application_of("pool_1700000000000_0001_3"), application_of("application_1700000000000_0001")
    ('application_1700000000000_0001', 'application_1700000000000_0001')
    """
    found = POOL_JOB.fullmatch(job_id)
    return f"application_{found[1]}" if found else job_id
