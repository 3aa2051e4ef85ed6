"""What a plan takes into account: the service's access cost, and the racks as HDFS tells them."""

from __future__ import annotations

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Datum, Outcome, State
from jobs.division.terms import known_terms
from locality.cost import AccessCost, Rate


class Kept(InfoClient):
    """A service that holds one value, or none: what it says is all that matters here."""

    def __init__(self, value: str | None) -> None:
        super().__init__()
        self.value = value

    def data(self, data_name: str, node: str | None = None, max_age: float | None = None) -> list[Datum]:
        if self.value is None:
            raise NotFound(f"nothing produces {data_name}")
        return [Datum(data_name, "n1", self.value, 5.0, 60.0, State.FRESH, Outcome.OK)]


def test_the_racks_of_hdfs_stand_above_those_that_were_measured() -> None:
    measured = AccessCost(disks={"n1": Rate(1e8, 3.0)}, racks={"n1": "/old", "n2": "/r2"})
    terms = known_terms(Kept(measured.to_json()), {"n1": "/r1"}, pytest.fail, epsilon=0.1)

    assert terms.cost.racks == {"n1": "/r1", "n2": "/r2"}
    assert terms.cost.disks["n1"].age == 8.0
    assert terms.epsilon == 0.1


def test_a_value_that_makes_no_sense_is_said_and_planned_without() -> None:
    said: list[str] = []
    terms = known_terms(Kept("{}"), {"n1": "/r1"}, said.append)

    assert terms.cost.is_empty
    assert terms.cost.racks == {"n1": "/r1"}
    assert len(said) == 1
    assert said[0].startswith("planned without access cost: access_cost of n1")


def test_a_service_without_any_leaves_everything_assumed() -> None:
    assert known_terms(Kept(None), {}, pytest.fail).cost.is_empty
