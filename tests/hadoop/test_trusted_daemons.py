"""Whom a ticket of Kerberos is shown: the daemons that the site files and YARN name, and no program of a user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from hadoop.rest import connections, spnego
from hadoop.rest.container_logs import read_since
from hadoop.rest.pages import Pages
from hadoop.rest.resourcemanager import ResourceManager
from jobs.application import following
from jobs.application.logs import JobLogs
from jobs.application.status import ContainerStatus
from tests.hadoop.hadoop_pages import Asked, Daemon, Said, say

JOB, FIRST, SECOND = "application_1_0001", "container_1_0001_01_000001", "container_1_0001_01_000002"
LOG = b"LogType:stdout\nLogLength:2\nLogContents:\no\n"


class Asking(Daemon):
    """A daemon that asks for a ticket, and notes how often it got one."""

    def __init__(self, content: bytes = b"{}") -> None:
        self.shown = 0
        super().__init__(lambda _: Said(200, content))

    def let_in(self, cookie: str, shown: str) -> tuple[str, dict[str, str]] | None:
        self.shown += shown == "Negotiate a-ticket"
        return ("me", {}) if shown else None


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    monkeypatch.setattr(spnego, "make_token", lambda host, seconds: "a-ticket")
    with ExitStack() as made:
        yield made


def start(stack: ExitStack, daemon: Daemon) -> Daemon:
    stack.callback(daemon.close)
    return daemon


def asking(stack: ExitStack, content: bytes = b"{}") -> Asking:
    made = Asking(content)
    stack.callback(made.close)
    return made


def leading(stack: ExitStack, address: str) -> Daemon:
    return start(stack, Daemon(lambda asked: Said(307, b"", {"Location": f"{address}{asked.path}"})))


def test_a_ticket_is_not_shown_where_a_page_leads_to(stack: ExitStack) -> None:
    other = asking(stack)
    with pytest.raises(HadoopError, match="does not show application application_1_0001"):
        ResourceManager(leading(stack, other.address).address).read_proxied(JOB, "/status", connections.Limits())
    assert other.shown == 0


def test_one_that_stands_by_may_call_the_active_one_by_another_name(stack: ExitStack) -> None:
    active = asking(stack)
    standby = leading(stack, active.address.replace("127.0.0.1", "localhost"))
    assert Pages("ResourceManager", (standby.address, active.address)).read_json("/ws", "it") == {}
    assert active.shown == 1


def test_a_nodemanager_may_lead_to_where_logs_are_kept(stack: ExitStack) -> None:
    history = asking(stack, LOG)
    piece = read_since(FIRST, leading(stack, history.address).address, "stdout", "me", 0)
    assert (piece and piece.content, history.shown) == (b"o\n", 1)


def test_an_application_master_gets_no_ticket(stack: ExitStack) -> None:
    master = asking(stack)
    host, _, port = master.address.removeprefix("http://").rpartition(":")
    running = Application(JOB, "job", "RUNNING", "UNDEFINED", 0.0, "", host, 0.0, frozenset(), int(port))
    assert following.ask(running) is None
    assert master.shown == 0


@pytest.mark.parametrize(("is_node", "shown"), [(True, 2), (False, 0)])
def test_where_a_job_says_that_its_logs_are_must_be_a_node_of_yarn(stack: ExitStack, is_node: bool, shown: int) -> None:
    told = asking(stack, LOG)
    address = told.address.removeprefix("http://")

    def answer(asked: Asked) -> Said:
        if asked.path.endswith("/nodes"):
            return say({"nodes": {"node": [{"nodeHTTPAddress": address if is_node else "127.0.0.1:1"}]}})
        return say({"app": {"state": "RUNNING"}})

    manager = start(stack, Daemon(answer))
    logs = JobLogs(manager.address, JOB, "me", lambda _: [ContainerStatus("worker", 0, "n", SECOND, address)])
    logs.find_listed(alive=True)
    lines = [line.stream for line in logs.read(0.0)]
    assert (told.shown, lines) == (shown, ["stdout", "stderr"] if is_node else ["note"])
