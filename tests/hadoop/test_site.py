"""The site files that the templates make."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hadoop.local import health, site
from hadoop.local.state import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A cluster that exists on paper only."""
    made = Cluster(tmp_path, "127.0.9", 3, "me", Path("/jars"), Path("/jvm/bin/java"))
    site.render(made)
    return made


def _keys(path: Path) -> dict[str, str]:
    found = [(p.findtext("name") or "", p.findtext("value") or "") for p in ElementTree.parse(path).iter("property")]
    assert len(dict(found)) == len(found), f"{path} names a key twice"
    return dict(found)


def _node(cluster: Cluster, name: str, node: str = "127.0.9.12") -> dict[str, str]:
    return _keys(site.conf_dir(cluster, node) / name)


def test_clients_get_the_master_and_nothing_of_a_node(cluster: Cluster) -> None:
    hdfs = _keys(cluster.conf_dir / "hdfs-site.xml")
    yarn = _keys(cluster.conf_dir / "yarn-site.xml")
    assert _keys(cluster.conf_dir / "core-site.xml")["fs.defaultFS"] == cluster.namenode_url
    assert yarn["yarn.resourcemanager.hostname"] == cluster.master
    assert not [key for key in hdfs if key.startswith("dfs.datanode.") and key != "dfs.datanode.use.datanode.hostname"]
    assert not [key for key in yarn if key.startswith("yarn.nodemanager.")]


def test_yarn_and_hdfs_spell_a_node_alike(cluster: Cluster) -> None:
    for node in cluster.nodes:
        assert _node(cluster, "yarn-site.xml", node)["yarn.nodemanager.hostname"] == node
        assert _node(cluster, "hdfs-site.xml", node)["dfs.datanode.hostname"] == node


def test_every_address_is_the_clusters_own(cluster: Cluster) -> None:
    for name in ("hdfs-site.xml", "yarn-site.xml"):
        addresses = {k: v for k, v in _node(cluster, name).items() if k.endswith(("address", "bind-host", "hostname"))}
        switches = {"dfs.client.use.datanode.hostname", "dfs.datanode.use.datanode.hostname"}
        outside = {k for k, v in addresses.items() if not v.startswith("127.0.9.")} - switches
        assert addresses
        assert outside == set()


def test_containers_carry_the_clusters_marker_and_find_the_mounter_of_their_node(cluster: Cluster) -> None:
    mounts = cluster.home / "cluster" / "nodes" / "2" / "mounts"
    told = f"NODEWISE_CLUSTER={cluster.id},NODEWISE_MOUNTS={mounts}"
    assert _node(cluster, "yarn-site.xml")["yarn.nodemanager.admin-env"] == told


def test_a_client_gives_up_sooner_than_a_node(cluster: Cluster) -> None:
    key = "yarn.resourcemanager.connect.max-wait.ms"
    assert int(_keys(cluster.conf_dir / "yarn-site.xml")[key]) < int(_node(cluster, "yarn-site.xml")[key])


def test_a_node_waits_for_its_only_namenode_and_asks_the_other_one_of_two_at_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    key = "dfs.client.retry.policy.enabled"
    assert _node(cluster, "hdfs-site.xml")[key] == "true"
    pair = replace(cluster, home=tmp_path / "pair", ha=True)
    site.render(pair)
    assert key not in _node(pair, "hdfs-site.xml")


def test_replicas_follow_the_number_of_nodes(cluster: Cluster, tmp_path: Path) -> None:
    assert _keys(cluster.conf_dir / "hdfs-site.xml")["dfs.replication"] == "2"
    single = Cluster(tmp_path / "single", "127.0.9", 1, "me", Path("/jars"), Path("/java"))
    site.render(single)
    assert _keys(single.conf_dir / "hdfs-site.xml")["dfs.replication"] == "1"


@pytest.mark.parametrize("ha", [False, True])
def test_a_cluster_whose_first_start_failed_before_it_had_site_files_is_only_not_ready(
    tmp_path: Path, ha: bool
) -> None:
    begun = Cluster(tmp_path, "127.0.253", 2, "me", Path("/jars"), Path("/jvm/bin/java"), ha=ha)
    assert health.find_missing(begun) == ["NameNode", "ResourceManager", "2 of 2 sshds"]
    assert set(health.roles(begun).values()) == {None}


def test_the_domain_socket_stays_unset(cluster: Cluster) -> None:
    assert "dfs.domain.socket.path" not in _node(cluster, "hdfs-site.xml")


def test_yarn_finds_its_work_again_on_its_own_disk(cluster: Cluster) -> None:
    master = _keys(cluster.conf_dir / "yarn-site.xml")
    assert master["yarn.resourcemanager.recovery.enabled"] == "true"
    assert master["yarn.resourcemanager.leveldb-state-store.path"] == str(site.rm_state(cluster))
    kept = {_node(cluster, "yarn-site.xml", node)["yarn.nodemanager.recovery.dir"] for node in cluster.nodes}
    assert kept == {str(site.nm_state(cluster, node)) for node in cluster.nodes}
    assert len(kept) == cluster.size


def test_attributes_of_nodes_are_kept_apart_from_those_of_another_cluster_of_the_same_user(cluster: Cluster) -> None:
    kept = _keys(cluster.conf_dir / "yarn-site.xml")["yarn.node-attribute.fs-store.root-dir"]
    assert kept == (cluster.home / "cluster" / "node-attributes").as_uri()


