"""What the playbook has made of bare machines: it stays as it is, keeps its secrets, and works."""

from __future__ import annotations

import json
import re
import stat

import pytest

import lab
from lab.places import INVENTORY
from tests.lab.playbooks import changes, everywhere, pictures, play, results, sweep, until

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(1800)]

WORKERS = ("worker1", "worker2", "worker3", "worker4")
NAMES = ("master", *WORKERS)
OF_WORKERS = (
    "nodewise-agent", "hadoop-datanode", "hadoop-nodemanager", "nodewise-mounts", "docker", "nodewise-boxes.socket",
)  # fmt: skip
UNITS = {
    "master": ("mariadb", "nodewise-infosvc", "hadoop-namenode", "hadoop-resourcemanager"),
    **dict.fromkeys(WORKERS, OF_WORKERS),
}
# A word of its command line, and as whom the program must run.
DAEMONS = {
    "master": {"NameNode": "hdfs", "ResourceManager": "yarn", "nodewise serve": "nodewise", "mariadbd": "mysql"},
    **{name: {"DataNode": "hdfs", "NodeManager": "yarn", "agent.pyz": "nodewise"} for name in WORKERS},
}
OURS = re.compile(r"org\.apache\.hadoop|/opt/nodewise/|agent\.pyz|mariadbd")
AGENT = "/var/lib/nodewise/.nodewise/agents"
SECRETS = {
    "master": {
        "/etc/nodewise/database_password": "600 nodewise",
        "/etc/nodewise/infosvc.env": "600 root",
        "/etc/nodewise/tls/authority.key": "600 root",
        "/etc/nodewise/tls/service.key": "600 nodewise",
        "/etc/nodewise/tls/agents/worker1.key": "600 nodewise",
        "/etc/nodewise/tokens/policy": "640 root",
        "/var/lib/nodewise/service/token": "600 nodewise",
        "/var/lib/nodewise/.ssh/id_ed25519": "600 nodewise",
    },
    **{
        name: {
            "/etc/nodewise/tokens/attributes": "640 root",
            f"{AGENT}/{name}/token": "600 nodewise",
            f"{AGENT}/{name}/agent.key": "600 nodewise",
            f"{AGENT}/{name}/settings.json": "600 nodewise",
        }
        for name in WORKERS
    },
}
# What the service says to whoever shows the token of YARN's plug-in.
EXPLAIN = """
import ssl, sys, urllib.request
token = open("/etc/nodewise/tokens/policy").read().strip()
asked = urllib.request.Request("https://master:8400/api/v1/explain", headers={"Authorization": f"Bearer {token}"})
trusted = ssl.create_default_context(cafile="/etc/nodewise/tls/ca.pem")
sys.stdout.write(urllib.request.urlopen(asked, timeout=10, context=trusted).read().decode())
"""


def test_a_second_run_changes_nothing() -> None:
    assert changes(play("site.yml")) == dict.fromkeys(NAMES, 0)


def test_a_check_finds_nothing_to_change() -> None:
    assert changes(play("site.yml", "--check", "--limit", "master,worker1")) == {"master": 0, "worker1": 0}


@pytest.mark.parametrize("name", NAMES)
def test_each_daemon_runs_as_its_own_user_and_nothing_of_ours_as_root(name: str) -> None:
    lines = lab.run(name, ["ps", "-eo", "user:32,args", "--no-headers"]).splitlines()
    found = [line.split(maxsplit=1) for line in lines]

    for word, user in DAEMONS[name].items():
        assert {owner for owner, command in found if word in command and "ps -eo" not in command} == {user}
    assert [command for owner, command in found if owner == "root" and OURS.search(command)] == []


