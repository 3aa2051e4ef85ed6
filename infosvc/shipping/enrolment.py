"""One node's way into the service: enrolled, with a token of its own, before its agent starts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infosvc.wire.answers import Token
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Node, Role

NOTHING = Path()  # in place of a file or directory for agents: the one that an earlier enrolment gave is taken back


@dataclass(frozen=True)
class Roster:
    """The nodes and the valid agent tokens that the service had before anybody was enrolled."""

    nodes: dict[str, Node]
    tokens: tuple[Token, ...]

    @classmethod
    def of(cls, client: InfoClient) -> Roster:
        """Ask the service."""
        nodes = {node.node_name: node for node in client.nodes()}
        return cls(nodes, tuple(token for token in client.tokens() if token.revoked_at is None))


class Admission:
    """A context manager around the installation of one agent: when that fails, all is as it was before.

    The tokens that the node had before stay valid until the new agent has shown that it works, so that the old one
    works on when there will be no new one.
    """

    def __init__(self, client: InfoClient, roster: Roster, node_name: str) -> None:
        self._client = client
        self._node_name = node_name
        self._old = roster.nodes.get(node_name)
        of_agents = [token for token in roster.tokens if token.role is Role.AGENT]
        self._old_tokens = [token.token_id for token in of_agents if token.node_name == node_name]
        self._admitted = False
        self._token_id: str | None = None

    def admit(self, node_name: str, address: str) -> str:
        """Enrol the node at this address and make a token for its agent."""
        self._admitted = True
        self._client.put_node(node_name, address)
        token, text = self._client.create_token(f"agent of {node_name}", Role.AGENT, node_name=node_name)
        self._token_id = token.token_id
        return text

    def __enter__(self) -> Admission:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._revoke(self._old_tokens)
        elif self._admitted:
            self._withdraw()

    def _withdraw(self) -> None:
        """Undo what can be undone; the address first, for without it the old agent is told nothing."""
        with suppress(InfoError):
            if self._old is None:
                self._client.delete_node(self._node_name)  # and with it the token
            else:
                self._client.put_node(self._node_name, self._old.address)
        with suppress(InfoError):
            if self._old is not None and self._token_id:
                self._client.revoke_token(self._token_id)

    def _revoke(self, token_ids: Sequence[str]) -> None:
        for token_id in token_ids:
            self._client.revoke_token(token_id)


def start_missing(client: InfoClient, node_name: str, names: Sequence[str]) -> int:
    """Start what the node has no slot for, and tell how many; a slot that somebody stopped stays stopped."""
    if not names:
        return 0
    there = {slot.data_name for slot in client.slots(node_name).slots}
    missing = [name for name in names if name not in there]
    for name in missing:
        client.put_slot(node_name, name, running=True)
    return len(missing)
