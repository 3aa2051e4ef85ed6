"""What the service says to an agent, through a relay that keeps it: notices start nothing but a question."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from collectors.agent.api import NOTICE
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Producer, Slot, Wanted
from infosvc.wire.signature import WINDOW_SECONDS, sign
from tests.collectors.relay import Relay, send

Wait = Callable[[Callable[[], Any]], Any]

LOG = "/api/v1/slots/a/log"
INVENTED = json.dumps(Wanted("n1", 2**40, (Slot("evil", "scripts/load_1m.sh", 5),)).to_json()).encode()


@dataclass
class Line:
    """An agent whose every word with the service passes a relay: `down` to the agent, `up` to the service."""

    node: Any
    service: InfoClient
    down: Relay
    up: Relay

    @property
    def agent(self) -> tuple[str, int]:
        """Where the agent listens itself."""
        return self.node.values["host"], self.node.port

    @property
    def key(self) -> str:
        """The hash with which the service signs."""
        return hashlib.sha256(self.node.token.encode()).hexdigest()

    def fetches(self) -> int:
        """How often the agent asked what it is to run."""
        return sum(said.count(b"GET /api/v1/nodes/n1/slots ") for said in self.up.said)

    def reports(self) -> int:
        """How many reports the agent has sent."""
        return sum(said.count(b"POST /api/v1/nodes/n1/report ") for said in self.up.said)

    def under_way(self) -> int:
        """How many calls of the agent are not answered yet."""
        pairs = zip(self.up.said, self.up.heard, strict=False)  # a connection may come meanwhile
        return sum(said.count(b" HTTP/1.1\r\n") > heard.count(b"HTTP/1.1 ") for said, heard in pairs)

    def version(self) -> int:
        """Of the wanted state that the agent follows."""
        return int(self.node.call("GET", "/healthz")[1]["wanted_version"])


@pytest.fixture
def line(node: Any, service: InfoClient, wait_for: Wait) -> Iterator[Line]:
    """A running agent with one slot that has run, after a notice."""
    service_at = urlsplit(service.url)
    down = Relay((node.values["host"], node.port))
    up = Relay((str(service_at.hostname), service_at.port or 0))
    made = Line(node, service, down, up)
    service.put_node("n1", down.address)
    wait_for(lambda: down.lost)  # the notice of that, which would come amid the test
    node.configure(service_url=f"http://{up.address}")
    assert node.launch().returncode == 0
    wait_for(lambda: made.version() == service.slots("n1").version)
    service.put_producer(Producer("a", node.script("a.sh", "echo 1"), 600))
    service.put_slot("n1", "a", running=True)
    wait_for(lambda: service.data("a", node="n1"))
    wait_for(lambda: down.requests(NOTICE) and down.is_answered(NOTICE))
    wait_for(lambda: made.version() == service.slots("n1").version)
    yield made
    node.kill()
    down.close()
    up.close()


def test_a_notice_lets_the_agent_ask_and_says_nothing_itself(line: Line, wait_for: Wait) -> None:
    before, reports = line.fetches(), line.reports() - line.under_way()
    line.service.put_slot("n1", "a", running=False)
    wait_for(lambda: line.version() == line.service.slots("n1").version)
    line.service.slot_log("n1", "a")

    # The answer to a report that crosses the notice tells of something new, too.
    assert 1 <= line.fetches() - before <= 1 + line.reports() - reports
    for said in (*line.down.said, *line.down.heard, *line.up.said, *line.up.heard):
        assert line.key.encode() not in said
    assert all(said.endswith(b"\r\n\r\n") for said in line.down.requests("/api"))  # heads alone
    assert b"a.sh" not in b"".join(line.down.said)


def attacks(line: Line) -> dict[str, bytes]:
    """What somebody may send who has seen all that passed the relay, or even the service's database."""
    [notice, *_], [log, *_] = line.down.requests(NOTICE), line.down.requests(LOG)
    old, early = time.time() - WINDOW_SECONDS - 1, time.time() + WINDOW_SECONDS + 25
    return {
        "replayed notice": notice,
        "replayed log": log,
        "log of another slot": log.replace(LOG.encode(), b"/api/v1/slots/b/log"),
        "log as notice": log.replace(f"GET {LOG}".encode(), f"POST {NOTICE}".encode()),
        "notice as log": notice.replace(f"POST {NOTICE}".encode(), f"GET {LOG}".encode()),
        "body added": request(NOTICE, sign(line.key, "POST", NOTICE), b"{}"),
        "old": request(NOTICE, sign(line.key, "POST", NOTICE, now=old)),
        "early": request(NOTICE, sign(line.key, "POST", NOTICE, now=early)),
        "other key": request(NOTICE, sign(line.node.token, "POST", NOTICE)),
        "the hash as a bearer": request(NOTICE, f"Bearer {line.key}"),
        "invented state": request("/api/v1/wanted", f"Bearer {line.key}", INVENTED),
        "invented stop": request("/api/v1/stop", f"Bearer {line.key}", b'{"node_name": "n1"}'),
        "log by the hash": request(LOG, f"Bearer {line.key}", method="GET"),
    }


def test_replayed_altered_old_and_invented_requests_change_nothing(line: Line, wait_for: Wait) -> None:
    line.service.slot_log("n1", "a")
    before, version, pid = line.fetches(), line.version(), line.node.pid
    answers = {name: send(line.agent, said) for name, said in attacks(line).items()}

    assert answers == dict.fromkeys(answers, 401)
    assert send(line.agent, request(NOTICE, sign(line.key, "POST", NOTICE))) == 200
    wait_for(lambda: line.fetches() > before)
    assert (line.fetches(), line.version(), line.node.pid) == (before + 1, version, pid)


def test_what_was_signed_before_the_agent_began_is_too_old_for_it(line: Line, wait_for: Wait) -> None:
    early = request(NOTICE, sign(line.key, "POST", NOTICE))
    line.node.launch()

    assert send(line.agent, early) == 401


def test_a_notice_that_is_lost_or_not_believed_comes_late_with_a_report(line: Line, wait_for: Wait) -> None:
    line.down.close()
    line.service.put_slot("n1", "a", running=False)

    wait_for(lambda: line.version() == line.service.slots("n1").version)


def test_the_agent_of_a_removed_node_asks_and_ends(line: Line, wait_for: Wait) -> None:
    def notices() -> int:
        return len(line.down.requests(NOTICE)) + sum(NOTICE.encode() in said for said in line.down.lost)

    told = notices()
    line.service.delete_node("n1")

    wait_for(lambda: not (line.node.base / "agent.pid").exists())
    wait_for(lambda: notices() > told)  # an agent that reports just then ends before it comes
    assert notices() == told + 1
    with pytest.raises(InfoError, match="revoked"):
        InfoClient(line.service.url, line.node.token).slots("n1")


def request(path: str, authorization: str, body: bytes = b"", method: str = "POST") -> bytes:
    """The bytes of a request to an agent."""
    head = f"{method} {path} HTTP/1.1\r\nAuthorization: {authorization}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
