"""What is read out of the answers of a NameNode and of a ResourceManager."""

from __future__ import annotations

import pytest

from hadoop.errors import HadoopError
from hadoop.rest import namenode, resourcemanager
from hadoop.rest.namenode import parse_live_hosts
from hadoop.rest.resourcemanager import parse_attempts, parse_running_nodes

NN, RM = "http://nn:9870", "http://rm:8088"


def test_a_namenode_is_read_from_its_bean() -> None:
    bean = {"Safemode": "", "LiveNodes": '{"a:1": {}, "b:1": {}}', "DeadNodes": '{"c:1": {}}'}
    bean |= {"SoftwareVersion": "3.5.0"}
    said = {"beans": [bean | {"NumberOfMissingBlocks": 2}]}
    assert namenode.parse_info(NN, said) == namenode.NameNodeInfo(NN, "3.5.0", "", 2, 1, 2)


@pytest.mark.parametrize("said", [[], {}, {"beans": []}, {"beans": [{}]}, {"beans": [{"LiveNodes": 3}]}, None, 7])
def test_whoever_is_no_namenode_is_refused_in_a_sentence(said: object) -> None:
    with pytest.raises(HadoopError, match="not as a NameNode that has started"):
        namenode.parse_info(NN, said)


def test_a_resourcemanager_is_read_from_two_answers() -> None:
    about = {"clusterInfo": {"hadoopVersion": "3.5.0"}}
    nodes = {"nodes": {"node": [{"state": "RUNNING"}, {"state": "RUNNING"}, {"state": "LOST"}]}}
    assert resourcemanager.parse_info(RM, about, nodes).states == {"RUNNING": 2, "LOST": 1}
    assert resourcemanager.parse_info(RM, about, {"nodes": None}).states == {}
    foreign: list[object] = [{}, [], None, {"clusterInfo": None}]
    for said in foreign:
        with pytest.raises(HadoopError, match="not as a ResourceManager"):
            resourcemanager.parse_info(RM, said, nodes)


def test_live_datanodes_are_read_from_jmx() -> None:
    bean = {"Safemode": "", "LiveNodes": '{"127.0.9.11:19001": {}, "127.0.9.12:19002": {}}'}
    assert parse_live_hosts({"beans": [bean]}) == {"127.0.9.11", "127.0.9.12"}
    assert parse_live_hosts({"beans": [bean | {"Safemode": "Safe mode is ON."}]}) is None
    assert parse_live_hosts({"beans": []}) is None


def test_running_nodemanagers_are_read_from_rest() -> None:
    nodes = [{"nodeHostName": "127.0.9.11", "state": "RUNNING"}, {"nodeHostName": "127.0.9.12", "state": "LOST"}]
    assert parse_running_nodes({"nodes": {"node": nodes}}) == {"127.0.9.11"}
    assert parse_running_nodes({"nodes": None}) == set()


def test_every_attempt_that_has_a_container_is_found_in_order() -> None:
    second = {"id": 2, "containerId": "container_e01_1_0001_02_000001", "nodeHttpAddress": "127.0.9.12:8042"}
    first = {"id": 1, "containerId": "container_1_0001_01_000001", "nodeHttpAddress": "127.0.9.11:8042"}
    waiting = {"id": 3, "containerId": None, "nodeHttpAddress": None}
    assert parse_attempts({"appAttempts": {"appAttempt": [second, waiting, first]}}) == [
        ("container_1_0001_01_000001", "127.0.9.11:8042"),
        ("container_e01_1_0001_02_000001", "127.0.9.12:8042"),
    ]
    assert parse_attempts({"appAttempts": None}) == []
