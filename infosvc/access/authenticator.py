"""The authenticator: it lets each call pass, refuses it, or says that there are too many calls."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar

from infosvc.access import task_token, ticket_token
from infosvc.access.csrf import Environ, check_change
from infosvc.access.local_call import LocalCalls
from infosvc.access.rate_limit import RateLimit, TooFast
from infosvc.access.roles import ANONYMOUS, FIRST_ADMIN, MAY, USER_OF_FIRST_ADMIN, Caller, sha256
from infosvc.access.sessions import Session, Sessions, cookie_names
from infosvc.access.tickets import Acceptor, read_token
from infosvc.access.tokens import check_expiry, id_of
from infosvc.settings import Settings
from infosvc.state.configuration import StoredToken
from infosvc.state.views import Latest
from infosvc.wire.answers import TokenByTicket
from infosvc.wire.bodies import LONGEST_TOKEN
from infosvc.wire.errors import Forbidden, InfoError, NotFound, Revoked, Unauthorized
from infosvc.wire.records import Role
from infosvc.wire.tasks import Task

MOST_KNOWN = 20_000
LONGEST_HEADER = len("Bearer ") + LONGEST_TOKEN  # characters; what is good is remembered, and must stay small
KNOWN = "infosvc.known"  # a call has it that showed a good token, or a session
HOLDER = "infosvc.holder"  # where a call keeps whose session its cookie shows, which the audit log then names
_REFUSED = "infosvc.refused"
T = TypeVar("T")


class _Known(NamedTuple):
    """Whom a good header shows until it expires, as long as `stored` is the token's row; the first admin has none.

    The token of a task has none either, and holds as long as the task goes on, nor has one that was got by a ticket.
    """

    caller: Caller
    stored: StoredToken | None = None
    expires_at: float | None = None


class Authenticator:
    """Knows who calls by the token that the call shows, or by the session whose cookie it shows without any token.

    Raises Unauthorized, Revoked, Forbidden or TooFast when the call may not go on. Headers that were good are
    remembered, but each call looks at the token's present row, so a revocation counts at once.
    """

    def __init__(
        self, settings: Settings, latest: Latest, sessions: Sessions, acceptor: Acceptor | None = None
    ) -> None:
        self._open = settings.open_reading
        self._local = LocalCalls(settings.names)
        self._latest = latest
        self._sessions = sessions
        self._acceptor = acceptor
        self._monotonic, self._wall = latest.clock.monotonic, latest.clock.wall
        self._first_admin = sha256(settings.token)
        self._secret = settings.token
        self._known: dict[str, _Known] = {}
        self._calls = RateLimit(settings.calls_per_second)
        self._refusals = RateLimit(settings.refusals_per_second)

    def admit_agent(self, environ: Environ, node_name: str) -> Caller:
        """A caller who may report for this node."""
        caller = self.caller(environ)
        own = caller.role is Role.AGENT and caller.node_name == node_name
        if not own:  # an agent's own report, nearly every call there is, is let through at once
            self.admit(caller, (Role.AGENT,), node_name)
        return caller

    def admit(self, caller: Caller, needed: Collection[Role], node_name: str | None = None) -> None:
        """Let a caller do what needs one of some roles, an agent for its own node alone."""
        may = frozenset[Role]().union(*(MAY[role] for role in needed))
        if caller.role not in may:
            if caller is ANONYMOUS:
                raise _unknown(shown=False)
            allowed = ", ".join(role for role in Role if role in may)
            remedy = f"this call needs a token of role {allowed}"
            raise Forbidden(f"a token of role {caller.role} may not do this", remedy=remedy)
        if Role.AGENT in needed and caller.role is Role.AGENT and caller.node_name != node_name:
            raise Forbidden(f"the token of {caller.node_name}'s agent may not report for {node_name}")

    def check_node(self, caller: Caller, told_of: str | None) -> None:
        """Keep a reader of one node to calls that tell of it alone; `told_of` is the only node that a call tells of."""
        if caller.reads_one_node and told_of != caller.node_name:
            raise Forbidden(
                f"a token that reads {caller.node_name} may not read anything else",
                remedy=f"ask for /data/NAME/{caller.node_name}, or /data?name=NAME&node={caller.node_name}",
            )

    def caller(self, environ: Environ) -> Caller:
        """Who calls; anonymous callers are readers where reading is open."""
        refused: InfoError | None = environ.get(_REFUSED)
        if refused is not None:  # the fast lane asked first, and one call counts once
            raise refused
        try:
            return self._authenticate(environ)
        except InfoError as error:
            environ[_REFUSED] = error
            raise

    def visit(self, environ: Environ) -> Caller:
        """Nobody in particular, who may call as often as anyone without a token."""
        self._count(str(environ.get("REMOTE_ADDR", "")))
        return ANONYMOUS

    def reads_openly(self, environ: Environ) -> bool:
        """Whether a call may read without a token: where reading is open, and straight from this machine."""
        return self._open and self._local.find_objection(environ) is None

    def still_valid(self, caller: Caller) -> bool:
        """Whether a caller who was let in a while ago would still be known."""
        if not caller.token_id:
            return self._open
        if caller.session and self._sessions.find_by_key(caller.session) is None:
            return False
        if caller.token_id == FIRST_ADMIN:
            return True
        if caller.task_id:
            return self._goes_on(caller)
        if caller.good_until:
            return self._wall() < caller.good_until
        stored = self._latest.configuration.tokens.get(caller.token_id)
        if stored is None or stored.token.revoked_at is not None:
            return False
        return stored.token.expires_at is None or self._wall() < stored.token.expires_at

    def log_in(self, token: str, environ: Environ) -> str:
        """Begin a session for whoever shows a token, in place of the one that the call shows; the cookie's text."""
        address = str(environ.get("REMOTE_ADDR", ""))
        known = self._patiently(address, lambda: self._identify_typed(token))
        self._count(known.caller.token_id)
        old = self.session(environ)
        if old is not None:
            self._sessions.end(old.caller.session)
        environ[HOLDER] = known.caller
        return self._sessions.begin(known.caller, known.expires_at)[0]

    @property
    def takes_tickets(self) -> bool:
        """Whether a ticket of Kerberos logs in."""
        return self._acceptor is not None

    def make_token(self, environ: Environ) -> tuple[TokenByTicket, bytes]:
        """A token for the user whose ticket of Kerberos a call shows, and what proves the service to the user.

        It counts as long as the ticket, and 12 hours at most. WantsTicket when there is no good ticket, Forbidden when
        it is of nobody who can be a user here, NotFound when this service believes none.
        """
        acceptor = self._acceptor
        if acceptor is None:
            raise NotFound(
                "this service takes no tickets of Kerberos",
                remedy="log in with a token, or start it with --spnego-keytab",
            )
        header, address = str(environ.get("HTTP_AUTHORIZATION", "")), str(environ.get("REMOTE_ADDR", ""))
        shown = self._patiently(address, lambda: acceptor.accept(read_token(header)))
        until = int(self._wall() + min(shown.seconds, ticket_token.MOST_SECONDS))
        environ[HOLDER] = caller = _caller_by_ticket(shown.user_name, until)
        self._count(caller.token_id)
        text = ticket_token.text_of(shown.user_name, until, self._secret)
        return TokenByTicket(text, shown.user_name, Role.USER, float(until)), shown.answer

    def log_out(self, environ: Environ) -> None:
        """End the session that the call shows, if it shows any; Forbidden when another site's page asks for it."""
        session = self.session(environ)
        if session is not None:
            check_change(environ, session.csrf_token)
            self._sessions.end(session.caller.session)

    def session(self, environ: Environ) -> Session | None:
        """The session whose cookie a call shows, None without any that goes on."""
        cookies = environ.get("HTTP_COOKIE")
        text = next(filter(None, (_cookie(cookies, name) for name in cookie_names(environ))), "") if cookies else ""
        session = self._sessions.find(text) if text else None
        if session is None:
            return None
        if not self.still_valid(session.caller):
            self._sessions.end(session.caller.session)
            return None
        environ[HOLDER] = session.caller
        return session

    def _authenticate(self, environ: Environ) -> Caller:
        header: str = environ.get("HTTP_AUTHORIZATION", "")
        if len(header) > LONGEST_HEADER:
            raise Unauthorized(
                f"the Authorization header has {len(header)} characters",
                "Authorization",
                remedy=f"send a token of at most {LONGEST_TOKEN}",
            )
        known = self._known.get(header)
        if known is not None and self._holds(known):
            environ[KNOWN] = True
            self._count(known.caller.token_id)
            return known.caller
        session = None if header else self.session(environ)
        if session is not None:
            environ[KNOWN] = True
            self._count(session.caller.token_id)
            check_change(environ, session.csrf_token)
            return session.caller
        address = str(environ.get("REMOTE_ADDR", ""))
        if not header and self._open:
            self._count(address)
            objection = self._local.find_objection(environ)
            if objection is not None:
                raise objection
            return ANONYMOUS
        known = self._patiently(address, lambda: self._identify(header))
        environ[KNOWN] = True
        if header == f"Bearer {_token_in(header)}":  # other spellings of one token would be entries of their own
            self._remember(header, known)
        self._count(known.caller.token_id)
        return known.caller

    def _patiently(self, address: str, look: Callable[[], T]) -> T:
        """Look up what is new here; an address that was refused too often must wait with any such."""
        now = self._monotonic()
        wait = self._refusals.wait(address, now)
        if wait:
            raise TooFast(f"too many calls from {address} were refused", wait)
        try:
            return look()
        except InfoError:
            self._refusals.take(address, now)
            raise

    def _identify(self, header: str) -> _Known:
        shown = _token_in(header)
        known = self._recognise(shown) if shown else None
        if known is None:
            raise _unknown(shown=bool(header))
        return known

    def _identify_typed(self, token: str) -> _Known:
        known = self._recognise(token)
        if known is None:
            raise Unauthorized(
                "this service does not know that token",
                "token",
                remedy="an admin makes one with `nodewise token create`",
            )
        return known

    def _recognise(self, text: str) -> _Known | None:
        """Whose token a text is, None for nobody's; Revoked or Unauthorized when it does not count any more."""
        digest = sha256(text)
        if hmac.compare_digest(digest, self._first_admin):
            return _Known(Caller(FIRST_ADMIN, Role.ADMIN, None, FIRST_ADMIN, user_name=USER_OF_FIRST_ADMIN))
        if task := task_token.recognise(text, self._secret, self._latest.configuration.tasks):
            return _Known(_caller_of(task))
        if self._acceptor and (by_ticket := ticket_token.recognise(text, self._secret, self._wall())):
            return _Known(_caller_by_ticket(*by_ticket), None, float(by_ticket[1]))
        stored = self._latest.configuration.tokens.get(id_of(digest))
        if stored is None or not hmac.compare_digest(digest, stored.sha256):
            return None
        token = stored.token
        if token.revoked_at is not None:
            raise Revoked(
                f"the token {token.name!r} was revoked", "Authorization", remedy="an admin can make another one"
            )
        check_expiry(token, self._wall())
        name = f"{token.name} ({token.token_id})"  # two tokens may have one name
        caller = Caller(name, token.role, token.node_name, token.token_id, user_name=token.name)
        return _Known(caller, stored, token.expires_at)

    def _holds(self, known: _Known) -> bool:
        """Whether nothing has changed about a token; whoever revokes it puts another row in its place."""
        caller, stored, expires_at = known
        if caller.task_id:
            return self._goes_on(caller)
        if expires_at is not None and self._wall() >= expires_at:
            return False
        if stored is None:
            return True
        return self._latest.configuration.tokens.get(caller.token_id) is stored

    def _goes_on(self, caller: Caller) -> bool:
        """Whether the task still runs whose token a caller has shown."""
        return task_token.still_holds(caller.task_id, caller.task_asked_at, self._latest.configuration.tasks)

    def _remember(self, header: str, known: _Known) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known = {}
        self._known[header] = known

    def _count(self, key: str) -> None:
        wait = self._calls.take(key, self._monotonic())
        if wait:
            raise TooFast("too many calls", wait)


