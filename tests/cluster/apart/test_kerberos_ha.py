"""A cluster with Kerberos and two of each master, started as docs/operate.md says: who comes in, and who takes over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.stage import START_SECONDS
from hadoop.local import daemons, health, lifecycle, ports, processes, variables
from hadoop.local.daemons import Daemon
from hadoop.local.lifecycle import Cluster
from hadoop.rest.addresses import namenode_addresses, resourcemanager_addresses
from hadoop.rest.resourcemanager import parse_attempts
from tests.cluster.hadoop_scripts import Scripts, scripts_of
from tests.recipes.pages import block
from tests.recipes.shell import Shell, changed

Eventually = Callable[..., None]
TWICE = ("namenode", "resourcemanager", "zkfc", "datanode", "nodemanager", "sshd")
TOKEN_SECONDS = 60
LOG_IN = """
import sys
from pathlib import Path
from hadoop.client.jvm import HadoopHome, configuration, java, start

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
conf = configuration()
group = java("org.apache.hadoop.security.UserGroupInformation")
group.setConfiguration(conf)
group.loginUserFromKeytab(user, keytab)
files = java("org.apache.hadoop.fs.FileSystem").get(conf)
path = java("org.apache.hadoop.fs.Path")
"""
WRITE = f"""{LOG_IN}
made = files.create(path(place))
made.write(b"hers")
made.close()
found = [[str(one.getPath()), str(one.getOwner())] for one in files.listStatus(path(place).getParent())]
"""
LIST = f"""{LOG_IN}
try:
    found = len(files.listStatus(path(place)))
except Exception as error:
    found = str(error)
"""
RENEW = f"""{LOG_IN}
token = files.getDelegationToken(user)
now = java("java.lang.System").currentTimeMillis()
found = (token.renew(conf) - now) / 1000
"""
# An application whose master says one word and ends: there is a log to be read.
SAY = f"""{LOG_IN}
import time

client = java("org.apache.hadoop.yarn.client.api.YarnClient").createYarnClient()
client.init(conf)
client.start()
context = client.createApplication().getApplicationSubmissionContext()
records = "org.apache.hadoop.yarn.api.records"
command = java("java.util.Collections").singletonList("echo spoken > <LOG_DIR>/stdout")
launch = java(f"{{records}}.ContainerLaunchContext").newInstance(None, None, command, None, None, None)
context.setAMContainerSpec(launch)
context.setResource(java(f"{{records}}.Resource").newInstance(256, 1))
context.setMaxAppAttempts(1)
client.submitApplication(context)
application = context.getApplicationId()
while "%s" % client.getApplicationReport(application).getYarnApplicationState() not in ("FAILED", "FINISHED", "KILLED"):
    time.sleep(0.2)
found = str(application)
client.close()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes; what the page starts is up, with a ticket of alice's."""
    home = tmp_path_factory.mktemp("secure")
    shell = Shell(home, home / "work")
    up = f"--wait {START_SECONDS:.0f} --token-life {TOKEN_SECONDS} --kerberos --ha --nodes 2"
    # The subnet is the first that is free, which need not be the page's.
    master = "$(nodewise cluster status --names | head -n 1 | sed 's/[.][0-9]*$/.1/')"
    recipe = changed(block("secure-cluster"), ("--kerberos --ha --nodes 2", up), ("127.0.2.1", master))
    try:
        begun = time.monotonic()
        said = shell.run(recipe, timeout=2 * START_SECONDS)
        print(f"the page's commands took {time.monotonic() - begun:.1f} s")
        assert "Default principal: alice@NODEWISE.TEST" in said
        assert '"SecurityEnabled" : true' in said
        yield lifecycle.load(home / ".nodewise")
    finally:
        lifecycle.down(home / ".nodewise")


@pytest.fixture(scope="module")
def alice(cluster: Cluster) -> Iterator[Scripts]:
    told = variables.of(cluster, "alice")
    with scripts_of(cluster, variables={name: value for name, value in told.items() if name != "PATH"}) as made:
        yield made


