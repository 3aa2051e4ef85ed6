"""The lab as tests want it: bare, or a cluster that the playbook has made."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import lab
from lab import loaded
from tests.lab.playbooks import lift_limits


@pytest.fixture(scope="module")
def bare() -> Iterator[list[lab.Machine]]:
    """Machines that nobody has touched; whatever ran before is gone, and so are they at the end."""
    lab.down(forget=True)
    lab.up(provision=False)
    yield lab.machines()
    lab.down(forget=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[lab.Machine]]:
    """Machines that the playbook has made a cluster; they stay up for who wants to look, until `scripts/lab down`.

    What they have read of the product by the end of a module is noted.
    """
    lab.up()
    lift_limits()
    yield lab.machines()
    try:
        loaded.note()
    except lab.LabError as error:  # the tests have passed all the same; the lab is only due again the next time
        print(f"Lab: what the machines have read is not known: {error}", file=sys.stderr)
