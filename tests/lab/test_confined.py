"""What the service and the agents cannot reach on their machines, although it belongs to their own user."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest

import lab
from tests.lab.playbooks import agents, until

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(1800)]

NODE = "worker3"
HOME = "/var/lib/nodewise"
AGENT = f"{HOME}/.nodewise/agents/{NODE}"
# What the agent believes when it starts next, and what lets somebody log in.
TRUSTED = (
    f"{AGENT}/current/manifest.json",
    f"{AGENT}/current/agent.pyz",
    f"{AGENT}/settings.json",
    f"{AGENT}/token",
    f"{AGENT}/agent.key",
    f"{AGENT}/another",
    f"{HOME}/.ssh/authorized_keys",
    f"{HOME}/.profile",
)
# Opens each of its arguments for writing, straight and through every process that there is, and prints which it could.
HOSTILE = f"""\
for root in '' /proc/[0-9]*/root; do
    for path in {" ".join(TRUSTED)}; do
        true 2>/dev/null >>"$root$path" && reached="$reached $root$path"
    done
done
true >>"$STATE_DIR/mine" && echo "reached:$reached"
"""
# Opens each of its arguments for reading and for writing, and prints what it could.
OPENER = """
import os, sys
for path in sys.argv[1:]:
    for word, flags in (("read", os.O_RDONLY), ("write", os.O_WRONLY | os.O_APPEND)):
        try:
            os.close(os.open(path, flags))
            print(word, path)
        except OSError:
            pass