def _caller_of(task: Task) -> Caller:
    """Who shows the token of a task; it counts as a caller of its own, whatever other tokens its owner has."""
    task_id = task.task_id
    return Caller(
        name=f"{task.owner} ({task_id})",
        role=Role.TASK,
        token_id=task_id,
        user_name=task.owner,
        task_id=task_id,
        task_asked_at=task.created_at,
    )


def _caller_by_ticket(user_name: str, until: int) -> Caller:
    """Who showed a ticket, or a token that came of one; all those of a user count as one caller."""
    return Caller(
        name=f"{user_name} (by ticket)",
        role=Role.USER,
        token_id=f"ticket of {user_name}",
        user_name=user_name,
        good_until=float(until),
    )


def _token_in(header: str) -> str:
    """The token that an Authorization header shows, empty when it shows none.

    >>> _token_in("bearer  nw_reader_x ")
    'nw_reader_x'
    """
    kind, _, shown = header.partition(" ")
    return shown.strip() if kind.lower() == "bearer" else ""


def _cookie(header: str, wanted: str) -> str:
    """What a cookie says, empty without it.

    >>> _cookie("theme=dark; nodewise_session=abc", "nodewise_session")
    'abc'
    """
    for part in header.split(";"):
        name, _, text = part.strip().partition("=")
        if name == wanted:
            return text
    return ""


def _unknown(shown: bool) -> Unauthorized:
    fault = "shows a token that this service does not know" if shown else "shows no token"
    return Unauthorized(
        f"the call {fault}",
        "Authorization",
        remedy=(
            "send `Authorization: Bearer TOKEN` with the content of the service's token file "
            "(--token-file, NODEWISE_TOKEN_FILE)"
        ),
    )
