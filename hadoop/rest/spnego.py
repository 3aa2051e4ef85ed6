"""Shows a daemon's page, or the service, who asks where there is Kerberos (SPNEGO, RFC 4559).

The library finds the ticket itself: that of `kinit`, or one that it gets, and renews, by the keytab that
KRB5_CLIENT_KTNAME names, or that NODEWISE_KEYTAB names for nodewise alone, where NODEWISE_PRINCIPAL may tell whose key
of several is meant.
"""

from __future__ import annotations

import base64
import ctypes
import os
import re
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from ctypes import byref, c_uint32, c_void_p
from functools import lru_cache
from pathlib import Path
from threading import BoundedSemaphore, Thread

from hadoop.errors import NoTicket
from infosvc.wire.kerberos import gssapi

_KEYTAB, _PRINCIPAL = "NODEWISE_KEYTAB", "NODEWISE_PRINCIPAL"
_KEYTAB_OF_THE_LIBRARY, _CACHE = "KRB5_CLIENT_KTNAME", "KRB5CCNAME"
_LOG_IN = f"run `kinit`, or name a keytab with {_KEYTAB_OF_THE_LIBRARY}"
_REMEDIES = {
    r"Clock skew|not yet valid": "the clocks of this machine and of Kerberos differ: set them by NTP",
    r"Server .*not found in Kerberos database": "let Hadoop's site files, or --url, name the host as Kerberos does",
    r"Cannot (find|contact|locate|resolve)|default realm": "see that the KDC in krb5.conf (KRB5_CONFIG) is up",
    r"[Kk]eytab|[Pp]reauthentication|Client .*not found|[Pp]assword": "name a keytab that this realm knows",
}
"""What helps against what the library says; the first that is found counts, and else there is no ticket."""

_callers = BoundedSemaphore(16)
"""Who asks the library at once, which may take half a minute for each where a KDC hangs."""


def make_token(host: str, seconds: float = 10.0, of: str = "the pages of Hadoop") -> str:
    """What a page at a host is shown, in Base64; NoTicket, with what helps, when there is none within so many seconds.

    `of` is what NoTicket says wants the ticket; it is a plural. The library itself waits half a minute for a KDC that
    says nothing, and has no setting for it.
    """
    made: Future[str] = Future()
    place = f"{of} on {host}"

    def make() -> None:
        try:
            made.set_result(_make_token(host, place))
        except BaseException as error:
            made.set_exception(error)
        finally:
            _callers.release()

    # A call that hangs goes on by itself until the library gives it up; others than these may not wait with it.
    if _callers.acquire(timeout=seconds):
        Thread(target=make, name="spnego", daemon=True).start()
        with suppress(TimeoutError):
            return made.result(seconds)
    raise _no_ticket_error(place, f"Cannot contact any KDC within {seconds:.0f} s")


def _make_token(host: str, place: str) -> str:
    _take_keytab()
    try:
        library = gssapi.load()
    except OSError as error:
        message = f"{place} want a ticket of Kerberos, and {gssapi.LIBRARY} is not there ({error})"
        raise NoTicket(message, gssapi.HOW_TO_GET_IT) from None
    try:
        return base64.b64encode(_ask(library, host)).decode()
    except gssapi.Refused as error:
        raise _no_ticket_error(place, str(error)) from None


def _ask(library: ctypes.CDLL, host: str) -> bytes:
    """What a page at a host is shown; gssapi.Refused when there is no ticket."""
    minor, context, service = c_uint32(), c_void_p(), f"HTTP@{host.lower()}"
    with (
        gssapi.open_name(library, service, gssapi.HOST_BASED) as name,
        _open_asker(library) as asker,
        gssapi.open_buffer(library) as token,
    ):
        major = library.gss_init_sec_context(
            byref(minor), asker, byref(context), name, byref(gssapi.SPNEGO), 0, 0, None, None, None, byref(token),
            None, None,
        )  # fmt: skip
        try:
            gssapi.check(library, major, minor)
            return token.content()
        finally:
            library.gss_delete_sec_context(byref(minor), byref(context), None)


def name_keytab(keytab: Path, principal: str | None) -> None:
    """Have this process, and those that it starts, show tickets by a keytab: of this principal, or of its first."""
    os.environ[_KEYTAB] = str(keytab)
    if principal:
        os.environ[_PRINCIPAL] = principal


@lru_cache(maxsize=1)
def _take_keytab() -> None:
    """Lead the library to the keytab that is named for nodewise, whose tickets then are this process's alone."""
    keytab = os.environ.get(_KEYTAB)
    if keytab:
        os.environ[_KEYTAB_OF_THE_LIBRARY] = keytab
        os.environ[_CACHE] = f"MEMORY:{os.environ.get(_PRINCIPAL, '')} of {keytab}"


@contextmanager
def _open_asker(library: ctypes.CDLL) -> Iterator[c_void_p]:
    """Who asks: whose key of a keytab is named, or else whomever the library finds; gssapi.Refused when that is nobody.

    The library could find him by itself later on, but would not tell then why there is nobody.
    """
    principal = os.environ.get(_PRINCIPAL) if os.environ.get(_KEYTAB) else None
    with gssapi.open_name(library, principal, gssapi.USER) if principal else nullcontext() as name:
        minor, asker, ways = c_uint32(), c_void_p(), gssapi.make_oids(gssapi.KRB5)
        major = library.gss_acquire_cred(
            byref(minor), name, gssapi.FOR_EVER, byref(ways), gssapi.TO_ASK, byref(asker), None, None
        )  # fmt: skip
    gssapi.check(library, major, minor)
    try:
        yield asker
    finally:
        library.gss_release_cred(byref(minor), byref(asker))


def _no_ticket_error(place: str, reason: str) -> NoTicket:
    keytab = (os.environ.get(_KEYTAB) or os.environ.get(_KEYTAB_OF_THE_LIBRARY) or "").removeprefix("FILE:")
    if keytab and not os.access(keytab, os.R_OK):
        reason, helps = f"the keytab {keytab} cannot be read", "name a file that this user may read"
    else:
        helps = next((remedy for pattern, remedy in _REMEDIES.items() if re.search(pattern, reason)), _LOG_IN)
    return NoTicket(f"{place} want a ticket of Kerberos, and there is none ({reason})", helps)
