"""The gate: every call passes it, is refused, or is too fast."""

from __future__ import annotations

import hmac
from typing import Any, NamedTuple

from infosvc.auth import ANONYMOUS, FIRST_ADMIN, MAY, Caller, sha256
from infosvc.errors import Forbidden, InfoError, Revoked, Unauthorized
from infosvc.latest import Latest, StoredToken
from infosvc.rates import Rates, TooFast
from infosvc.records import Role
from infosvc.settings import Settings
from infosvc.tokens import check_expiry, id_of

Environ = dict[str, Any]

MOST_KNOWN = 5_000
_REFUSED = "infosvc.refused"


class _Known(NamedTuple):
    """Whom a good header shows until it expires, as long as `stored` (None: the first admin) is the token's row."""

    caller: Caller
    stored: StoredToken | None = None
    expires_at: float | None = None


class Gate:
    """Knows who calls by the token that the call shows.

    Raises Unauthorized, Revoked, Forbidden or TooFast when the call may not go on. Headers that were good are
    remembered, but each call looks at the token's present row, so a revocation counts at once.
    """

    def __init__(self, settings: Settings, latest: Latest) -> None:
        self._open = settings.open_reading
        self._latest = latest
        self._monotonic, self._wall = latest.clock.monotonic, latest.clock.wall
        self._first_admin = sha256(settings.token)
        self._known: dict[str, _Known] = {}
        self._calls = Rates(settings.calls_per_second)
        self._refusals = Rates(settings.refusals_per_second)

    def admit_agent(self, environ: Environ, node_name: str) -> Caller:
        """A caller who may report for this node."""
        caller = self.caller(environ)
        own = caller.role is Role.AGENT and caller.node_name == node_name
        if not own:  # an agent's own report, nearly every call there is, is let through at once
            self.admit(caller, Role.AGENT, node_name)
        return caller

    def admit(self, caller: Caller, needed: Role, node_name: str | None = None) -> None:
        """Let a caller do what needs a role, an agent for its own node alone."""
        if caller.role not in MAY[needed]:
            if caller is ANONYMOUS:
                raise _unknown(shown=False)
            allowed = ", ".join(role for role in Role if role in MAY[needed])
            raise Forbidden(f"a token of role {caller.role} may not do this: it takes one of role {allowed}")
        if needed is Role.AGENT and caller.role is Role.AGENT and caller.node_name != node_name:
            raise Forbidden(f"the token of {caller.node_name}'s agent may not report for {node_name}")

    def caller(self, environ: Environ) -> Caller:
        """Who calls; anonymous callers are readers where reading is open."""
        refused: InfoError | None = environ.get(_REFUSED)
        if refused is not None:  # the fast lane asked first, and one call counts once
            raise refused
        try:
            return self._judge(environ)
        except InfoError as error:
            environ[_REFUSED] = error
            raise

    def visit(self, environ: Environ) -> Caller:
        """Nobody in particular, who may call as often as anyone without a token."""
        self._count(str(environ.get("REMOTE_ADDR", "")))
        return ANONYMOUS

    def still_valid(self, caller: Caller) -> bool:
        """Whether a caller who was let in a while ago would still be known."""
        if not caller.token_id:
            return self._open
        if caller.token_id == FIRST_ADMIN:
            return True
        stored = self._latest.picture.tokens.get(caller.token_id)
        if stored is None or stored.token.revoked_at is not None:
            return False
        return stored.token.expires_at is None or self._wall() < stored.token.expires_at

    def _judge(self, environ: Environ) -> Caller:
        header: str = environ.get("HTTP_AUTHORIZATION", "")
        known = self._known.get(header)
        if known is not None and self._holds(known):
            self._count(known.caller.token_id)
            return known.caller
        address = str(environ.get("REMOTE_ADDR", ""))
        if not header and self._open:
            self._count(address)
            return ANONYMOUS
        return self._look_up(header, address)

    def _look_up(self, header: str, address: str) -> Caller:
        """Who shows a header that is new here; an address that was refused too often must wait with any such."""
        now = self._monotonic()
        wait = self._refusals.wait(address, now)
        if wait:
            raise TooFast(f"too many calls from {address} were refused: call again in {wait:.1f} s", wait)
        try:
            known = self._identify(header)
        except InfoError:
            self._refusals.take(address, now)
            raise
        self._remember(header, known)
        self._count(known.caller.token_id)
        return known.caller

    def _identify(self, header: str) -> _Known:
        kind, _, shown = header.partition(" ")
        digest = sha256(shown.strip())
        if kind.lower() != "bearer":
            raise _unknown(shown=bool(header))
        if hmac.compare_digest(digest, self._first_admin):
            return _Known(Caller(FIRST_ADMIN, Role.ADMIN, None, FIRST_ADMIN))
        stored = self._latest.picture.tokens.get(id_of(digest))
        if stored is None or not hmac.compare_digest(digest, stored.sha256):
            raise _unknown(shown=True)
        token = stored.token
        if token.revoked_at is not None:
            raise Revoked(f"the token {token.name!r} was revoked: an admin can make another one", "Authorization")
        check_expiry(token, self._wall())
        name = f"{token.name} ({token.token_id})"  # two tokens may have one name
        return _Known(Caller(name, token.role, token.node_name, token.token_id), stored, token.expires_at)

    def _holds(self, known: _Known) -> bool:
        """Whether nothing has changed about a token; whoever revokes it puts another row in its place."""
        caller, stored, expires_at = known
        if stored is None:
            return True
        if expires_at is not None and self._wall() >= expires_at:
            return False
        return self._latest.picture.tokens.get(caller.token_id) is stored

    def _remember(self, header: str, known: _Known) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known = {}
        self._known[header] = known

    def _count(self, key: str) -> None:
        wait = self._calls.take(key, self._monotonic())
        if wait:
            raise TooFast(f"this is more than one caller may ask: call again in {wait:.3f} s", wait)


def _unknown(shown: bool) -> Unauthorized:
    said = "shows a token that this service does not know" if shown else "shows no token"
    return Unauthorized(
        f"the call {said}: send `Authorization: Bearer TOKEN` with the content of the service's token file "
        "(--token-file, NODEWISE_TOKEN_FILE)",
        "Authorization",
    )
