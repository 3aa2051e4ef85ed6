"""The only caller of the service's URLs. Standard library only, so it travels to nodes and containers.

>>> client = InfoClient("http://127.0.0.1:8400")                                   # doctest: +SKIP
>>> {datum.node_name: datum.number() for datum in client.data("cpu_free_ratio")}   # doctest: +SKIP
{'worker1': 0.93, 'worker2': 0.12}
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from infosvc.wire.answers import (
    AuditEntry,
    AuditPruned,
    ClusterHour,
    Explained,
    History,
    Hour,
    NodeHour,
    PastRun,
    Token,
    TokenByTicket,
)
from infosvc.wire.connection import Call
from infosvc.wire.errors import Unauthorized
from infosvc.wire.event_stream import EventStream
from infosvc.wire.records import Datum, Node, Producer, Receipt, Report, Role, Wanted
from infosvc.wire.service_calls import next_path, query_of, segment
from infosvc.wire.task_client import TaskClient

T = TypeVar("T")

DEFAULT_PORT = 8400
"""Where `nodewise serve` listens unless told otherwise."""
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"
DEFAULT_TIMEOUT = 10.0
"""Seconds of patience for each answer."""
MOST_KEPT = 256  # answers to data() that may be kept
NAMES_PER_CALL = 50  # so that no URL grows too long


class InfoClient(TaskClient):
    """One service, spoken to with `timeout` seconds of patience a call. Any thread may use it.

    Connections are kept for the next call and close with the client. Calls that may be repeated are, up to `retries`
    times, while the service is away. Every method raises an InfoError: Unreachable when there is no answer, else the
    error the service named. `url` may name several services of one database, with commas between: calls go to the one
    that is active. Without a token it can only read; https trusts the authorities in `ca_file`, or the
    machine's.

    The values of a name, with age, state and reason beside each:

    >>> client = InfoClient("https://master:8400", token, ca_file="/etc/nodewise/ca.pem")       # doctest: +SKIP
    >>> [datum.number() for datum in client.data("load_1m") if datum.state is State.FRESH]     # doctest: +SKIP
    [0.31, 2.4]

    A program that writes values of its own:

    >>> client.put_producer(Producer("rack", "", 3600, kind=Kind.PROGRAM))                     # doctest: +SKIP
    >>> client.put_value("rack", "worker1", "r7")                                              # doctest: +SKIP

    What happens, as it happens:

    >>> with client.events(types=["node"]) as events:                                          # doctest: +SKIP
    ...     for event in events:
    ...         print(event.data["node_name"], event.data["state"])
    worker2 lost
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        ca_file: str | Path | None = None,
        retries: int = 2,
    ) -> None:
        super().__init__(url, token, timeout, ca_file, retries)
        self._kept: dict[str, _Kept] = {}

    @classmethod
    def from_token_file(
        cls,
        url: str,
        token_file: str | Path | None,
        timeout: float = DEFAULT_TIMEOUT,
        ca_file: str | Path | None = None,
    ) -> InfoClient:
        """A client whose token is the content of a file; a missing file means reading only.

        Unauthorized when the file is there and cannot be read.
        """
        try:
            token = Path(token_file).read_text().strip() if token_file else None
        except FileNotFoundError:
            token = None
        except (OSError, UnicodeDecodeError) as error:
            raise Unauthorized(
                f"the token file {token_file} cannot be read ({error})", remedy="chown or chmod it"
            ) from error
        return cls(url, token, timeout, ca_file)

    def agents_scheme(self) -> str:
        """How the service calls agents: https when it was given their authority, else http."""
        call = Call("GET", f"{self._connections.base}/readyz", headers=self._headers())
        return self._read(
            self._json(self._connections.ask(call, self._retries)), lambda reply: str(reply.get("agents", "http"))
        )

    def producers(self) -> list[Producer]:
        """All registered producers, by name."""
        return self._list("/producers", lambda reply: [Producer.from_json(row) for row in reply["producers"]])

    def producer(self, data_name: str) -> Producer:
        """One registered producer; NotFound when the name is unknown."""
        return self._ask(f"/producers/{segment(data_name)}", Producer.from_json)

    def put_producer(self, producer: Producer, if_match: int | None = None, new: bool = False) -> Producer:
        """Register or update; `if_match` allows an update of this stored version only, `new` no update at all."""
        body = {key: value for key, value in producer.to_json().items() if key not in ("data_name", "version")}
        headers = _guard(if_match) | ({"If-None-Match": "*"} if new else {})
        reply = self._call("PUT", f"/producers/{segment(producer.data_name)}", body, headers, repeatable=not headers)
        return self._read(reply, Producer.from_json)

    def delete_producer(self, data_name: str, if_match: int | None = None) -> None:
        """Forget a producer and what it emits, its slots and its values; `if_match` as in put_producer."""
        self._delete(f"/producers/{segment(data_name)}", _guard(if_match))

    def nodes(self) -> list[Node]:
        """All enrolled nodes, by name."""
        return self._list("/nodes", lambda reply: [Node.from_json(row) for row in reply["nodes"]])

    def put_node(self, node_name: str, address: str, agent_version: str = "") -> Node:
        """Enrol a node whose agent listens at `address` (host:port)."""
        body = {"address": address, "agent_version": agent_version}
        return self._read(self._call("PUT", f"/nodes/{segment(node_name)}", body), Node.from_json)

    def delete_node(self, node_name: str) -> None:
        """Forget a node, its slots and its values, and revoke its agent's token."""
        self._delete(f"/nodes/{segment(node_name)}")

    def slots(self, node_name: str) -> Wanted:
        """The wanted state of one node with the last outcome of each slot."""
        first, *others = self._list(f"/nodes/{segment(node_name)}/slots", lambda reply: [Wanted.from_json(reply)])
        return replace(first, slots=(*first.slots, *(slot for other in others for slot in other.slots)))

    def put_slot(
        self, node_name: str, data_name: str, running: bool, interval: float | None = None, lift: bool = False
    ) -> None:
        """Start or stop a producer on a node; `interval` seconds replaces the producer's time_max there.

        `lift` ends the quarantine of a slot that has failed too often.
        """
        body = {"running": running, "interval": interval} | ({"lift": True} if lift else {})
        self._call("PUT", _slot(node_name, data_name), body, repeatable=not lift)

    def delete_slot(self, node_name: str, data_name: str) -> None:
        """Remove a slot from a node."""
        self._delete(_slot(node_name, data_name))

    def slot_log(self, node_name: str, data_name: str) -> list[PastRun]:
        """The last runs of a slot, newest first; NotReady when the node's agent, which keeps them, does not answer."""
        path = f"{_slot(node_name, data_name)}/log"
        return self._ask(path, lambda reply: [PastRun.from_json(row) for row in reply["runs"]])

    def report(self, node_name: str, report: Report) -> Receipt:
        """Send one batch of runs; the receipt tells which wanted state is current. Never repeated: the spool does."""
        reply = self._call("POST", f"/nodes/{segment(node_name)}/report", report.to_json(), retries=0)
        return self._read(reply, Receipt.from_json)

    def data(self, data_name: str, node: str | None = None, max_age: float | None = None) -> list[Datum]:
        """The latest value on every node, or on one; NotFound when nothing produces this name.

        An answer is kept until the service has another: asking again costs little while nothing changes.
        """
        path = f"/data/{segment(data_name)}" + query_of(node=node, max_age=max_age)
        kept = self._kept.get(path)
        answer = self._send("GET", path, headers={"If-None-Match": kept.etag} if kept else {})
        if answer.status == 304 and kept:
            return kept.grown()
        data = self._read(self._json(answer), _data)
        following = next_path(path, answer)
        if following:
            return data + self._list(following, _data)
        etag = answer.headers.get("ETag")
        if etag:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[path] = _Kept(etag, tuple(data), time.monotonic())
        return data

    def data_many(
        self, names: Iterable[str], node: str | None = None, max_age: float | None = None
    ) -> dict[str, list[Datum]]:
        """As `data` for several names, in few calls; NotFound when one of them is unknown."""
        by_name: dict[str, list[Datum]] = {}
        for some in _parts(list(names)):
            query = query_of(name=some, node=node, max_age=max_age)
            pairs = self._list(f"/data{query}", lambda reply: [(one["data_name"], _data(one)) for one in reply["data"]])
            for name, rows in pairs:
                by_name.setdefault(name, []).extend(rows)
        return by_name

    def put_value(self, data_name: str, node_name: str, data_value: str | float) -> None:
        """Write one value of a registered data name."""
        self._call("PUT", _cell(data_name, node_name), {"data_value": str(data_value)})

    def delete_value(self, data_name: str, node_name: str) -> None:
        """Forget one value."""
        self._delete(_cell(data_name, node_name))

    def history(
        self, data_name: str, node_name: str, since: float | None = None, until: float | None = None
    ) -> History:
        """What a name was on a node between two moments (Unix seconds): statistics, and every kept value."""
        return self._ask(
            f"{_cell(data_name, node_name)}/history" + query_of(since=since, until=until), History.from_json
        )

    def hour(self, data_name: str, node_name: str) -> Hour:
        """The last hour of a number on a node, in steps; NotFound when the name has no value there."""
        return self._ask(f"{_cell(data_name, node_name)}/hour", Hour.from_json)

    def cluster_hour(self, data_name: str, of: str | None = None) -> ClusterHour:
        """The last hour of a number summed over all nodes, in steps; with `of`, as shares of the sum of that name.

        Of ratios it is their mean, weighted by `of`.
        """
        return self._ask(f"{_cell(data_name, '*')}/hour" + query_of(of=of), ClusterHour.from_json)

    def node_hour(self, node_name: str) -> NodeHour:
        """The last hour of every number of a node, in few calls."""
        first, *others = self._list(f"/nodes/{segment(node_name)}/hour", lambda reply: [NodeHour.from_json(reply)])
        return replace(first, curves=(*first.curves, *(curve for other in others for curve in other.curves)))

    def explain(self, program: str | None = None) -> Explained:
        """How YARN's plug-in judges nodes now: every policy of its settings file, or the order of a program.

        NotFound when the service does not know that file, or the file says nothing of the program.
        """
        return self._ask("/explain" + query_of(program=program), Explained.from_json)

    def events(self, types: Sequence[str] = (), names: Sequence[str] = (), nodes: Sequence[str] = ()) -> EventStream:
        """Events from now on, of all types, data names and nodes or only of some; the stream is open on return."""
        path = f"{self._base}/events" + query_of(type=list(types), name=list(names), node=list(nodes))
        return EventStream(self._connections, path, self._token)

    def tokens(self) -> list[Token]:
        """All tokens that were made, without their secret text."""
        return self._ask("/tokens", lambda reply: [Token.from_json(row) for row in reply["tokens"]])

    def create_token(
        self,
        name: str,
        role: Role,
        node_name: str | None = None,
        expires_in: float | None = None,
        replace: bool = False,
    ) -> tuple[Token, str]:
        """Make a token, valid for `expires_in` seconds or for good; the text is shown this once only.

        A token of role agent is for `node_name`; `replace` revokes the older ones of this node.
        """
        body = {"name": name, "role": role.value, "node_name": node_name, "expires_in": expires_in, "replace": replace}
        reply = self._call("POST", "/tokens", body, repeatable=False)
        return self._read(reply, lambda reply: (Token.from_json(reply), str(reply["token"])))

    def exchange_ticket(self, shown: str) -> TokenByTicket:
        """Get a user's token by a ticket of Kerberos; `shown` is what SPNEGO makes of the ticket, in Base64.

        Unauthorized when the ticket is not good, Forbidden when its holder cannot be a user, NotFound when the service
        takes no tickets.
        """
        headers = {"Authorization": f"Negotiate {shown}"}
        reply = self._call("POST", "/session/ticket", headers=headers, repeatable=False)
        return self._read(reply, TokenByTicket.from_json)

    def revoke_token(self, token_id: str) -> None:
        """Take a token back; whoever shows it is refused from now on."""
        self._delete(f"/tokens/{segment(token_id)}")

    def audit(self, since: int = 0, limit: int = 1000) -> list[AuditEntry]:
        """The audit log after the entry numbered `since`, oldest first, at most `limit` entries."""
        path = "/audit" + query_of(since=since, limit=limit)
        return self._ask(path, lambda reply: [AuditEntry.from_json(row) for row in reply["entries"]])

    def prune_audit(self, before: float) -> str | None:
        """Remove some of the entries of the audit log that were made before a Unix second, the oldest first.

        The last of them as NUMBER:HASH, None when there are no more.
        """
        reply = self._call("DELETE", "/audit" + query_of(before=before))
        return self._read(reply, AuditPruned.from_json).last


@dataclass(frozen=True)
class _Kept:
    """An answer to `data`, which came `at` monotonic seconds; its values grow older with this machine's clock."""

    etag: str
    rows: tuple[Datum, ...]
    at: float

    def grown(self) -> list[Datum]:
        passed = time.monotonic() - self.at
        return [row if row.age is None else replace(row, age=row.age + passed) for row in self.rows]


def _slot(node_name: str, data_name: str) -> str:
    return f"/nodes/{segment(node_name)}/slots/{segment(data_name)}"


def _cell(data_name: str, node_name: str) -> str:
    return f"/data/{segment(data_name)}/{segment(node_name)}"


def _guard(if_match: int | None) -> dict[str, str]:
    return {} if if_match is None else {"If-Match": str(if_match)}


def _parts(names: list[str]) -> Iterable[list[str]]:
    return (names[start : start + NAMES_PER_CALL] for start in range(0, len(names), NAMES_PER_CALL))


def _data(reply: Any) -> list[Datum]:
    shared = {"data_name": reply["data_name"], "unit": reply["unit"]}
    return [Datum.from_json(shared | row) for row in reply["values"]]
