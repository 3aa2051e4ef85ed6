"""Shows a daemon's page who asks where Hadoop has Kerberos (SPNEGO, RFC 4559), by the library that kinit and curl use.

Python's packages for it (gssapi, which requests-gssapi needs, too) come as source only: they want a compiler and the
headers of Kerberos on every machine. What is needed of the library is one call, so it is made directly. It finds the
ticket itself: that of `kinit`, or one that it gets, and renews, by the keytab that KRB5_CLIENT_KTNAME names, or that
NODEWISE_KEYTAB names for nodewise alone, where NODEWISE_PRINCIPAL may tell whose key of several is meant.
"""

from __future__ import annotations

import base64
import ctypes
import os
import re
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from ctypes import POINTER, Structure, byref, c_char_p, c_size_t, c_uint32, c_void_p
from functools import lru_cache
from pathlib import Path
from threading import BoundedSemaphore, Thread

from hadoop.errors import NoTicket

LIBRARY = "libgssapi_krb5.so.2"
_SPNEGO = b"\x2b\x06\x01\x05\x05\x02"  # 1.3.6.1.5.5.2
_HOST_BASED = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04"  # GSS_C_NT_HOSTBASED_SERVICE, as in HTTP@host
_KRB5 = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"  # 1.2.840.113554.1.2.2
_USER = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x01"  # GSS_C_NT_USER_NAME, as in alice@REALM
_FOR_EVER, _TO_ASK = 0xFFFFFFFF, 1
_FAILED = 0xFFFF0000
"""The bits of a status that tell of a failure; the others only tell that there is more to do."""
_OF_GSS, _OF_MECHANISM = 1, 2
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


class _Buffer(Structure):
    _fields_ = [("length", c_size_t), ("value", c_void_p)]

    def content(self) -> bytes:
        return ctypes.string_at(self.value, self.length) if self.value else b""


class _Oid(Structure):
    _fields_ = [("length", c_uint32), ("elements", c_char_p)]


class _Oids(Structure):
    _fields_ = [("count", c_size_t), ("elements", POINTER(_Oid))]


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
    library, minor = _load(), c_uint32()
    context, token = c_void_p(), _Buffer()
    with _import_name(library, place, f"HTTP@{host.lower()}", _HOST_BASED) as name, _asker(library, place) as asker:
        major = library.gss_init_sec_context(
            byref(minor), asker, byref(context), name, byref(_Oid(len(_SPNEGO), _SPNEGO)), 0, 0, None, None, None,
            byref(token), None, None,
        )  # fmt: skip
    try:
        if major & _FAILED:
            raise _no_ticket_error(place, _messages(library, major, minor.value))
        return base64.b64encode(token.content()).decode()
    finally:
        library.gss_release_buffer(byref(minor), byref(token))
        library.gss_delete_sec_context(byref(minor), byref(context), None)


def name_keytab(keytab: Path, principal: str | None) -> None:
    """Have this process, and those that it starts, show tickets by a keytab: of this principal, or of its first."""
    os.environ[_KEYTAB] = str(keytab)
    if principal:
        os.environ[_PRINCIPAL] = principal


@lru_cache(maxsize=1)
def _load() -> ctypes.CDLL:
    """The library; NoTicket when this machine has none."""
    _take_keytab()
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise NoTicket(
            f"pages of Hadoop want a ticket of Kerberos, and {LIBRARY} is not there ({error})",
            remedy="`apt-get install libgssapi-krb5-2`",
        ) from None
    oid, buffer, status = POINTER(_Oid), POINTER(_Buffer), POINTER(c_uint32)
    library.gss_import_name.argtypes = [status, buffer, oid, POINTER(c_void_p)]
    library.gss_init_sec_context.argtypes = [
        status, c_void_p, POINTER(c_void_p), c_void_p, oid, c_uint32, c_uint32, c_void_p, buffer, c_void_p, buffer,
        c_void_p, c_void_p,
    ]  # fmt: skip
    library.gss_acquire_cred.argtypes = [
        status, c_void_p, c_uint32, POINTER(_Oids), ctypes.c_int, POINTER(c_void_p), c_void_p, c_void_p,
    ]  # fmt: skip
    library.gss_release_cred.argtypes = [status, POINTER(c_void_p)]
    library.gss_display_status.argtypes = [status, c_uint32, ctypes.c_int, oid, status, buffer]
    library.gss_release_name.argtypes = [status, POINTER(c_void_p)]
    library.gss_release_buffer.argtypes = [status, buffer]
    library.gss_delete_sec_context.argtypes = [status, POINTER(c_void_p), buffer]
    for function in ("import_name", "acquire_cred", "init_sec_context", "display_status"):
        getattr(library, f"gss_{function}").restype = c_uint32
    return library