def _as_alice(cluster: Cluster) -> dict[str, str]:
    return {"user": "alice", "keytab": str(cluster.realm.keytab("alice"))}


def _whole(cluster: Cluster) -> None:
    lifecycle.up(cluster.home, ready_seconds=START_SECONDS)


def _active(cluster: Cluster, kind: str) -> str:
    return next(master for master in cluster.masters if health.roles(cluster)[kind, master] == "active")


def _daemon(cluster: Cluster, kind: str, master: str) -> Daemon:
    return Daemon(cluster, kind, None if master == cluster.master else master)


def _process(cluster: Cluster, kind: str, master: str) -> psutil.Process:
    return daemons.find_running(cluster)[_daemon(cluster, kind, master)]


def _page(cluster: Cluster, url: str, user: str | None = None) -> tuple[int, str]:
    """The status and text of a page, read with a ticket of a user or without one."""
    told = {} if user is None else variables.of(cluster, user)
    words = [
        "curl",
        "--silent",
        "--cacert",
        str(cluster.realm.certificates.certificate),
        "--write-out",
        "\n%{http_code}",
    ]
    more = ["--negotiate", "--user", ":"] if user else []
    environment = os.environ | {name: value for name, value in told.items() if name != "PATH"}
    answer = subprocess.run([*words, *more, url], env=environment, capture_output=True, text=True, timeout=60).stdout
    text, _, status = answer.rpartition("\n")
    return int(status), text


def test_all_daemons_work_and_of_each_master_one_is_active(cluster: Cluster) -> None:
    told = lifecycle.status(cluster)

    assert Counter(one.kind for one in told) == {"kdc": 1, "zookeeper": 1, "journalnode": 1} | dict.fromkeys(TWICE, 2)
    assert [one for one in told if not one.ready] == []
    for kind in ("namenode", "resourcemanager"):
        assert sorted(str(one.role) for one in told if one.kind == kind) == ["active", "standby"]


def test_keytabs_and_passwords_are_their_owners_alone(cluster: Cluster) -> None:
    secret = [
        *(cluster.state / "kerberos").rglob("*.keytab"),
        *cluster.state.rglob("ssl-server.xml"),
        *(cluster.state / "tls" / name for name in ("key.p12", "password")),
        cluster.state / "kerberos" / "keytabs" / "http-secret",
    ]

    assert len(secret) == 6 + 3 + 5 + 2 + 1
    assert [file for file in secret if file.stat().st_mode & 0o077] == []


def test_no_page_is_shown_to_who_shows_no_ticket(cluster: Cluster) -> None:
    places = [
        *(f"{address}/jmx" for address in namenode_addresses(cluster.conf_dir)),
        *(f"{address}/ws/v1/cluster/info" for address in resourcemanager_addresses(cluster.conf_dir)),
        *(f"https://{node}:{ports.DATANODE_HTTPS + number}/jmx" for number, node in enumerate(cluster.nodes, 1)),
        *(f"http://{node}:{ports.NODEMANAGER_HTTP}/ws/v1/node" for node in cluster.nodes),
        f"https://{cluster.master}:{ports.JOURNALNODE_HTTPS}/jmx",
    ]

    for url in places:
        assert (url, _page(cluster, url)[0]) == (url, 401)
        assert (url, _page(cluster, url, "alice")[0]) == (url, 200)


def test_a_user_with_a_keytab_has_her_own_folder_and_no_other(cluster: Cluster, alice: Scripts) -> None:
    own = alice.find(WRITE, place="/user/alice/one", **_as_alice(cluster))
    other = alice.find(LIST, place="/user/bob", **_as_alice(cluster))

    assert own == [["hdfs://nodewise/user/alice/one", "alice"]]
    assert "Permission denied: user=alice" in other


def test_a_token_is_good_for_as_long_as_was_asked_for(cluster: Cluster, alice: Scripts) -> None:
    assert 0 < alice.find(RENEW, **_as_alice(cluster)) < TOKEN_SECONDS + 5


