"""What the playbook makes of bare machines with Kerberos: it stays so, and nothing is told without a ticket."""

from __future__ import annotations

import json

import pytest

import lab
from lab.places import SECURE
from tests.lab.playbooks import changes, play, until
from tests.recipes.pages import block

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(3600)]

MASTERS = ("master", "second")
WORKERS = ("worker1", "worker2", "worker3")
NAMES = (*MASTERS, *WORKERS)
REALM = "LAB.EXAMPLE.ORG"
PAGES = ("https://master:9871/jmx", "http://master:8088/ws/v1/cluster/info", "https://worker1:9865/jmx")
KEYTABS = {
    **{
        name: {"hdfs/HTTP", "hdfs/nn", "yarn/HTTP", "yarn/rm", "nodewise/nodewise", "nodewise/HTTP"} for name in MASTERS
    },
    **{name: {"hdfs/HTTP", "hdfs/dn", "yarn/HTTP", "yarn/nm"} for name in WORKERS},
}
for deciding in (*MASTERS, "worker1"):
    KEYTABS[deciding].add("hdfs/jn")
KADMIN = "sudo KRB5_KDC_PROFILE=/var/lib/nodewise-kdc/kdc.conf kadmin.local"
ASK = """
import base64, sys, urllib.error, urllib.request
from urllib.parse import urlsplit
url, ticket = sys.argv[1], sys.argv[2:]
headers = {}
if ticket:
    import gssapi
    name = gssapi.Name(f"HTTP@{urlsplit(url).hostname}", gssapi.NameType.hostbased_service)
    token = gssapi.SecurityContext(name=name, usage="initiate").step()
    headers["Authorization"] = "Negotiate " + base64.b64encode(token).decode()
try:
    print(urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError:
    print(0)
"""
"""Prints the status of a page, 0 where nobody answers; a further argument shows it a ticket."""


def on_master(text: str) -> str:
    """What commands print to the operator who logs in there."""
    return lab.run("master", ["bash", "-eo", "pipefail", "-c", text], 300)


def status(url: str, keytab: str = "") -> str:
    """The status with which a page of a daemon answers who shows no ticket, or one by a keytab."""
    shown = ["sudo", "env", f"KRB5_CLIENT_KTNAME={keytab}", "KRB5CCNAME=MEMORY:"] if keytab else []
    return lab.run("master", [*shown, "python3", "-c", ASK, url, *(["ticket"] if keytab else [])], 60).strip()


def test_a_second_run_changes_nothing() -> None:
    assert changes(play("site.yml", inventory=SECURE)) == dict.fromkeys(NAMES, 0)


def test_a_check_finds_nothing_to_change() -> None:
    run = play("site.yml", "--check", "--limit", "master,worker1", inventory=SECURE)

    assert changes(run) == {"master": 0, "worker1": 0}


@pytest.mark.parametrize("name", NAMES)
def test_each_machine_has_its_own_keytabs_alone_and_nobody_else_reads_them(name: str) -> None:
    listing = ["sudo", "find", "/etc/security/keytabs", "-name", "*.keytab", "-printf", "%P %m %u\\n"]
    found = [line.split() for line in lab.run(name, listing).splitlines()]

    assert {file.removesuffix(".keytab") for file, _, _ in found} == KEYTABS[name]
    assert {(mode, owner == file.split("/")[0]) for file, mode, owner in found} == {("600", True)}
    for file, _, _ in found:
        held = lab.run(name, ["sudo", "klist", "-k", f"/etc/security/keytabs/{file}"])
        assert all(name in line or "nodewise@" in line for line in held.splitlines() if "@" in line)


@pytest.mark.parametrize("url", PAGES)
def test_a_page_is_told_to_who_shows_a_ticket_alone(url: str) -> None:
    assert status(url) == "401"
    assert status(url, "/etc/security/keytabs/hdfs/HTTP.keytab") == "200"


def test_without_a_ticket_nobody_reads_hdfs() -> None:
    said = on_master("KRB5CCNAME=FILE:/nowhere hdfs dfs -ls / 2>&1 || true")

    assert "Client cannot authenticate via:[TOKEN, KERBEROS]" in said


def test_daemons_know_one_another_by_the_names_of_their_machines() -> None:
    """A loopback cluster cannot show it: there every daemon calls from the same address."""
    report = on_master("sudo -u hdfs hdfs dfsadmin -report")
    nodes = on_master("sudo -u yarn yarn node -list")

    assert all(f"Hostname: {worker}" in report and f"{worker}:" in nodes for worker in WORKERS)


@pytest.fixture
def alice() -> str:
    """The keytab of a user."""
    on_master(f"mkdir -p ~/keys && {KADMIN} -q 'ktadd -norandkey -k {'/home/operator/keys/alice'} alice'")
    on_master("sudo chown operator ~/keys/alice")
    return "/home/operator/keys/alice"


def test_the_users_of_the_inventory_have_homes_that_are_theirs_alone(alice: str) -> None:
    change, use = block("kerberos-users").splitlines()
    assert change.startswith(f"{KADMIN} cpw alice")
    assert use.startswith("kinit alice && ")

    # By the keytab, as a password would be asked for.
    on_master(use.replace("kinit alice", f"kinit -k -t {alice} alice"))
    on_master("echo words | hdfs dfs -put -f - /user/alice/words")
    refused = on_master("hdfs dfs -ls /user/bob 2>&1 || true")

    assert "Permission denied: user=alice" in refused
    assert on_master("sudo -u hdfs hdfs dfs -stat %u /user/alice/words").strip() == "alice"
    on_master("hdfs dfs -rm -skipTrash /user/alice/words && kdestroy")


def test_a_user_logs_in_at_the_service_by_ticket(alice: str) -> None:
    log_in = block("kerberos-login")
    assert log_in.startswith("kinit alice\n")
    # By the keytab, as a password would be asked for.
    said = on_master(log_in.replace("kinit alice", f"kinit -k -t {alice} alice"))
    listed = on_master("kdestroy; nodewise task list --json")
    refused = on_master("nodewise login --token-file ~/none 2>&1 || true")

    assert said.startswith("alice: token of role user until 20")
    assert said.splitlines()[0].endswith("written to /home/operator/.nodewise/service/token")
    assert json.loads(listed) == [], "she sees no task of others"
    assert "want a ticket of Kerberos, and there is none" in refused
    on_master("rm -r ~/.nodewise")


def test_what_the_page_says_of_the_inventory_is_what_the_lab_has() -> None:
    shown = [line.split(":")[0] for line in block("kerberos-inventory").splitlines()]
    told = [line.strip().split(":")[0] for line in SECURE.read_text().splitlines()]

    assert shown[0] == "hadoop_kerberos"
    assert [name for name in shown if name not in told] == []


def test_a_machine_that_was_off_comes_back() -> None:
    lab.kill("master")
    lab.start("master")

    until(lambda: status(PAGES[0]) == "401", 180)
    until(lambda: all(worker in on_master("sudo -u yarn yarn node -list") for worker in WORKERS), 300)


def test_a_worker_that_is_removed_has_no_principals_any_more() -> None:
    changes(play("remove.yml", "-e", "node=worker3", inventory=SECURE))

    assert "worker3" not in on_master(f"{KADMIN} -q listprincs")
    assert lab.run("worker3", ["sudo", "find", "/etc/security/keytabs", "-type", "f"]) == ""

    changes(play("site.yml", "--limit", "worker3", inventory=SECURE))
    known = json.loads(lab.nodewise("node", "list", "--json"))
    assert "worker3" in {node["node_name"] for node in known if node["state"] == "ready"}
