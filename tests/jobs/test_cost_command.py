"""`nodewise locality cost` and the access cost that plans use, from a real service."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Unreachable
from infosvc.wire.records import Kind, Producer
from jobs.commands.locality.locality_cost import cost
from jobs.division.access_cost import access_cost
from jobs.errors import JobError
from locality.cost import AccessCost, Basis, Rate

MB = 1e6
MEASURED = AccessCost(
    {"n1": Rate(200 * MB, 20), "n2": Rate(50 * MB, 30)},
    {("n1", "n2"): Rate(100 * MB, 300), ("n2", "n3"): Rate(25 * MB, 8)},
    {"n1": "/r1", "n2": "/r1", "n3": "/r1"},
)


@pytest.fixture
def put(client: InfoClient) -> Callable[[str], None]:
    """put(TEXT): the value of access_cost, as its processor would bring it."""

    def write(text: str) -> None:
        client.put_producer(Producer("access_cost", "", 3600, kind=Kind.PROGRAM))
        client.put_node("n9", "127.0.0.1:9")
        client.put_value("access_cost", "n9", text)

    return write


@pytest.fixture
def shown(client: InfoClient, tmp_path: Path) -> Callable[..., Result]:
    def run(*words: str) -> Result:
        return CliRunner().invoke(cost, [*words, "--url", client.url], obj=tmp_path)

    return run


def test_a_matrix_tells_of_every_entry_how_well_it_is_known_and_how_old_it_is(
    put: Callable[[str], None], shown: Callable[..., Result]
) -> None:
    put(MEASURED.to_json())
    text = shown().output

    assert "seconds per GB" in text
    # n1 reads from n2 as quickly as the disk of n2, and the older of the two measurements is five minutes old.
    rows = {line.split("│")[1].strip(): line.split("│")[2:-1] for line in text.splitlines() if "│ n" in line}
    assert [cell.strip() for cell in rows["n1"]] == ["5", "20", "40"]
    assert [cell.strip() for cell in rows["n2"]] == ["40", "20", "40"]
    assert "measured 5 min" in text
    assert "estimated" in text


def test_for_programs_the_matrix_is_in_seconds_per_byte(
    put: Callable[[str], None], shown: Callable[..., Result]
) -> None:
    put(MEASURED.to_json())
    body = json.loads(shown("--json").output)
    entries = {(entry["reader"], entry["holder"]): entry for entry in body["seconds_per_byte"]}

    assert body["nodes"] == ["n1", "n2", "n3"]
    assert len(entries) == 9
    assert entries["n1", "n2"]["seconds_per_byte"] == pytest.approx(2e-8)
    assert entries["n1", "n2"]["basis"] == "measured"
    assert 300 <= entries["n1", "n2"]["age_seconds"] < 360
    assert entries["n3", "n1"]["basis"] == "estimated"


def test_only_the_nodes_that_are_named_are_shown(put: Callable[[str], None], shown: Callable[..., Result]) -> None:
    put(MEASURED.to_json())
    body = json.loads(shown("n2", "n1", "--json").output)

    assert [(entry["reader"], entry["holder"]) for entry in body["seconds_per_byte"]] == [
        ("n2", "n2"), ("n2", "n1"), ("n1", "n2"), ("n1", "n1"),
    ]  # fmt: skip


def test_a_node_of_which_nothing_is_known_is_refused_by_name(
    put: Callable[[str], None], shown: Callable[..., Result]
) -> None:
    put(MEASURED.to_json())
    refused = shown("n2", "n7")

    assert isinstance(refused.exception, JobError)
    assert "nothing is known of n7: name nodes among n1, n2, n3" in str(refused.exception)


def test_many_nodes_are_shown_one_a_line(put: Callable[[str], None], shown: Callable[..., Result]) -> None:
    names = [f"w{number:02}" for number in range(13)]
    ring = {(names[number - 1], name): Rate(80 * MB, 40) for number, name in enumerate(names)}
    put(AccessCost({"w00": Rate(120 * MB, 300)}, ring, dict.fromkeys(names[:6], "/r1")).to_json())
    body = json.loads(shown("--json").output)
    text = shown().output

    first, last = body["bytes_per_second"][0], body["bytes_per_second"][-1]
    assert (first["node"], first["rack"], first["disk"]["bytes_per_second"]) == ("w00", "/r1", 120 * MB)
    assert (last["node"], last["rack"], last["disk"]) == ("w12", "/default-rack", None)
    assert last["receive_other_rack"]["bytes_per_second"] == 80 * MB
    assert last["receive_same_rack"] is None
    assert len([line for line in text.splitlines() if "│ w" in line]) == 13
    assert "120, 5 min" in text
    assert len(json.loads(shown(*names, "--json").output)["seconds_per_byte"]) == 13 * 13


def test_nothing_known_is_said_so_with_what_to_do(client: InfoClient, shown: Callable[..., Result]) -> None:
    assert "nodewise slot start access_cost" in shown().output
    assert json.loads(shown("--json").output) == {"nodes": [], "seconds_per_byte": []}
    assert access_cost(client).is_empty


def test_a_plan_gets_the_cost_with_its_ages_as_of_now(client: InfoClient, put: Callable[[str], None]) -> None:
    put(MEASURED.to_json())
    deadline = time.monotonic() + 30
    while (found := access_cost(client)).disks["n1"].age <= 20:
        assert time.monotonic() < deadline, "the value grows older, and what is told in it with it"

    assert found.entry("n1", "n2").basis is Basis.MEASURED
    assert not found.is_empty


def test_a_value_that_is_none_is_named(client: InfoClient, put: Callable[[str], None]) -> None:
    put("12.5")

    with pytest.raises(JobError, match="access_cost of n9: this is not an access cost"):
        access_cost(client)


def test_a_service_that_is_away_is_an_error_and_not_an_empty_cost() -> None:
    with pytest.raises(Unreachable):
        access_cost(InfoClient("http://127.0.0.1:9", retries=0))