def test_a_silent_node_is_looked_at_within_fifteen_seconds(cluster: Cluster) -> None:
    expiry = int(_keys(cluster.conf_dir / "yarn-site.xml")["yarn.nm.liveness-monitor.expiry-interval-ms"])
    # YARN looks every third of it.
    assert expiry * 4 / 3 < 15_000


def test_values_cannot_break_the_xml(tmp_path: Path) -> None:
    odd = Cluster(tmp_path, "127.0.9", 1, "<&>", Path("/jars"), Path("/java"))
    site.render(odd)
    assert _keys(odd.conf_dir / "yarn-site.xml")["yarn.admin.acl"] == "<&>"


def test_applications_have_the_order_of_their_program_with_the_plug_in_alone(cluster: Cluster, tmp_path: Path) -> None:
    key = "yarn.scheduler.app-placement-allocator.class"
    wanted = replace(cluster, home=tmp_path / "wanted", plugin=True)
    site.render(wanted)
    assert _keys(wanted.conf_dir / "yarn-site.xml")[key] == "nodewise.yarn.ByProgram"
    site.render(replace(wanted, plugin=False))
    assert key not in _keys(wanted.conf_dir / "yarn-site.xml")


def test_mapreduce_has_its_shuffle_on_nodes_that_want_it(cluster: Cluster, tmp_path: Path) -> None:
    assert "yarn.nodemanager.aux-services" not in _node(cluster, "yarn-site.xml")
    wanted = replace(cluster, home=tmp_path / "wanted", mapreduce=True)
    site.render(wanted)
    assert _node(wanted, "yarn-site.xml")["yarn.nodemanager.aux-services"] == "mapreduce_shuffle"
    assert "yarn.nodemanager.aux-services" not in _keys(wanted.conf_dir / "yarn-site.xml")
    port, known = "mapreduce.shuffle.port", _keys(wanted.conf_dir / "mapred-site.xml")
    assert known["mapreduce.framework.name"] == "yarn" and port not in known
    assert _node(wanted, "mapred-site.xml") == known | {port: "0"}, "nodes of one machine cannot share a port"
    assert _node(cluster, "mapred-site.xml") == {}
    collects = "yarn.log-aggregation-enable"
    assert _keys(wanted.conf_dir / "yarn-site.xml")[collects] == _node(wanted, "yarn-site.xml")[collects] == "true"
    assert collects not in _node(cluster, "yarn-site.xml")


def test_gpus_are_counted_where_there_are_some_and_everybody_knows_the_type(cluster: Cluster, tmp_path: Path) -> None:
    types, count = "yarn.resource-types", "yarn.nodemanager.resource-type.yarn.io/gpu"
    assert not {types, count} & _node(cluster, "yarn-site.xml").keys()

    wanted = replace(cluster, home=tmp_path / "wanted", gpus=(2, 0, 1))
    site.render(wanted)

    assert _keys(wanted.conf_dir / "yarn-site.xml")[types] == "yarn.io/gpu"
    assert [_node(wanted, "yarn-site.xml", node)[count] for node in wanted.nodes] == ["2", "0", "1"]
    masters = "yarn.scheduler.capacity.maximum-am-resource-percent"
    shares = [_keys(one.conf_dir / "capacity-scheduler.xml")[masters] for one in (cluster, wanted)]
    assert shares == ["0.5", "1.0"], "tasks are their own masters, and may have all GPUs"
    site.render(replace(wanted, gpus=(0, 0, 0)))
    assert types not in _keys(wanted.conf_dir / "yarn-site.xml")


def test_an_operators_cluster_has_files_users_and_tokens_of_its_own(cluster: Cluster, tmp_path: Path) -> None:
    own = {
        "hadoop_plugin": True,
        "hadoop_exclude_dir": "/etc/hadoop",
        "hadoop_admin_users": "yarn,boss",
        "hadoop_permissions_superusergroup": "hadoop",
        "hadoop_policy_token_file": "/etc/nodewise/tokens/policy",
        "hadoop_attributes_token_file": "/etc/nodewise/tokens/attributes",
    }

    site._write(tmp_path / "own", site.values(cluster) | site.node_values(cluster, "127.0.9.12") | own)

    hdfs, yarn = _keys(tmp_path / "own" / "hdfs-site.xml"), _keys(tmp_path / "own" / "yarn-site.xml")
    assert hdfs["dfs.hosts.exclude"] == "/etc/hadoop/hdfs.exclude"
    assert yarn["yarn.resourcemanager.nodes.exclude-path"] == "/etc/hadoop/yarn.exclude"
    assert hdfs["dfs.permissions.superusergroup"] == "hadoop"
    assert yarn["yarn.admin.acl"] == "yarn,boss"
    policy = (tmp_path / "own" / site.POLICY_FILE).read_text().splitlines()
    assert "service.token-file = /etc/nodewise/tokens/policy" in policy
    attributes = (tmp_path / "own" / site.ATTRIBUTES_FILE).read_text().splitlines()
    assert "token-file = /etc/nodewise/tokens/attributes" in attributes


def test_a_cluster_of_this_machine_names_none_of_an_operators_files(cluster: Cluster) -> None:
    hdfs, yarn = _node(cluster, "hdfs-site.xml"), _node(cluster, "yarn-site.xml")
    operators = {"dfs.hosts.exclude", "dfs.permissions.superusergroup", "yarn.resourcemanager.nodes.exclude-path"}
    assert not operators & {*hdfs, *yarn}
    assert yarn["yarn.admin.acl"] == cluster.user
