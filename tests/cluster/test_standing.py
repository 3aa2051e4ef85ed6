"""A module finds the cluster and the site that it shares with others whole, whatever was done to them before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hadoop.local import daemons, health
from hadoop.local.daemons import Daemon
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Kind, Producer
from tests.cluster.site import BROKEN, PICTURES, Site, until
from tests.cluster.standing import LOADED, Standing


@pytest.mark.usefixtures("patient")
def test_what_was_killed_registered_changed_and_deleted_is_as_before(site: Site, standing: Standing) -> None:
    cluster, client, node = site.cluster, site.client(), site.cluster.nodes[0]
    before = {one.data_name: replace(one, version=0) for one in client.producers()}
    client.put_producer(Producer("left_over", cmd="", time_max=3600, kind=Kind.PROGRAM))
    client.put_value("left_over", node, "1")
    client.put_producer(replace(client.producer("load_1m"), time_max=77.0))
    client.put_slot(node, "cpu_free_ratio", running=False)
    site.hdfs().delete(f"{LOADED}/{sorted(BROKEN)[0]}")
    manager = daemons.find_running(cluster)[Daemon(cluster, "nodemanager", node)]
    manager.kill()
    manager.wait()  # until then it counts as one that runs
    assert standing.service
    standing.service.kill()
    standing.service.wait()

    again = standing.site()

    client = again.client()  # of a site that was replaced because it took long
    assert health.find_missing(cluster) == []
    assert {one.data_name: replace(one, version=0) for one in client.producers()} == before
    with pytest.raises(NotFound):
        client.data("left_over")
    running = {slot.data_name: slot.running for slot in client.slots(node).slots}
    assert running["cpu_free_ratio"] and running["load_1m"]
    assert len(again.hdfs().list(LOADED)) == PICTURES + len(BROKEN)


def test_a_site_that_cannot_be_mended_is_replaced(site: Site, standing: Standing) -> None:
    for node in site.cluster.nodes:
        site.client().delete_node(node)  # whose agents end themselves

    again = standing.site()

    until(lambda: {node.state for node in again.client().nodes()} == {"ready"})
    assert [node.node_name for node in again.client().nodes()] == list(site.cluster.nodes)
