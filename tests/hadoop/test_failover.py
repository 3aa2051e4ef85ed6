"""Pages of two masters: the active one is asked, also after the other one has taken over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Timer

import pytest

from hadoop.rest.namenode import NameNode
from hadoop.rest.pages import Limits, NoAnswer, NotKnown, Pages
from hadoop.rest.resourcemanager import ResourceManager
from hadoop.rest.webhdfs import Refused, WebHdfs
from tests.hadoop.hadoop_pages import Asked, Daemon, Hdfs, Said, say
from tests.ports import free_port

Two = tuple[Hdfs, Hdfs, tuple[Daemon, Daemon]]
Start = Callable[[Callable[[Asked], Said]], Daemon]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(answer: Callable[[Asked], Said]) -> Daemon:
            made = Daemon(answer)
            stack.callback(made.close)
            return made

        yield begin


@pytest.fixture
def two(start: Start) -> Two:
    """Two NameNodes, of which the second is active."""
    first, second = Hdfs(is_active=False), Hdfs({"/data/a": b"content"}, {"/", "/data"})
    return first, second, (start(first), start(second))


def test_the_namenode_that_is_active_is_asked_and_then_asked_first(
    two: Two,
) -> None:
    _, _, daemons = two
    addresses = tuple(daemon.address for daemon in daemons)

    for _ in range(3):
        assert WebHdfs(addresses, "me").exists("/data/a")

    assert [len(daemon.asked) for daemon in daemons] == [1, 3]
    assert Pages("NameNode", addresses).address == addresses[1]


def test_reading_goes_on_with_the_one_that_takes_over(two: Two) -> None:
    first, second, daemons = two
    hdfs = WebHdfs(tuple(daemon.address for daemon in daemons), "me")
    assert hdfs.list_folder("/data")[0]["pathSuffix"] == "a"

    first.is_active, second.is_active = True, False
    first.files, first.folders = {"/data/b": b""}, {"/", "/data"}

    assert hdfs.list_folder("/data")[0]["pathSuffix"] == "b"
    second.is_active, first.is_active = True, False
    assert hdfs.list_folder("/data")[0]["pathSuffix"] == "a"


def test_a_namenode_that_is_gone_is_passed_by(two: Two) -> None:
    _, _, daemons = two
    gone = f"http://127.0.0.1:{free_port()}"
    assert WebHdfs((gone, daemons[1].address), "me").exists("/data/a")


def test_when_none_is_active_all_are_named(two: Two) -> None:
    _, second, (one, other) = two
    second.is_active = False
    with pytest.raises(NoAnswer, match=rf"at {one.address} or {other.address} .*{other.address} is not active.*: `"):
        WebHdfs((one.address, other.address), "me").exists("/data/a")
    with pytest.raises(NoAnswer, match=rf"{one.address} is standby"):
        NameNode((one.address, other.address)).racks()
    with pytest.raises(Refused, match="not supported in state standby"):
        WebHdfs(one.address, "me").exists("/data/a")


def test_who_has_patience_waits_for_the_one_that_takes_over(two: Two) -> None:
    _, second, daemons = two
    second.is_active = False
    timer = Timer(0.5, lambda: setattr(second, "is_active", True))
    timer.start()
    begun = time.monotonic()
    hdfs = WebHdfs(tuple(daemon.address for daemon in daemons), "me", Limits(patience=30.0))

    assert hdfs.exists("/data/a")
    assert time.monotonic() - begun < 20
    timer.join()


def test_the_figures_are_those_of_the_active_namenode(start: Start) -> None:
    def figures(state: str, nodes: str) -> Callable[[Asked], Said]:
        beans = {"NameNodeStatus": {"State": state}, "NameNodeInfo": {"LiveNodes": nodes}}
        return lambda asked: say({"beans": [beans[asked.query["qry"].rpartition("name=")[2]]]})

    late = start(figures("standby", "{}"))
    active = start(figures("active", '{"127.0.1.11:1": {"location": "/here"}}'))

    assert NameNode((late.address, active.address)).racks() == {"127.0.1.11": "/here"}
    assert NameNode(late.address).racks() == {}


class Manager:
    """A ResourceManager that leads to `other` when it stands by, as Hadoop's does."""

    def __init__(self, is_active: bool) -> None:
        self.is_active = is_active
        self.other = ""

    def __call__(self, asked: Asked) -> Said:
        state = "ACTIVE" if self.is_active else "STANDBY"
        if asked.path == "/ws/v1/cluster/info":
            return say({"clusterInfo": {"haState": state, "hadoopVersion": f"3.5.0 {state}"}})
        if asked.path == "/jmx":
            score = "1" if self.is_active else "0"
            return say({"beans": [{"name": "NodewiseOrder-first", "First": [f"n1:8041 {score}"]}]})
        if self.is_active:
            if asked.path == "/ws/v1/cluster/apps/application_1_2":
                return Said(404, b"")
            return say({"app": {"state": "RUNNING"}, "nodes": None})
        if self.other:
            where = {"Location": f"{self.other}{asked.path}", "Refresh": "3"}
            return Said(307, b"This is standby RM. The redirect url is: there\n", where)
        return Said(200, b"There is no active RM right now.\nHA Zookeeper Connection State: CONNECTED\n")


