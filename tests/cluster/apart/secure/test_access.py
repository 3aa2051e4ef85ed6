"""Who comes in by ticket, keytab and token, and who does not: over Hadoop's pages, its client, and commands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from hadoop.local import ports
from hadoop.rest.addresses import namenode_addresses, resourcemanager_addresses
from hadoop.rest.resourcemanager import parse_attempts
from tests.cluster.apart.secure.place import LOADED, NO_TICKET, PICTURES, TOKEN_SECONDS, Place, see_at_work
from tests.cluster.apart.secure.scripts import LIST, RENEW, SAY, WRITE
from tests.cluster.hadoop_scripts import Scripts, scripts_of
from tests.cluster.site import succeed, until

pytestmark = pytest.mark.usefixtures("long_job")  # which runs beside these tests, and is looked at later
TWICE = ("namenode", "resourcemanager", "zkfc", "datanode", "nodemanager", "sshd")
KINIT = r"run `kinit`, or name a keytab with KRB5_CLIENT_KTNAME"


@pytest.fixture(scope="module")
def by_keytab(place: Place) -> Iterator[Scripts]:
    """Scripts that run beside Hadoop's client, and log in by a keytab themselves."""
    with scripts_of(place.cluster, variables=place.script_variables()) as made:
        yield made


def _as_alice(place: Place) -> dict[str, str]:
    return {"user": "alice", "keytab": str(place.cluster.realm.keytab("alice"))}


def test_all_daemons_work_and_of_each_master_one_is_active(place: Place) -> None:
    told = see_at_work(place.cluster)

    assert Counter(one.kind for one in told) == {"kdc": 1, "zookeeper": 1, "journalnode": 1} | dict.fromkeys(TWICE, 2)
    for kind in ("namenode", "resourcemanager"):
        assert sorted(str(one.role) for one in told if one.kind == kind) == ["active", "standby"]


def test_keytabs_and_passwords_are_their_owners_alone(place: Place) -> None:
    state = place.cluster.state
    secret = [
        *(state / "kerberos").rglob("*.keytab"),
        state / "conf" / "ssl-server.xml",
        *(file for of in ("masters", "nodes") for file in state.glob(f"{of}/*/conf/ssl-server.xml")),
        *(state / "tls" / name for name in ("key.p12", "password")),
        state / "kerberos" / "keytabs" / "http-secret",
    ]

    assert len(secret) == 6 + 3 + 5 + 2 + 1
    assert [file for file in secret if file.stat().st_mode & 0o077] == []


def test_no_page_is_shown_to_who_shows_no_ticket(place: Place) -> None:
    cluster = place.cluster
    places = [
        *(f"{address}/jmx" for address in namenode_addresses(cluster.conf_dir)),
        *(f"{address}/ws/v1/cluster/info" for address in resourcemanager_addresses(cluster.conf_dir)),
        *(f"https://{node}:{ports.DATANODE_HTTPS + number}/jmx" for number, node in enumerate(cluster.nodes, 1)),
        *(f"http://{node}:{ports.NODEMANAGER_HTTP}/ws/v1/node" for node in cluster.nodes),
        f"https://{cluster.master}:{ports.JOURNALNODE_HTTPS}/jmx",
    ]

    for url in places:
        assert (url, place.page(url)[0]) == (url, 401)
        assert (url, place.page(url, "alice")[0]) == (url, 200)


def test_a_user_with_a_keytab_has_her_own_folder_and_no_other(place: Place, by_keytab: Scripts) -> None:
    own = by_keytab.find(WRITE, place="/user/alice/own/one", **_as_alice(place))
    other = by_keytab.find(LIST, place="/user/bob", **_as_alice(place))

    assert own == [["hdfs://nodewise/user/alice/own/one", "alice"]]
    assert "Permission denied: user=alice" in other


def test_a_token_is_good_for_as_long_as_was_asked_for(place: Place, by_keytab: Scripts) -> None:
    assert 0 < by_keytab.find(RENEW, **_as_alice(place)) <= TOKEN_SECONDS


def test_who_runs_the_cluster_may_ask_for_others_and_sees_what_they_see(place: Place) -> None:
    url = f"{place.namenode()}/webhdfs/v1{LOADED}?op=LISTSTATUS&doas="

    assert [place.page(f"{url}{user}", place.cluster.user)[0] for user in ("alice", "bob")] == [200, 403]
    status, text = place.page(f"{url}alice", "bob")
    assert status == 403
    assert "bob is not allowed to impersonate alice" in text or "User: bob" in text, text


def test_doctor_asks_the_active_masters_and_is_content(place: Place) -> None:
    found = place.well()

    assert f"https://{place.active('namenode')}:" in found["hdfs"]["what"]
    assert f"http://{place.active('resourcemanager')}:" in found["yarn"]["what"]


def test_without_a_ticket_every_command_says_kinit(place: Place) -> None:
    asked = [
        ("images", "load", "pictures", "/user/alice/other"),
        ("images", "pack", "pictures", "/user/alice/other"),
        ("job", "logs", "application_1_0001"),
    ]
    commands = {words: place.start(*words, **NO_TICKET) for words in asked}
    found = place.doctor(**NO_TICKET)
    for name in ("hdfs", "yarn"):
        assert (found[name]["state"], "kinit" in found[name]["remedy"]) == ("fail", True), found[name]
    for words, command in commands.items():
        done = command.end()
        assert done.returncode == 1
        assert KINIT in done.stderr, (words, done.stderr)
        assert "not known" not in done.stderr


def test_a_folder_of_somebody_else_is_refused_by_hdfs_itself(place: Place) -> None:
    done = place.nodewise("images", "load", "pictures", "hdfs://nodewise/user/bob/pictures")
    assert done.returncode == 1
    assert "Permission denied: user=alice" in done.stderr


def test_a_name_service_that_is_not_this_one_is_named(place: Place) -> None:
    done = place.nodewise("images", "load", "pictures", "hdfs://elsewhere/user/alice/pictures")
    assert "names the HDFS at elsewhere, and images can go to the one at nodewise only" in done.stderr


def test_pictures_are_packed_with_a_ticket(place: Place) -> None:
    done = place.nodewise("images", "pack", "pictures", "hdfs://nodewise/user/alice/packed", "--json")
    assert json.loads(succeed(done))["packed"] == PICTURES


def test_a_log_is_shown_to_whom_it_belongs(place: Place, alice: Scripts) -> None:
    application = alice.find(SAY)
    manager = f"http://{place.active('resourcemanager')}:{ports.RESOURCEMANAGER_HTTP}"
    status, text = place.page(f"{manager}/ws/v1/cluster/apps/{application}/appattempts", "alice")
    assert status == 200, text
    ((container, address),) = parse_attempts(json.loads(text))
    url = f"http://{address}/ws/v1/node/containerlogs/{container}/stdout"

    status, text = place.page(url, "alice")
    assert (status, "spoken" in text) == (200, True), text
    status, text = place.page(url, "bob")
    assert status >= 400
    assert "spoken" not in text


def test_the_dashboard_reads_by_the_keytab_of_its_service(service: Place) -> None:
    assert service.files_shown(LOADED) == PICTURES
    assert until(lambda: "jobs" in service.ask("/jobs"))
