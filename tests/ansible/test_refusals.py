"""What the inventory alone shows to be wrong is refused in one sentence, before any machine is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ansible.conftest import Inventory, Play

REMEDY = "as ansible/example/inventory.yml does."


def no_master(groups: Inventory) -> None:
    del groups["master"]


def empty_master(groups: Inventory) -> None:
    groups["master"]["hosts"] = {}


def two_masters(groups: Inventory) -> None:
    groups["master"]["hosts"]["other"] = {"ansible_host": "192.0.2.20"}


def no_workers(groups: Inventory) -> None:
    del groups["workers"]


def nobody(groups: Inventory) -> None:
    groups.clear()


def in_both(groups: Inventory) -> None:
    groups["workers"]["hosts"]["head"] = {}


def two_names(groups: Inventory) -> None:
    groups["workers"]["hosts"]["worker3"] = {"ansible_host": "192.0.2.12"}


def no_names(groups: Inventory) -> None:
    groups["workers"]["hosts"] |= {name: {"ansible_host": f"192.0.2.{at}"} for at, name in enumerate(NO_NAMES, 20)}


def placed(address: str) -> Callable[[Inventory], None]:
    def change(groups: Inventory) -> None:
        groups["workers"]["hosts"]["worker2"] = {"ansible_host": address} if address else {}

    return change


def with_ssh_elsewhere(groups: Inventory) -> None:
    groups["workers"]["hosts"]["worker2"]["ansible_port"] = 2222


def known_by_a_public_address(groups: Inventory) -> None:
    groups["workers"]["hosts"]["worker2"]["nodewise_address"] = "203.0.113.9"


def with_torch_and_no_python(groups: Inventory) -> None:
    groups["workers"]["hosts"]["worker2"] |= {"jobs_torch": True, "nodewise_worker_python": False}


def with_kerberos(**told: object) -> Callable[[Inventory], None]:
    def change(groups: Inventory) -> None:
        groups["master"]["vars"] = groups["workers"]["vars"] = {"hadoop_kerberos": True, **told}

    return change


def with_failover(second: bool, **told: object) -> Callable[[Inventory], None]:
    def change(groups: Inventory) -> None:
        if second:
            groups["master"]["hosts"]["other"] = {"ansible_host": "192.0.2.20"}
        groups["master"]["vars"] = groups["workers"]["vars"] = {"hadoop_ha": True, **told}

    return change


def told_apart(**told: object) -> Callable[[Inventory], None]:
    def change(groups: Inventory) -> None:
        groups["master"]["hosts"]["other"] = {"ansible_host": "192.0.2.20"}
        groups["master"]["vars"] = {"hadoop_ha": True, "hadoop_kerberos": True, "hadoop_realm": "A.ORG"}
        groups["workers"]["vars"] = groups["master"]["vars"] | told

    return change


NO_NAMES = ("Node_3", "-a", "10.0.0.7", "localhost", "a..b", "x" * 64)
NO_NAME = (
    "in the inventory is not a host name, by which HDFS and YARN would know the machine: "
    "use small letters, digits and hyphens, and put the address into ansible_host."
)
NO_ADDRESS = (
    "as its ansible_host, which is not an IPv4 address by which others reach it: "
    "write that there, or set machine_manage_hosts to false where DNS knows all machines."
)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (no_master, f"The inventory has no host in group master: name one machine there, {REMEDY}"),
        (empty_master, f"The inventory has no host in group master: name one machine there, {REMEDY}"),
        (nobody, f"The inventory has no host in group master: name one machine there, {REMEDY}"),
        (
            two_masters,
            "Group master has 2 hosts (head, other), and a cluster has one master: leave one there and move the others "
            "to group workers.",
        ),
        (no_workers, f"The inventory has no host in group workers: name one machine there at least, {REMEDY}"),
        (in_both, "Host head is in group master and in group workers: take it out of one of them."),
        (
            two_names,
            "worker2 and worker3 have the same ansible_host 192.0.2.12: give each its own address, or take one out "
            "of the inventory.",
        ),
        (
            with_ssh_elsewhere,
            "worker2 has ansible_port 2222, but the master reaches workers on port 22: let sshd listen there for the "
            "master.",
        ),
        (
            with_torch_and_no_python,
            "worker2 has jobs_torch: true and nodewise_worker_python: false, and PyTorch needs the workers' Python: "
            "take one of them out of the inventory.",
        ),
        (
            with_failover(second=False),
            "The inventory has hadoop_ha: true, and group master has 1 host (head): name two there, first the one with "
            "the service, then the one that takes over HDFS and YARN.",
        ),
        *(
            (
                with_failover(second=True, hadoop_quorum_hosts=hosts),
                "With hadoop_ha, ZooKeeper and the journal need an odd number of the inventory's machines, three at "
                f"least, and hadoop_quorum_hosts has {', '.join(hosts)}: name three such machines, or leave it out for "
                "the masters and the first worker.",
            )
            for hosts in (["head", "other"], ["head", "other", "worker1", "worker2"], ["head", "other", "elsewhere"])
        ),
        *(
            (
                told_apart(**{name: value}),
                f"{name} is not the same for all machines (head: {said}, other: {said}, worker1: {other}, "
                f"worker2: {other}): say it once, under all: vars: of the inventory.",
            )
            for name, value, said, other in (
                ("hadoop_kerberos", False, "true", "false"),
                ("hadoop_ha", False, "true", "false"),
                ("hadoop_realm", "B.ORG", '"A.ORG"', '"B.ORG"'),
            )
        ),
        (
            with_failover(second=False, hadoop_ha=False, infosvc_ha=True),
            "The inventory has infosvc_ha: true, and two services need two masters: set hadoop_ha to true and name a "
            "second host in group master, or leave infosvc_ha out.",
        ),
        (
            with_failover(second=True, infosvc_ha=True, infosvc_database="sqlite:////srv/infosvc.db"),
            "The inventory has infosvc_ha: true and an SQLite file as infosvc_database, which two services cannot "
            "share: leave infosvc_database out for a MariaDB.",
        ),
        (
            with_failover(second=True, infosvc_ha=True, mariadb_address="127.0.0.1"),
            "mariadb_address is 127.0.0.1, where other cannot reach MariaDB on head: leave it out.",
        ),
        (
            with_failover(second=True, mariadb_host="worker2", mariadb_address="localhost"),
            "mariadb_address is localhost, where head cannot reach MariaDB on worker2: leave it out.",
        ),
        (
            with_failover(second=True, infosvc_ha=True, mariadb_host="db.example.org"),
            "The database is on db.example.org, which is not one of the machines in the inventory, and nobody knows "
            "its password: give that as mariadb_password, for instance from ansible-vault, or leave mariadb_host out "
            "for a MariaDB on the first master.",
        ),
        *(
            (
                told_apart(**{name: value}),
                f"{name} is not the same for all machines (head: {said}, other: {said}, worker1: {other}, "
                f"worker2: {other}): say it once",
            )
            for name, value, said, other in (
                ("infosvc_ha", True, "false", "true"),
                ("mariadb_host", "worker2", '""', '"worker2"'),
            )
        ),
        (
            with_kerberos(hadoop_realm="Example.org"),
            'The inventory has hadoop_kerberos: true and "Example.org" as its hadoop_realm, which is not the name of a '
            "realm: give one such as CLUSTER.EXAMPLE.ORG, of capital letters, digits, hyphens and dots.",
        ),
        (
            with_kerberos(hadoop_realm="A.ORG", kdc_users=["alice", "a b", "hdfs"]),
            "kdc_users has a b, hdfs: give names such as alice, of small letters, digits, dots, hyphens and "
            "underscores, and none of this cluster's accounts (hdfs, yarn, nodewise, root).",
        ),
        (
            with_kerberos(hadoop_realm="A.ORG", hadoop_protection="none"),
            'hadoop_protection is "none": give authentication, integrity or privacy.',
        ),
        (
            with_kerberos(hadoop_realm="A.ORG", kdc_host="kdc.example.org", kdc_keytabs="/nowhere"),
            "The KDC is kdc.example.org, and 10 keytabs for it are missing, such as /nowhere/head/nn.keytab: let who "
            "keeps it make nn/head and the others there, or leave kdc_host out for a KDC on the master.",
        ),
        *(
            (change, f"worker2 would be reached at {at}, a public address, and Hadoop asks nobody for a password")
            for change, at in ((placed("198.51.100.7"), "198.51.100.7"), (known_by_a_public_address, "203.0.113.9"))
        ),
        (no_names, f"{', '.join(NO_NAMES)} {NO_NAME}"),
        *((placed(at), f'worker2 has "{at}" {NO_ADDRESS}') for at in ("", "node2.example.org", "127.0.0.1")),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:30],
)
def test_a_wrong_inventory_is_refused(
    play: Play, inventory: Inventory, payload: Path, change: Callable[[Inventory], None], sentence: str
) -> None:
    change(inventory["all"]["children"])

    answer = play("preflight.yml", inventory, "-e", f"nodewise_payload={payload}")

    assert answer.returncode != 0
    assert sentence in _words(answer.stdout)
    assert "unreachable=1" not in answer.stdout
    assert "Traceback" not in answer.stdout + answer.stderr


@pytest.mark.parametrize("limit", ["worker1", "worker1,master"])
def test_a_wrong_inventory_is_refused_to_who_adds_one_node_too(
    play: Play, inventory: Inventory, payload: Path, limit: str
) -> None:
    two_names(inventory["all"]["children"])

    answer = play("site.yml", inventory, "-e", f"nodewise_payload={payload}", "--limit", limit)

    assert "worker2 and worker3 have the same ansible_host 192.0.2.12" in _words(answer.stdout)
    assert "unreachable=1" not in answer.stdout


def test_nothing_is_removed_before_somebody_says_that_it_is_meant(play: Play, inventory: Inventory) -> None:
    answer = play("uninstall.yml", inventory)

    assert answer.returncode != 0
    assert "of nodewise on head, worker1, worker2: say -e sure=true if that is meant." in _words(answer.stdout)
    assert "unreachable=1" not in answer.stdout


def test_without_a_payload_nothing_begins(play: Play, inventory: Inventory, tmp_path: Path) -> None:
    answer = play("preflight.yml", inventory, "-e", f"nodewise_payload={tmp_path}/none")

    wanted = f"There is no {tmp_path}/none/payload.json: run scripts/payload, which makes what machines are given."
    assert wanted in _words(answer.stdout)


def test_a_payload_that_is_not_complete_is_refused(play: Play, inventory: Inventory, payload: Path) -> None:
    missing, half = payload / "worker.tar.gz", payload / "hadoop.tar.gz"
    missing.unlink()
    half.write_text("half of it")

    answer = play("preflight.yml", inventory, "-e", f"nodewise_payload={payload}")

    assert f"{missing} is missing: run scripts/payload again." in _words(answer.stdout)
    assert f"{half} is not what payload.json says: run scripts/payload again." in _words(answer.stdout)
    assert "unreachable=1" not in answer.stdout


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "192.0.2.12"),
        ({"machine_manage_hosts": False}, "node2.example.org"),
        ({"preflight_public_addresses": True}, "198.51.100.7"),
    ],
)
def test_a_right_inventory_goes_on_to_its_machines(
    play: Play, inventory: Inventory, payload: Path, tmp_path: Path, settings: dict[str, bool], address: str
) -> None:
    unreachable = tmp_path / "ssh"
    unreachable.write_text("#!/bin/sh\nexit 255\n")
    unreachable.chmod(0o755)
    inventory["all"]["vars"] = {"ansible_ssh_executable": str(unreachable), **settings}
    placed(address)(inventory["all"]["children"])

    answer = play("preflight.yml", inventory, "-e", f"nodewise_payload={payload}")

    assert answer.stdout.count("unreachable=1") == 3
    assert "failed=1" not in answer.stdout


def _words(text: str) -> str:
    """What was said, however it was broken into lines."""
    # YAML doubles the quotes of a text that it quotes.
    return " ".join(text.split()).replace("''", "'")
