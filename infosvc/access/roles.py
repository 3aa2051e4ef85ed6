"""Who calls, and what they may do: the roles, and which of them each call needs."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from infosvc.wire.bodies import LONGEST_TOKEN
from infosvc.wire.errors import Forbidden, InvalidInput
from infosvc.wire.records import Role
from infosvc.wire.tasks import USER_NAME

F = TypeVar("F", bound=Callable[..., Any])

# Which roles may do what is declared to need one of them; an agent may report for its own node alone, and a reader
# whose token is for one node may do only what is declared to be about one.
MAY: dict[Role, frozenset[Role]] = {
    Role.READER: frozenset(Role),
    Role.AGENT: frozenset({Role.AGENT, Role.ADMIN}),
    Role.PROCESSOR: frozenset({Role.PROCESSOR, Role.SCHEDULER, Role.ADMIN}),
    Role.SCHEDULER: frozenset({Role.SCHEDULER, Role.ADMIN}),
    Role.USER: frozenset({Role.USER, Role.ADMIN}),
    Role.SUBMITTER: frozenset({Role.SUBMITTER, Role.ADMIN}),
    Role.TASK: frozenset({Role.TASK, Role.ADMIN}),
    Role.ADMIN: frozenset({Role.ADMIN}),
}

# Pages that Flask-RESTX makes, so that nothing can be written beside them.
_DOCUMENTATION = frozenset({"api.specs", "api.doc", "api.root", "restx_doc.static"})

SEES_TASKS = (Role.USER, Role.SUBMITTER)  # what one needs to read tasks
TRACKS = (Role.USER, Role.TASK)  # what one needs to track runs

FIRST_ADMIN = "first admin"
USER_OF_FIRST_ADMIN = "admin"
SHORTEST_TOKEN = 16  # characters of the first admin's token


class Caller(NamedTuple):
    """One caller whose token was checked; `name` is what the audit log calls it, `token_id` is empty for nobody's.

    `session` is the key of the session by which a browser called, and empty for all who showed the token itself.
    `user_name` is whose tasks it submits: the name of its token, so all tokens of one name are one user. `task_id` is
    the task that a token of role task is for, and `task_asked_at` when that was asked for. `good_until` (Unix
    seconds) is told of who showed a ticket of Kerberos, and 0 for all whose token is kept.
    """

    name: str
    role: Role
    node_name: str | None = None
    token_id: str = ""
    session: str = ""
    user_name: str = ""
    task_id: str = ""
    task_asked_at: float = 0.0
    good_until: float = 0.0

    @property
    def owners(self) -> frozenset[str] | None:
        """Whose tasks it may know of: None for everybody's."""
        if self.role in (Role.ADMIN, Role.SUBMITTER):
            return None
        return frozenset({self.user_name}) if self.role is Role.USER else frozenset()

    @property
    def reads_one_node(self) -> bool:
        """Whether this is a reader of its own node's values alone."""
        return self.role is Role.READER and self.node_name is not None

    def may_track(self, owner: str) -> bool:
        """Whether it may know of somebody's runs and change them: a task those of its own owner."""
        if self.role is Role.TASK:
            return owner == self.user_name
        return self.owners is None or owner in self.owners


ANONYMOUS = Caller("anonymous", Role.READER)


def user_of(caller: Caller) -> str:
    """Whose something is that a caller asks for; Forbidden when its token's name cannot be that of a user."""
    if not USER_NAME.fullmatch(caller.user_name):
        raise Forbidden(
            f"the name of this token, {caller.user_name!r}, cannot be that of a user",
            remedy="use a token whose name has at most 32 small letters, digits and _.-",
        )
    return caller.user_name


def needs(*roles: Role) -> Callable[[F], F]:
    """Declares what a call needs, one of these roles, beside its method; without a declaration it is for admins."""

    def declare(method: F) -> F:
        method.__dict__["needs"] = roles
        return method

    return declare


def about_one_node(method: F) -> F:
    """Declares that a call tells of no other node than the one that it names, in its path or as `?node=`."""
    method.__dict__["about_one_node"] = True
    return method


def open_to_all(view: F) -> F:
    """Declares that a page is shown to whoever asks, with any token or none."""
    view.__dict__["needs"] = None
    return view


def reads_its_body(method: F) -> F:
    """Declares that a call takes its body itself, piece by piece, because it is too long for the memory."""
    method.__dict__["reads_its_body"] = True
    return method


def required_roles(endpoint: str | None, view: Any, method: str) -> tuple[Role, ...] | None:
    """What a call of an endpoint needs, one of these, or None when it is open to all.

    Paths that lead nowhere need what reading does.
    """
    if endpoint is None or endpoint in _DOCUMENTATION:
        return (Role.READER,)
    if method == "OPTIONS" and _handler(view, method) is None:
        return (Role.READER,)
    roles: tuple[Role, ...] | None = getattr(_handler(view, method), "needs", (Role.ADMIN,))
    return roles


def is_about_one_node(view: Any, method: str) -> bool:
    """Whether a call tells of no other node than the one that it names."""
    return hasattr(_handler(view, method), "about_one_node")


def does_read_its_body(view: Any, method: str) -> bool:
    """Whether a call takes its body itself."""
    return hasattr(_handler(view, method), "reads_its_body")


def _handler(view: Any, method: str) -> Any:
    """What answers a method of an endpoint, and carries its declarations."""
    resource = getattr(view, "view_class", None)
    if resource is None:
        return view
    return getattr(resource, "get" if method in ("HEAD", "OPTIONS") else method.lower(), None)


def is_loopback(host: str) -> bool:
    """Whether an address, or the name localhost, is reached from its own machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def sha256(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def token_from(path: Path) -> str:
    """The token in a file, made with mode 0600 when it is missing; InvalidInput when it cannot be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make(path)
        mode = stat.S_IMODE(path.stat().st_mode)
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the token file {path} cannot be used ({error})",
            "token_file",
            remedy="mend it, or name another one with --token-file",
        ) from error
    if mode & 0o077:
        raise InvalidInput(f"the token file {path} can be read by others", "token_file", remedy=f"chmod 600 {path}")
    if not token.isascii() or not SHORTEST_TOKEN <= len(token) <= LONGEST_TOKEN or len(token.split()) != 1:
        raise InvalidInput(
            f"the token file {path} holds no token",
            "token_file",
            remedy=f"one word of {SHORTEST_TOKEN} to {LONGEST_TOKEN} characters; delete it to get a new one",
        )
    return token


def _make(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w") as file:
        file.write(f"nw_{Role.ADMIN}_{secrets.token_urlsafe(32)}\n")