def _take_keytab() -> None:
    """Lead the library to the keytab that is named for nodewise, whose tickets then are this process's alone."""
    keytab = os.environ.get(_KEYTAB)
    if keytab:
        os.environ[_KEYTAB_OF_THE_LIBRARY] = keytab
        os.environ[_CACHE] = f"MEMORY:{os.environ.get(_PRINCIPAL, '')} of {keytab}"


@contextmanager
def _import_name(library: ctypes.CDLL, place: str, said: str, kind: bytes) -> Iterator[c_void_p]:
    """A principal as the library has it; `place` is for which place."""
    text, minor, name = said.encode(), c_uint32(), c_void_p()
    held = ctypes.create_string_buffer(text, len(text))
    given = _Buffer(len(text), ctypes.cast(held, c_void_p))
    major = library.gss_import_name(byref(minor), byref(given), byref(_Oid(len(kind), kind)), byref(name))
    if major & _FAILED:
        raise _no_ticket_error(place, _messages(library, major, minor.value))
    try:
        yield name
    finally:
        library.gss_release_name(byref(minor), byref(name))


@contextmanager
def _asker(library: ctypes.CDLL, place: str) -> Iterator[c_void_p]:
    """Who asks at a place: whose key of a keytab is named, or else whomever the library finds.

    It could find him by itself later on, but would not tell then why there is nobody.
    """
    principal = os.environ.get(_PRINCIPAL) if os.environ.get(_KEYTAB) else None
    with _import_name(library, place, principal, _USER) if principal else nullcontext() as name:
        minor, asker = c_uint32(), c_void_p()
        ways = _Oids(1, ctypes.pointer(_Oid(len(_KRB5), _KRB5)))
        major = library.gss_acquire_cred(
            byref(minor), name, _FOR_EVER, byref(ways), _TO_ASK, byref(asker), None, None
        )  # fmt: skip
    if major & _FAILED:
        raise _no_ticket_error(place, _messages(library, major, minor.value))
    try:
        yield asker
    finally:
        library.gss_release_cred(byref(minor), byref(asker))


def _messages(library: ctypes.CDLL, major: int, minor: int) -> str:
    """What the library says of a failure: what Kerberos told, if anything, else what kind of failure it is."""
    told = _message(library, minor, _OF_MECHANISM) if minor else ""
    return told if told and not told.startswith("Unknown") else _message(library, major, _OF_GSS)


def _message(library: ctypes.CDLL, code: int, kind: int) -> str:
    minor, more, text = c_uint32(), c_uint32(), _Buffer()
    library.gss_display_status(byref(minor), code, kind, None, byref(more), byref(text))
    try:
        return text.content().decode(errors="replace")
    finally:
        library.gss_release_buffer(byref(minor), byref(text))


def _no_ticket_error(place: str, reason: str) -> NoTicket:
    keytab = (os.environ.get(_KEYTAB) or os.environ.get(_KEYTAB_OF_THE_LIBRARY) or "").removeprefix("FILE:")
    if keytab and not os.access(keytab, os.R_OK):
        reason, helps = f"the keytab {keytab} cannot be read", "name a file that this user may read"
    else:
        helps = next((remedy for pattern, remedy in _REMEDIES.items() if re.search(pattern, reason)), _LOG_IN)
    return NoTicket(f"{place} want a ticket of Kerberos, and there is none ({reason})", helps)
