"""What the playbook writes onto the machines of a cluster with two masters, and of one with a single master."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ansible.conftest import played
from tests.ansible.rendering import HADOOP, PROGRAMS, ROLES, SITE, Texts, keys, render, unit

QUORUM = ("head", "second", "worker1")
MACHINES = {"master": ["head", "second"], "workers": ["worker1", "worker2"]}
KINDS = ("namenode", "resourcemanager", "datanode", "nodemanager")
TEMPLATES = {**SITE, **PROGRAMS, **{name: made for kind in KINDS for name, made in unit(kind).items()}}
WITH_MORE = {
    **TEMPLATES,
    "zoo.cfg": (f"{HADOOP}/ha/zoo.cfg.j2", ""),
    **{name: made for kind in ("zookeeper", "journalnode", "zkfc") for name, made in unit(kind).items()},
}
OF_FAILOVER = (".ha.", "zookeeper", "journal", "nameservice", "zkfc", "zk.", "failover", "haadmin")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Texts]:
    """What the machines of a cluster with two masters are given."""
    return render(tmp_path_factory.mktemp("pair"), MACHINES, {"hadoop_ha": True}, WITH_MORE)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Texts]:
    """What they are given with one."""
    machines = {"master": ["head"], "workers": ["worker1", "worker2"]}
    return render(tmp_path_factory.mktemp("single"), machines, {}, TEMPLATES)


def test_with_one_master_nothing_of_two_is_written(single: dict[str, Texts]) -> None:
    for texts in single.values():
        for name, text in texts.items():
            said = [line for line in text.splitlines() if "two share them in ZooKeeper" not in line]
            assert [line for line in said if any(word in line.lower() for word in OF_FAILOVER)] == [], name


def test_their_variables_change_nothing_with_one(single: dict[str, Texts], tmp_path: Path) -> None:
    told = {
        "hadoop_ha": False,
        "hadoop_quorum_hosts": ["head", "worker1", "worker2"],
        "hadoop_nameservice": "other",
        "hadoop_zookeeper_port": 1,
        "hadoop_fencing": "sshfence",
        "hadoop_small_heap_mb": 1,
    }
    machines = {"master": ["head"], "workers": ["worker1", "worker2"]}

    assert render(tmp_path, machines, told, TEMPLATES) == single


@pytest.mark.parametrize("host", ["head", "second", "worker1", "worker2"])
def test_everybody_finds_both_masters_and_the_three_that_decide(pair: dict[str, Texts], host: str) -> None:
    core, hdfs, yarn = (keys(pair[host][f"{name}-site.xml"]) for name in ("core", "hdfs", "yarn"))

    assert core["fs.defaultFS"] == "hdfs://nodewise"
    assert hdfs["dfs.ha.namenodes.nodewise"] == "nn1,nn2"
    assert hdfs["dfs.namenode.rpc-address.nodewise.nn1"] == "head:8020"
    assert hdfs["dfs.namenode.rpc-address.nodewise.nn2"] == "second:8020"
    assert hdfs["dfs.namenode.shared.edits.dir"] == "qjournal://head:8485;second:8485;worker1:8485/nodewise"
    assert core["ha.zookeeper.quorum"] == yarn["hadoop.zk.address"] == "head:2181,second:2181,worker1:2181"
    assert yarn["yarn.resourcemanager.hostname.rm2"] == "second"
    assert yarn["yarn.resourcemanager.store.class"].endswith(".ZKRMStateStore")


def test_each_machine_knows_what_it_is_itself(pair: dict[str, Texts]) -> None:
    hdfs, yarn = ({host: keys(texts[f"{name}-site.xml"]) for host, texts in pair.items()} for name in ("hdfs", "yarn"))

    assert [hdfs[host].get("dfs.ha.namenode.id") for host in pair] == ["nn1", "nn2", None, None]
    assert [yarn[host].get("yarn.resourcemanager.ha.id") for host in pair] == ["rm1", "rm2", None, None]
    journals = [hdfs[host].get("dfs.journalnode.rpc-address") for host in pair]
    assert journals == [*(f"{host}:8485" for host in QUORUM), None]


def test_a_master_that_lost_its_power_is_followed_and_the_journal_lets_one_write(pair: dict[str, Texts]) -> None:
    """Logging in on a machine that is off fails, and with sshfence alone nobody would take over."""
    assert keys(pair["head"]["hdfs-site.xml"])["dfs.ha.fencing.methods"] == "shell(/bin/true)"


def test_zookeeper_knows_hdfs_and_yarn_by_what_their_masters_alone_have(pair: dict[str, Texts]) -> None:
    core, yarn = (keys(pair["second"][f"{name}-site.xml"]) for name in ("core", "yarn"))

    assert core["ha.zookeeper.auth"] == "@/etc/hadoop/zookeeper/hdfs.auth"
    assert core["ha.zookeeper.acl"] == "@/etc/hadoop/zookeeper/hdfs.acl"
    assert yarn["hadoop.zk.auth"] == "@/etc/hadoop/zookeeper/yarn.auth"
    assert yarn["hadoop.zk.acl"] == "@/etc/hadoop/zookeeper/yarn.acl"
    assert "hadoop.zk.auth" not in keys(pair["worker1"]["yarn-site.xml"])


def test_the_name_of_who_shows_a_password_is_as_zookeeper_makes_it() -> None:
    script = (ROLES / "hadoop/files/zookeeper_name.py").read_text()
    words = [sys.executable, "-c", script]

    made = subprocess.run(words, input="super:test\n", capture_output=True, text=True, check=True).stdout

    # As ZooKeeper's own DigestAuthenticationProvider prints it.
    assert made == "super:D/InIHSb7yEEbrWz8b9l71RjZJU=\n"


def test_zookeepers_machines_know_each_other(pair: dict[str, Texts]) -> None:
    said = pair["worker1"]["zoo.cfg"].splitlines()

    assert [line for line in said if line.startswith("server.")] == [
        f"server.{number}={host}:2888:3888" for number, host in enumerate(QUORUM, 1)
    ]
    assert {"clientPortAddress=worker1", "clientPort=2181", "dataDir=/var/lib/hadoop/hdfs/zookeeper"} <= set(said)


@pytest.mark.parametrize(
    ("kind", "start", "folder"),
    [
        ("zookeeper", "hdfs zookeeper /etc/hadoop/zoo.cfg", "/var/lib/hadoop/hdfs/zookeeper"),
        ("journalnode", "hdfs journalnode", "/var/lib/hadoop/hdfs/journal"),
        ("zkfc", "hdfs zkfc", "/var/lib/hadoop/hdfs/tmp"),
    ],
)
def test_what_masters_share_runs_as_hdfs_and_writes_into_its_own_folder(
    pair: dict[str, Texts], kind: str, start: str, folder: str
) -> None:
    said = pair["head"][f"{kind}.service"].splitlines()

    assert {"User=hdfs", f"ExecStart=/usr/local/bin/{start}", "NoNewPrivileges=true"} <= set(said)
    (writable,) = [line for line in said if line.startswith("ReadWritePaths=")]
    assert folder in writable.removeprefix("ReadWritePaths=").split()
    assert "-Xmx128m" in pair["head"][f"{kind}.service"]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("zookeeper", "org.apache.zookeeper.server.quorum.QuorumPeerMain"),
        ("journalnode", "org.apache.hadoop.hdfs.qjournal.server.JournalNode"),
        ("zkfc", "org.apache.hadoop.hdfs.tools.DFSZKFailoverController"),
        ("haadmin", "org.apache.hadoop.hdfs.tools.DFSHAAdmin"),
    ],
)
def test_the_command_hdfs_runs_them_where_there_are_two(
    pair: dict[str, Texts], single: dict[str, Texts], tmp_path: Path, kind: str, name: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    answers = []
    for texts in (pair["head"], single["head"]):
        program = tmp_path / "hdfs"
        program.write_text(texts["hdfs"].replace("/usr/lib/jvm/java-17-openjdk-amd64", str(tmp_path)))
        words = ["sh", str(program), kind, "-help"]
        answers.append(subprocess.run(words, env=dict(os.environ), capture_output=True, text=True, check=False))

    assert answers[0].stdout.splitlines()[-2:] == [name, "-help"]
    assert (answers[1].returncode, kind in answers[1].stderr) == (2, False)


STATES = """#!/bin/sh
case "$*" in
  *haadmin*) echo "head:8020      standby"; echo "second:8020    active" ;;
  *rmadmin*) echo "head:8033      active"; echo "second:8033    Failed to connect: Connection refused" ;;
