"""The lab's machines as a cluster with Kerberos, two masters and two services, for all tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import lab
from lab import loaded
from lab.places import SECURE
from tests.lab.playbooks import lift_limits


@pytest.fixture(scope="session")
def cluster() -> Iterator[list[lab.Machine]]:
    """Machines that the playbook has made a cluster; whatever was there before is gone, and so are they at the end."""
    lab.down(forget=True)
    lab.up(inventory=SECURE)
    lift_limits()
    yield lab.machines()
    lab.down(forget=True)


@pytest.fixture(scope="module", autouse=True)
def note_what_was_read(cluster: list[lab.Machine]) -> Iterator[None]:
    """At the end of each module: the last one leaves nothing of the product on the machines."""
    yield
    try:
        loaded.note()
    except lab.LabError as error:  # the tests have passed all the same; the lab is only due again the next time
        print(f"Lab: what the machines have read is not known: {error}", file=sys.stderr)