"""

# Prints what the service answers to whoever shows the token of YARN's user on a worker, for each path.
ASK = """
import ssl, sys, urllib.error, urllib.request
token = open("/etc/nodewise/tokens/attributes").read().strip()
trusted = ssl.create_default_context(cafile="/etc/nodewise/tls/ca.pem")
for path in sys.argv[1:]:
    asked = urllib.request.Request(f"https://master:8400/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})
    try:
        print(urllib.request.urlopen(asked, timeout=10, context=trusted).status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""


def main_pid(name: str, unit: str) -> str:
    return lab.run(name, ["systemctl", "show", "--property=MainPID", "--value", unit]).strip()


def within(name: str, unit: str, *argv: str) -> str:
    """What a program prints that runs where a unit's own one does: in its namespaces, as its user."""
    user, group = (lab.run(name, ["id", word, "nodewise"]).strip() for word in ("-u", "-g"))
    entered = ["sudo", "nsenter", "--target", main_pid(name, unit), "--mount", "--user"]
    return lab.run(name, [*entered, "--setuid", user, "--setgid", group, "--", *argv])


def stored(name: str) -> dict[str, float]:
    """A value of each node, as the service has it."""
    return {
        one["node_name"]: float(one["data_value"]) for one in json.loads(lab.nodewise("data", "get", name, "--json"))
    }


@pytest.fixture
def somebody(request: pytest.FixtureRequest) -> Iterator[str]:
    """A program of the same user outside of the unit, as a push is one; its process id."""
    name: str = request.param
    start = "sudo -u nodewise sh -c 'sleep 600 > /dev/null 2>&1 & echo $!'"
    pid = lab.run(name, ["sh", "-c", start]).strip()
    yield pid
    lab.run(name, ["sudo", "kill", pid])


@pytest.mark.parametrize("somebody", ["master"], indirect=True)
def test_the_service_reads_no_key_of_the_operators_and_writes_into_its_own_folder_alone(somebody: str) -> None:
    key, agents_key = f"{HOME}/.ssh/id_ed25519", "/etc/nodewise/tls/agents/worker1.key"
    own = f"{HOME}/service/token"
    others = [f"{HOME}/proven", key, agents_key, "/etc/nodewise/tls/authority.key", f"/proc/{somebody}/root{key}"]

    reached = within("master", "nodewise-infosvc", "python3", "-c", OPENER, own, *others).splitlines()

    assert lab.run("master", ["sudo", "-u", "nodewise", "python3", "-c", OPENER, key]).split() == [
        *("read", key),
        *("write", key),
    ]
    assert reached == [f"read {own}", f"write {own}", f"read {HOME}/proven"]


@pytest.fixture
def hostile() -> Iterator[str]:
    """A pushed collector that tries to change what its agent trusts; it is gone at the end."""
    folder = lab.run("master", ["sudo", "-u", "nodewise", "mktemp", "-d"]).strip()
    write = f"mkdir {folder}/scripts && printf %s {shlex.quote(HOSTILE)} > {folder}/scripts/hostile.sh"
    lab.run("master", ["sudo", "-u", "nodewise", "sh", "-c", write])
    lab.nodewise("producer", "push", "--files", folder, NODE)
    try:
        lab.nodewise("producer", "put", "hostile", "--cmd", "scripts/hostile.sh", "--time-max", "300")
        yield "hostile"
    finally:
        lab.nodewise("producer", "rm", "hostile")
        lab.nodewise("producer", "push", "--rollback", NODE)
        lab.run("master", ["sudo", "rm", "-r", folder])


@pytest.mark.parametrize("somebody", [NODE], indirect=True)
def test_a_collector_rewrites_nothing_that_its_agent_trusts(somebody: str, hostile: str) -> None:
    lab.nodewise("slot", "start", hostile, "--node", NODE)

    def value() -> str | None:
        (slot,) = [item for item in json.loads(lab.nodewise("slot", "list", "--node", NODE, "--json"))
                   if item["data_name"] == hostile]  # fmt: skip
        assert slot["outcome"] in (None, "ok"), slot
        if slot["outcome"] is None:
            return None
        (datum,) = json.loads(lab.nodewise("data", "get", hostile, "--json"))
        return str(datum["data_value"])

    until(lambda: value() is not None, 90)

    assert somebody
    assert value() == "reached:"


def test_the_agent_sees_what_lxcfs_tells_of_its_own_machine() -> None:
    look = ["grep", "MemTotal", "/proc/meminfo"]
    own = lab.run(NODE, look)
    mounts = lab.run(NODE, ["sudo", "cat", f"/proc/{main_pid(NODE, 'nodewise-agent')}/mounts"])

    assert within(NODE, "nodewise-agent", *look) == own
    assert {line.split()[1] for line in mounts.splitlines() if line.startswith("lxcfs ")} >= {
        "/proc/meminfo",
        "/proc/stat",
    }
    until(lambda: stored("memory_total_bytes")[NODE] == 1024 * int(own.split()[1]), 90)


def test_the_agent_cannot_change_control_groups() -> None:
    options = within(NODE, "nodewise-agent", "findmnt", "--noheadings", "--output=OPTIONS", "/sys/fs/cgroup")

    assert "ro" in options.strip().split(",")


def test_containers_read_the_values_of_their_own_node_alone() -> None:
    paths = ["data/cpu_free_ratio/worker1", "data/cpu_free_ratio/worker2", "data/cpu_free_ratio", "nodes"]

    assert lab.run("worker1", ["sudo", "-u", "yarn", "python3", "-c", ASK, *paths]).split() == ["200", *["403"] * 3]


def test_an_agent_that_is_ended_leaves_nobodys_number_and_comes_again() -> None:
    before = main_pid(NODE, "nodewise-agent")
    lab.run(NODE, ["sudo", "systemctl", "stop", "nodewise-agent"])
    stopped = lab.run(NODE, ["systemctl", "show", "--property=Result", "--value", "nodewise-agent"]).strip()
    left = lab.run(NODE, ["sudo", "cat", f"{AGENT}/agent.pid"])
    lab.run(NODE, ["sudo", "rm", f"{AGENT}/agent.pid"])
    lab.run(NODE, ["sudo", "systemctl", "start", "nodewise-agent"])

    assert (stopped, left) == ("success", "")
    until(lambda: agents()[NODE] == "ready", 60)
    now = main_pid(NODE, "nodewise-agent")
    assert now not in (before, "0")
    assert lab.run(NODE, ["sudo", "cat", f"{AGENT}/agent.pid"]).strip() == now