@pytest.mark.parametrize("name", NAMES)
def test_everything_but_sshd_listens_on_the_machines_own_address_or_on_loopback(name: str) -> None:
    own = lab.machine(name).address
    listening = [line.split()[3] for line in lab.run(name, ["ss", "-H", "-t", "-l", "-n"]).splitlines()]
    addresses = {
        address.strip("[]").removeprefix("::ffff:")
        for address, _, port in (socket.rpartition(":") for socket in listening)
        if port != "22"
    }

    assert own in addresses
    assert {address for address in addresses - {own, "::1"} if not address.startswith("127.")} == set()


@pytest.mark.parametrize("name", NAMES)
def test_secrets_are_readable_for_who_needs_them_alone(name: str) -> None:
    for file, mode in SECRETS[name].items():
        assert lab.run(name, ["sudo", "stat", "-c", "%a %U", file]).strip() == mode, file
    group = lab.run(name, ["sudo", "sh", "-c", "stat -c %G /etc/nodewise/tokens/*"])
    assert group.strip() == "yarn"


@pytest.mark.parametrize("name", NAMES)
def test_no_token_and_no_password_lies_where_everybody_can_read(name: str) -> None:
    password = (INVENTORY.parent / "secrets" / "database_password").read_text().strip()
    places = ["/etc/nodewise", "/etc/hadoop", "/etc/systemd/system", "/var/lib/nodewise", "/usr/local/bin"]
    readable = lab.run(name, ["sudo", "find", *places, "-type", "f", "-perm", "/004"]).split()
    search = ["sudo", "grep", "-lE", f"nw_[a-z]+_|{password}|PRIVATE KEY", "--", *readable]

    assert "/etc/hadoop/core-site.xml" in readable
    assert lab.run(name, ["sh", "-c", '"$@" || [ $? = 1 ]', "-", *search]) == ""  # grep's 1 is that there is none


def test_the_password_that_was_made_is_the_operators_alone() -> None:
    made = INVENTORY.parent / "secrets" / "database_password"

    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert len(made.read_text().strip()) >= 32


def test_a_job_gives_each_of_sixty_pictures_one_row() -> None:
    sweep("/data/sixty", "/out/sixty")
    pictures(60, "/data/sixty")
    words = ["--input", "hdfs:///data/sixty", "--output", "hdfs:///out/sixty", "--policy", "maxflow"]
    report = json.loads(lab.nodewise("job", "submit", *words, "--capability", "perf_cpu", "--wait", "--json"))
    rows = results("/out/sixty")
    sweep("/data/sixty", "/out/sixty")

    assert report["images"] == 60
    assert len({row["path"] for row in rows}) == len(rows) == 60
    assert [row["error"] for row in rows if row["error"]] == []
    assert {row["node_name"] for row in rows} <= set(WORKERS)


def test_the_service_tells_yarns_order_of_all_workers() -> None:
    (policy,) = json.loads(lab.run("master", ["sudo", "python3", "-c", EXPLAIN]))["policies"]

    assert {node["node_name"] for node in policy["nodes"]} == set(WORKERS)
    assert all(node["parts"] for node in policy["nodes"])
    assert [node["score"] for node in policy["nodes"] if not 0 <= node["score"] <= 1] == []


def test_who_shows_no_token_is_told_nothing() -> None:
    asked = EXPLAIN.replace(', headers={"Authorization": f"Bearer {token}"}', "")

    with pytest.raises(lab.LabError, match="401"):
        lab.run("master", ["sudo", "python3", "-c", asked])


@pytest.mark.parametrize("name", ["worker2", "master"])
def test_a_machine_that_was_off_comes_back_with_all_that_it_runs(name: str) -> None:
    lab.kill(name)
    lab.start(name)

    until(lambda: running(name) == set(UNITS[name]), 180)
    until(lambda: all(everywhere(worker) for worker in (WORKERS if name == "master" else [name])), 300)


def running(name: str) -> set[str]:
    """Which of a machine's units are active."""
    told = lab.run(name, ["sh", "-c", 'systemctl is-active "$@" || true', "-", *UNITS[name]]).split()
    return {unit for unit, state in zip(UNITS[name], told, strict=True) if state == "active"}
