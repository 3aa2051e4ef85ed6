"""What access costs on a real cluster: agents measure disks and each other, the NameNode tells their racks."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from jobs.division.access_cost import access_cost
from locality.cost import DEFAULT_RACK, Basis
from tests.cluster.site import Site, succeed, until

pytestmark = pytest.mark.cluster

DISK, PEERS = "disk_sequential_read_bytes_per_second", "peer_throughput"
COLLECTORS = {DISK: f"scripts/{DISK}.sh", PEERS: "processors/peer_throughput.py"}


def entries(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(succeed(site.nodewise("locality", "cost", "--json")))["seconds_per_byte"]
    return found


def all_measured(site: Site) -> list[dict[str, Any]]:
    """The entries, once there is a measured one for each pair of nodes."""
    found = entries(site)
    return found if len(found) == 16 and {entry["basis"] for entry in found} == {"measured"} else []


def is_measured(site: Site) -> bool:
    """Whether there is a measured entry for each pair of nodes, without a command for each look."""
    found = access_cost(site.client())
    pairs = list(product(found.nodes, found.nodes))
    return len(pairs) == 16 and all(found.entry(*pair).basis is Basis.MEASURED for pair in pairs)


def test_every_entry_of_the_matrix_is_measured_on_a_real_cluster_and_young(site: Site) -> None:
    client, nodes = site.client(), set(site.cluster.nodes)
    # As shipped they run once a minute; here it may be more often.
    for name, cmd in COLLECTORS.items():
        succeed(site.nodewise("producer", "put", name, "--cmd", cmd, "--time-max", "2", "--ttl", "60"))
    rack = f"processors/rack_name.py {site.cluster.namenode_http}"
    succeed(site.nodewise("producer", "put", "rack_name", "--cmd", rack))
    succeed(site.nodewise("slot", "start", "rack_name"))
    succeed(site.nodewise("producer", "put", "access_cost", "--time-max", "2"))
    succeed(site.nodewise("slot", "start", "access_cost"))

    for name in (DISK, PEERS, "rack_name"):
        until(lambda name=name: site.fresh_on(name) == nodes)  # type: ignore[misc]
    until(lambda: is_measured(site))
    measured = until(lambda: all_measured(site))

    assert {datum.data_value for datum in client.data("rack_name")} == {DEFAULT_RACK}
    found = {(entry["reader"], entry["holder"]): entry for entry in measured}
    assert set(found) == {(reader, holder) for reader in nodes for holder in nodes}
    for (_, holder), entry in found.items():
        assert found[holder, holder]["seconds_per_byte"] <= entry["seconds_per_byte"] < 1e-4
        assert 0 <= entry["age_seconds"] < 300
    # A person reads the same, as soon as no agent is late.
    text = until(lambda: said if (said := succeed(site.nodewise("locality", "cost"))).count("measured") == 16 else "")
    assert all(node in text for node in nodes)


def test_the_disk_that_is_measured_is_the_one_that_was_named(site: Site) -> None:
    node = site.cluster.nodes[0]
    data = site.cluster.home / "a DataNode's disk"
    data.mkdir()
    cmd = f'{COLLECTORS[DISK]} "{data}"'
    succeed(site.nodewise("producer", "put", DISK, "--cmd", cmd, "--time-max", "2", "--ttl", "60"))

    # The nodes of one machine share the folder; each writes a file of its own and renames it when it is whole.
    until(lambda: {file.name for file in data.iterdir()} == {".nodewise_read_rate"})
    client = site.client()
    client.delete_value(DISK, node)  # what it measured elsewhere
    until(lambda: node in site.fresh_on(DISK))
