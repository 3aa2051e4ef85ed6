"""Tokens: how they are made and taken back, of which only the SHA-256 is ever kept."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace

from infosvc.access.roles import USER_OF_FIRST_ADMIN, sha256
from infosvc.state.configuration import Configuration, StoredToken
from infosvc.state.transaction import Transaction
from infosvc.wire.answers import Token
from infosvc.wire.errors import InvalidInput, NotFound, Unauthorized
from infosvc.wire.records import Role
from infosvc.wire.tasks import USER_NAME

ID_LENGTH = 16


def id_of(digest: str) -> str:
    """The public name of a token, by which it is found: the beginning of its SHA-256, which gives nothing away."""
    return digest[:ID_LENGTH]


def new_text(role: Role) -> str:
    """The text of a new token, to be shown once; its beginning tells people who find it what it is."""
    return f"nw_{role}_{secrets.token_urlsafe(32)}"


def make(text: str, name: str, role: Role, node_name: str | None, now: float, expires_in: float | None) -> StoredToken:
    """What is kept of a token; InvalidInput unless an agent's token is for a node; a reader's may be, and no other.

    The name of a token of role user is that of the user, whose tasks are those of all tokens of this name.
    `now` is Unix seconds, `expires_in` seconds.
    """
    if role is Role.TASK:
        raise InvalidInput(
            "a token of role task is made by the service itself, for each task",
            "role",
            remedy="make one of another role",
        )
    if role is Role.AGENT and node_name is None:
        raise InvalidInput("a token of role agent is for one node", "node_name", remedy="name it in node_name")
    if role not in (Role.AGENT, Role.READER) and node_name is not None:
        raise InvalidInput(
            f"a token of role {role} is for no node",
            "node_name",
            remedy="leave node_name out, or make one of role agent or reader",
        )
    if role is Role.USER and not USER_NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} cannot be the name of a user",
            "name",
            remedy="give at most 32 small letters, digits and _.- that begin with a letter or _",
        )
    if role is Role.USER and name == USER_OF_FIRST_ADMIN:
        raise InvalidInput(f"{name} is what the first admin is called", "name", remedy="choose another name")
    digest = sha256(text)
    expires_at = None if expires_in is None else now + expires_in
    return StoredToken(Token(id_of(digest), name, role, node_name, now, expires_at), digest)


def add(transaction: Transaction, stored: StoredToken, replacing: bool) -> None:
    """Keep a new token; with `replacing`, the older ones of its role and node are revoked in the same commit."""
    token = stored.token
    if replacing and token.node_name is not None:
        for token_id, old in list(transaction.configuration.tokens.items()):
            if (old.token.role, old.token.node_name) == (token.role, token.node_name):
                revoke(transaction, token_id, token.created_at)
    transaction.put("tokens", (token.token_id,), stored)


def revoke(transaction: Transaction, token_id: str, now: float) -> None:
    """Take a token back for good at Unix second `now`; NotFound when there is none of this id."""
    stored = transaction.configuration.tokens.get(token_id)
    if stored is None:
        raise NotFound(f"no token has the id {token_id!r}", "token_id", remedy="see `nodewise token list`")
    if stored.token.revoked_at is None:
        transaction.put("tokens", (token_id,), replace(stored, token=replace(stored.token, revoked_at=now)))


def check_expiry(token: Token, now: float) -> None:
    """Unauthorized when a token's time is over at Unix second `now`."""
    if token.expires_at is not None and now >= token.expires_at:
        over = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(token.expires_at))
        raise Unauthorized(
            f"the token {token.name!r} expired at {over}",
            "Authorization",
            remedy="an admin makes another with `nodewise token create`",
        )


def agent_secrets(configuration: Configuration, node_name: str) -> list[str]:
    """What may prove the service to a node's agent: the SHA-256 of each of its tokens, the newest first.

    An agent may still hold an older token than the newest. An expired one still counts, because its agent still holds
    it and must hear that it is to stop.
    """
    of_agents = [stored for stored in list(configuration.tokens.values()) if stored.token.role is Role.AGENT]
    own = [stored for stored in of_agents if stored.token.node_name == node_name]
    valid = [stored for stored in own if stored.token.revoked_at is None]
    return [stored.sha256 for stored in sorted(valid, key=lambda stored: stored.token.created_at, reverse=True)]