esac
"""


def test_pages_are_asked_for_where_masters_are_active(tmp_path: Path) -> None:
    (tmp_path / "runuser").write_text(STATES)
    (tmp_path / "runuser").chmod(0o755)
    show = {"debug": {"msg": "asks {{ nodewise_namenode_url }} and {{ nodewise_resourcemanager_url }} now"}}
    book = {
        "hosts": "worker1",
        "gather_facts": False,
        "environment": {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        "roles": [{"role": "nodewise"}],
        "tasks": [{"import_role": {"name": "nodewise", "tasks_from": "active"}}, show],
    }
    (tmp_path / "ask.yml").write_text(json.dumps([book]))
    groups = {group: {"hosts": dict.fromkeys(names)} for group, names in MACHINES.items()}
    inventory = {"all": {"children": groups, "vars": {"ansible_connection": "local", "hadoop_ha": True}}}

    answer = played(tmp_path, tmp_path / "ask.yml", inventory)

    assert "asks http://second:9870 and http://head:8088 now" in answer.stdout, answer.stdout


@pytest.mark.parametrize("playbook", ["preflight.yml", "site.yml", "uninstall.yml", "upgrade.yml"])
def test_a_machine_that_is_called_master_does_not_stand_for_its_group(playbook: str, tmp_path: Path) -> None:
    groups = {"master": ["master", "second"], "workers": ["worker1"]}
    children = {group: {"hosts": dict.fromkeys(names)} for group, names in groups.items()}

    said = played(tmp_path, playbook, {"all": {"children": children}}, "--list-hosts").stdout

    plays = [play.split("hosts (")[1] for play in said.split("  play #")[1:] if "master[0:]" in play]
    assert plays and all("second" in play and "master" in play for play in plays), said
    assert not re.search(r"pattern: \['(master|master:workers)'\]", said)
