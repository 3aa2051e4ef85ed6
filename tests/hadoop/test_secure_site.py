"""The site files of clusters with Kerberos, and with two of each master."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hadoop.client import jvm
from hadoop.client.jvm import HadoopHome
from hadoop.local import daemons, site
from hadoop.local.daemons import Daemon
from hadoop.local.kerberos import programs
from hadoop.local.state import Cluster
from hadoop.rest.addresses import namenode_addresses, resourcemanager_addresses

FILES = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml")
SWITCHES = {
    "dfs.client.use.datanode.hostname",
    "dfs.datanode.use.datanode.hostname",
    "dfs.namenode.datanode.registration.ip-hostname-check",
}


def made(home: Path, **fields: Any) -> Cluster:
    """A cluster that exists on paper only, with a realm where it has Kerberos."""
    cluster = replace(Cluster(home, "127.0.9", 3, "me", Path("/jars"), Path("/jvm/bin/java")), **fields)
    cluster.logs.mkdir(parents=True)
    if cluster.kerberos:
        cluster.realm.prepare()
    site.render(cluster)
    return cluster


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return made(tmp_path_factory.mktemp("both"), kerberos=True, ha=True, principals=("alice",), protection="privacy")


def keys(folder: Path) -> dict[str, str]:
    """All that the site files of a folder say."""
    found = [
        ((one.findtext("name") or "").strip(), (one.findtext("value") or "").strip())
        for name in FILES
        for one in ElementTree.parse(folder / name).iter("property")
    ]
    assert len(dict(found)) == len(found), f"{folder} names a key twice"
    return dict(found)


def places(cluster: Cluster) -> list[Path]:
    """Every folder of site files."""
    machines = [*(cluster.masters if cluster.ha else ()), *cluster.nodes]
    return [cluster.conf_dir, *(site.conf_dir(cluster, machine) for machine in machines)]


def test_a_cluster_with_neither_has_nothing_of_either(tmp_path: Path) -> None:
    plain = made(tmp_path)
    words = ("kerberos", "keytab", "principal", ".ha.", "https", "zookeeper", "nameservice", "zk.", "authentication")

    assert [key for key in keys(plain.conf_dir) if any(word in key for word in words)] == []
    assert [file.name for file in plain.state.rglob("ssl-*")] == []
    assert [one.kind for one in daemons.of(plain)[:2]] == ["namenode", "resourcemanager"]
    assert len(daemons.of(plain)) == 2 + 3 * 3


def test_clients_find_both_masters(both: Cluster, tmp_path: Path) -> None:
    ha = made(tmp_path, ha=True)

    assert namenode_addresses(ha.conf_dir) == ("http://127.0.9.1:9870", "http://127.0.9.2:9870")
    assert namenode_addresses(both.conf_dir) == ("https://127.0.9.1:9871", "https://127.0.9.2:9871")
    assert resourcemanager_addresses(both.conf_dir) == ("http://127.0.9.1:8088", "http://127.0.9.2:8088")
    assert keys(both.conf_dir)["fs.defaultFS"] == both.namenode_url == "hdfs://nodewise"


def test_each_master_knows_who_it_is_and_nobody_else_does(both: Cluster) -> None:
    own = [keys(site.conf_dir(both, master)) for master in both.masters]

    assert [one["dfs.ha.namenode.id"] for one in own] == ["nn1", "nn2"]
    assert [one["yarn.resourcemanager.ha.id"] for one in own] == ["rm1", "rm2"]
    assert [one["yarn.resourcemanager.bind-host"] for one in own] == list(both.masters)
    assert len({one["dfs.namenode.name.dir"] for one in own}) == 2
    assert ["dfs.journalnode.edits.dir" in one for one in own] == [True, False]
    for others in (both.conf_dir, site.conf_dir(both, both.nodes[0])):
        assert not {"dfs.ha.namenode.id", "yarn.resourcemanager.ha.id"} & keys(others).keys()


def test_the_daemons_of_each_machine_read_its_own_files(both: Cluster) -> None:
    for daemon in daemons.of(both):
        if daemon.kind not in ("kdc", "sshd", "nodemanager"):
            jars, folder, *_ = daemons.command(daemon)[-2].split(":")
            assert (jars, folder) == ("/jars/*", str(site.conf_dir(both, daemon.node)))


def test_a_stand_in_goes_before_the_jars_of_nodemanagers_with_kerberos_alone(both: Cluster) -> None:
    stand_in = str(site.WITHOUT_LIBHADOOP_JAR)
    having = [one.kind for one in daemons.of(both) if stand_in in " ".join(daemons.command(one))]

    assert having == ["nodemanager"] * 3
    assert daemons.command(Daemon(both, "nodemanager", both.nodes[0]))[-2].startswith(f"{stand_in}:")
    plain = replace(both, kerberos=False)
    assert [one for one in daemons.of(plain) if stand_in in " ".join(daemons.command(one))] == []


def test_every_address_is_the_clusters_own(both: Cluster) -> None:
    for folder in places(both):
        said = {key: value for key, value in keys(folder).items() if key not in SWITCHES}
        addresses = {key: value for key, value in said.items() if "address" in key or "hostname" in key}
        assert addresses
        assert [key for key, value in addresses.items() if not value.startswith("127.0.9.")] == []


def test_every_keytab_that_is_named_is_there_and_holds_the_principals(both: Cluster) -> None:
    said = keys(site.conf_dir(both, both.nodes[0]))
    keytabs = {value for key, value in said.items() if "keytab" in key}
    program = programs.find("klist")

    assert len(keytabs) == 6
    for service in ("namenode", "datanode", "journalnode"):
        assert said[f"dfs.{service}.kerberos.principal"].endswith("/nodes@NODEWISE.TEST"), "all call from 127.0.0.1"
    for file in keytabs:
        held = subprocess.run(
            [program, "-k", file],
            env={**programs.libraries(program), "KRB5_CONFIG": str(both.realm.krb5_conf)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        wanted = {value.replace("_HOST", both.master) for value in said.values() if value.endswith("@NODEWISE.TEST")}
        assert any(principal in held for principal in wanted), file
        assert Path(file).stat().st_mode & 0o077 == 0


def test_what_is_sent_is_protected_as_asked_for(both: Cluster) -> None:
    said = keys(both.conf_dir)
    assert (said["hadoop.rpc.protection"], said["dfs.data.transfer.protection"]) == ("privacy", "privacy")
    assert said["dfs.encrypt.data.transfer.cipher.suites"] == "AES/CTR/NoPadding"


def test_only_daemons_that_encrypt_much_have_java_at_its_highest_level(both: Cluster) -> None:
    limited = {daemon.kind for daemon in daemons.of(both) if "-XX:TieredStopAtLevel=1" in daemons.command(daemon)}
    assert {daemon.kind for daemon in daemons.of(both)} - limited == {"datanode", "namenode", "kdc", "sshd"}
    less = replace(both, protection="integrity")
    for kind, address in (("datanode", less.nodes[0]), ("namenode", less.master)):
        assert "-XX:TieredStopAtLevel=1" in daemons.command(Daemon(less, kind, address))


def test_clients_that_load_other_classes_have_another_archive(both: Cluster, tmp_path: Path) -> None:
    others = [made(tmp_path / name, kerberos=name == "kerberos") for name in ("kerberos", "plain")]
    kinds = [jvm._archive_kind(HadoopHome(one.conf_dir, one.jars, one.user)) for one in (both, *others)]
    assert [kind.rpartition("-with-")[2] for kind in kinds[:2]] == ["privacy", "kerberos"]
    assert "-with-" not in kinds[2]


def test_tokens_end_as_asked_for_and_else_as_hadoop_has_it(both: Cluster, tmp_path: Path) -> None:
    intervals = {f"{of}.delegation.token.renew-interval" for of in ("dfs.namenode", "yarn.resourcemanager")}
    short = made(tmp_path, kerberos=True, token_seconds=60)

    assert [keys(short.conf_dir)[key] for key in intervals] == ["60000", "60000"]
    assert not intervals & keys(both.conf_dir).keys()


def test_who_runs_the_cluster_may_ask_for_its_users_from_this_machine_and_nobody_else_may(
    both: Cluster, tmp_path: Path
) -> None:
    hosts = {"hadoop.proxyuser.me.hosts": "127.0.0.0/8"}
    alone = made(tmp_path, kerberos=True)

    assert allowed(both) == hosts | {"hadoop.proxyuser.me.users": "alice"}
    assert allowed(alone) == hosts


def allowed(cluster: Cluster) -> dict[str, str]:
    """Who may ask for whom."""
    return {key: told for key, told in keys(cluster.conf_dir).items() if key.startswith("hadoop.proxyuser.")}


def test_users_are_known_without_accounts_and_only_who_runs_the_cluster_may_do_everything(both: Cluster) -> None:
    groups = dict(
        one.split("=") for one in keys(both.conf_dir)["hadoop.user.group.static.mapping.overrides"].split(";")
    )
    assert groups == {"hdfs": "hdfs,supergroup", "yarn": "yarn", "alice": "alice", "me": "me,supergroup"}


def test_passwords_are_in_files_that_nobody_else_may_read(both: Cluster) -> None:
    secret = both.state.rglob("ssl-server.xml")
    assert {file.stat().st_mode & 0o777 for file in secret} == {0o600}


def test_two_masters_share_the_order_of_nodes_that_is_edited(tmp_path: Path) -> None:
    ha = made(tmp_path, ha=True, plugin=True)

    assert {file.parent for file in ha.state.rglob(site.POLICY_FILE)} == {ha.conf_dir, *places(ha)[3:]}
    for node in (None, ha.masters[1]):
        folders = daemons.command(Daemon(ha, "resourcemanager", node))[-2].split(":")[2:]
        assert folders == [str(site.conf_dir(ha, node)), str(ha.conf_dir)]