def test_a_resourcemanager_that_stands_by_leads_to_the_active_one(start: Start) -> None:
    late, active = Manager(is_active=False), Manager(is_active=True)
    one, other = start(late), start(active)
    late.other = other.address
    manager = ResourceManager((one.address, other.address), "me")

    assert manager.is_running("application_1_1")
    assert len(one.asked) == 1
    with pytest.raises(NotKnown, match="application_1_2 is not known"):
        manager.is_running("application_1_2")
    assert len(one.asked) == 1, "the active one is asked first from then on"
    assert manager.orders()["first"].first == (("n1", 1.0),)
    info, _ = manager.read_info()
    assert (info.address, info.version) == (other.address, "3.5.0 ACTIVE")


def test_the_order_of_nodes_is_the_active_ones_also_after_a_failover(start: Start) -> None:
    first, second = Manager(is_active=True), Manager(is_active=False)
    manager = ResourceManager((start(first).address, start(second).address))
    assert manager.orders()["first"].first == (("n1", 1.0),)
    first.is_active, second.is_active = False, True
    assert manager.orders()["first"].first == (("n1", 1.0),)


def test_while_no_resourcemanager_is_active_that_is_said(start: Start) -> None:
    one, other = start(Manager(is_active=False)), start(Manager(is_active=False))
    with pytest.raises(NoAnswer, match="not active"):
        ResourceManager((one.address, other.address)).is_running("application_1_1")


def test_what_a_daemon_without_kerberos_gives_one_user_is_not_shown_for_another(start: Start) -> None:
    given = {"Set-Cookie": 'hadoop.auth="u=me&p=me&t=simple"; Path=/; HttpOnly'}
    daemon = start(lambda _: Said(200, b'{"apps": null}', given))
    for user in ("me", "somebody"):
        assert ResourceManager(daemon.address, user).applications() == []
    assert [(asked.query["user.name"], asked.cookie) for asked in daemon.asked] == [("me", ""), ("somebody", "")]


def test_a_datanode_that_refuses_what_it_is_shown_is_heard(two: Two, start: Start) -> None:
    _, second, daemons = two
    node = start(lambda _: say({"RemoteException": {"message": "token is expired"}}, 401))

    def lead(asked: Asked) -> Said:
        if asked.query.get("op") == "OPEN":
            return Said(307, b"", {"Location": f"{node.address}{asked.path}?op=OPEN"})
        return second(asked)

    daemons[1].answer = lead
    with pytest.raises(Refused, match="token is expired"):
        WebHdfs(tuple(daemon.address for daemon in daemons), "me").read("/data/a")