def test_who_runs_the_cluster_may_ask_for_others_and_sees_what_they_see(cluster: Cluster) -> None:
    url = f"{health.active_namenode(cluster)}/webhdfs/v1/user/alice?op=LISTSTATUS&doas="

    assert [_page(cluster, f"{url}{user}", cluster.user)[0] for user in ("alice", "bob")] == [200, 403]
    status, text = _page(cluster, f"{url}alice", "bob")
    assert status == 403
    assert "bob is not allowed to impersonate alice" in text or "User: bob" in text, text


def test_a_log_is_shown_to_whom_it_belongs(cluster: Cluster, alice: Scripts) -> None:
    application = alice.find(SAY, **_as_alice(cluster))
    manager = f"http://{_active(cluster, 'resourcemanager')}:{ports.RESOURCEMANAGER_HTTP}"
    status, text = _page(cluster, f"{manager}/ws/v1/cluster/apps/{application}/appattempts", "alice")
    assert status == 200, text
    ((container, address),) = parse_attempts(json.loads(text))
    url = f"http://{address}/ws/v1/node/containerlogs/{container}/stdout"

    status, text = _page(cluster, url, "alice")
    assert (status, "spoken" in text) == (200, True), text
    status, text = _page(cluster, url, "bob")
    assert status >= 400
    assert "spoken" not in text


@pytest.mark.parametrize("kind", ["namenode", "resourcemanager"])
def test_who_stands_by_takes_over_from_a_master_that_is_killed(
    cluster: Cluster, alice: Scripts, eventually: Eventually, kind: str
) -> None:
    _whole(cluster)
    before = _active(cluster, kind)
    other = next(master for master in cluster.masters if master != before)

    _process(cluster, kind, before).kill()
    begun = time.monotonic()

    eventually(lambda: health.roles(cluster)[kind, other] == "active")
    print(f"the other {kind} was active after {time.monotonic() - begun:.1f} s")
    if kind == "namenode":
        assert isinstance(alice.find(LIST, place="/user/alice", **_as_alice(cluster)), int)
    else:
        assert alice.find(SAY, **_as_alice(cluster))
    _whole(cluster)
    assert health.roles(cluster)[kind, before] == "standby"


def test_a_namenode_that_stands_still_is_replaced_and_ended(cluster: Cluster, eventually: Eventually) -> None:
    _whole(cluster)
    before = _active(cluster, "namenode")
    frozen = _process(cluster, "namenode", before)
    frozen.send_signal(signal.SIGSTOP)
    begun = time.monotonic()

    eventually(lambda: not processes.is_alive(frozen))

    eventually(lambda: _active(cluster, "namenode") != before)
    print(f"the other NameNode was active after {time.monotonic() - begun:.1f} s")
    _whole(cluster)


def test_nothing_is_left_when_the_cluster_is_stopped_and_it_starts_again_with_its_data(
    cluster: Cluster, tmp_path: Path
) -> None:
    lifecycle.down(cluster.home)

    assert processes.of_cluster(cluster.home, cluster.subnet) == []
    begun = time.monotonic()
    again = lifecycle.up(cluster.home, ready_seconds=START_SECONDS)
    print(f"ready again after {time.monotonic() - begun:.1f} s with {_resident_gb(again):.2f} GB")
    assert again == cluster
    active = health.active_namenode(cluster)
    status, text = _page(cluster, f"{active}/webhdfs/v1/user/alice?op=LISTSTATUS", "alice")
    assert (status, '"pathSuffix":"one"' in text) == (200, True), text


def test_a_node_is_added_while_the_others_go_on(cluster: Cluster) -> None:
    _whole(cluster)
    before = set(daemons.find_running(cluster).values())

    larger = lifecycle.up(cluster.home, nodes=3, ready_seconds=START_SECONDS)

    assert [one for one in lifecycle.status(larger) if not one.ready] == []
    assert before < set(daemons.find_running(larger).values())


def _resident_gb(cluster: Cluster) -> float:
    found: dict[Daemon, Any] = dict(daemons.find_running(cluster))
    return float(sum(process.memory_info().rss for process in found.values())) / 1e9
