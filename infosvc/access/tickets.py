"""Believes tickets of Kerberos (SPNEGO, RFC 4559) by the service's own keytab, by the library that curl uses, too.

What shows tickets is hadoop.rest.spnego, which says why the library is called directly. A ticket is believed in one
step, of which nothing is kept but what the library itself keeps: that this ticket was shown (its replay cache).
"""

from __future__ import annotations

import base64
import ctypes
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from infosvc.access.roles import USER_OF_FIRST_ADMIN
from infosvc.wire.errors import Forbidden, InvalidInput, TooLarge, Unauthorized
from infosvc.wire.tasks import USER_NAME

LIBRARY = "libgssapi_krb5.so.2"
LARGEST = 64 << 10  # bytes of what is shown
SCHEME = "Negotiate"
_FIELD = "Authorization"
_SPNEGO = b"\x2b\x06\x01\x05\x05\x02"  # 1.3.6.1.5.5.2
_KRB5 = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"  # 1.2.840.113554.1.2.2
_HOST_BASED = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04"  # GSS_C_NT_HOSTBASED_SERVICE; without @host it is any host's
_SERVICE = b"HTTP"
_FOR_EVER, _TO_ACCEPT = 0xFFFFFFFF, 2
_FAILED, _CONTINUE = 0xFFFF0000, 1
_OF_GSS, _OF_MECHANISM = 1, 2
_LOG_IN = "run `kinit` and `nodewise login`, or log in with a token"


class WantsTicket(Unauthorized):
    """The call shows no ticket of Kerberos, or none that is good."""

    def __init__(self, message: str, remedy: str = _LOG_IN) -> None:
        super().__init__(message, _FIELD, remedy)


class Shown(NamedTuple):
    """Whose ticket it was, for how many seconds it is still good, and what proves the service to its holder."""

    user_name: str
    seconds: float
    answer: bytes


class _Buffer(Structure):
    _fields_ = [("length", c_size_t), ("value", c_void_p)]

    def content(self) -> bytes:
        return ctypes.string_at(self.value, self.length) if self.value else b""


class _Oid(Structure):
    _fields_ = [("length", c_uint32), ("elements", c_char_p)]


class _Oids(Structure):
    _fields_ = [("count", c_size_t), ("elements", POINTER(_Oid))]


class _Pair(Structure):
    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class _Pairs(Structure):
    _fields_ = [("count", c_uint32), ("elements", POINTER(_Pair))]


class Acceptor:
    """Believes tickets for HTTP at any host of which a keytab has the key. Any thread may ask it."""

    def __init__(self, keytab: str | Path) -> None:
        """InvalidInput when the keytab cannot be used, or this machine has no Kerberos."""
        _check_file(Path(keytab))
        self._library = _load()
        self._key = self._acquire(keytab)

    def accept(self, token: bytes) -> Shown:
        """Whose ticket it is; WantsTicket when it is not good, Forbidden when it is not that of a user here."""
        library, minor = self._library, c_uint32()
        context, answer, seconds = c_void_p(), _Buffer(), c_uint32()
        given, _held = _buffer(token)
        major = library.gss_accept_sec_context(
            byref(minor), byref(context), self._key, byref(given), None, None, None, byref(answer), None,
            byref(seconds), None,
        )  # fmt: skip
        try:
            if major & _FAILED:
                raise WantsTicket(f"the ticket is refused ({_messages(library, major, minor.value)})")
            if major & _CONTINUE:
                raise WantsTicket("what is shown is no ticket of Kerberos, or takes more than one step")
            principal, service = self._names(context)
            return Shown(find_user(principal, service), seconds.value, answer.content())
        finally:
            library.gss_release_buffer(byref(minor), byref(answer))
            library.gss_delete_sec_context(byref(minor), byref(context), None)

    def _names(self, context: c_void_p) -> tuple[str, str]:
        """Who shows a ticket and for which service it is, as principals."""
        minor, source, target = c_uint32(), c_void_p(), c_void_p()
        major = self._library.gss_inquire_context(
            byref(minor), context, byref(source), byref(target), None, None, None, None, None
        )  # fmt: skip
        try:
            if major & _FAILED:
                raise WantsTicket(f"the ticket is refused ({_messages(self._library, major, minor.value)})")
            return self._text(source), self._text(target)
        finally:
            for name in (source, target):
                self._library.gss_release_name(byref(minor), byref(name))

    def _text(self, name: c_void_p) -> str:
        minor, text = c_uint32(), _Buffer()
        self._library.gss_display_name(byref(minor), name, byref(text), None)
        try:
            return text.content().decode(errors="replace")
        finally:
            self._library.gss_release_buffer(byref(minor), byref(text))

    def _acquire(self, keytab: str | Path) -> c_void_p:
        """The right to believe tickets, which reads the keytab anew each time: its keys may change."""
        library, minor, key = self._library, c_uint32(), c_void_p()
        place = _Pair(b"keytab", b"FILE:" + os.fsencode(Path(keytab).absolute()))
        # Kerberos alone, in SPNEGO or bare: other mechanisms that this machine may have are believed nothing.
        both = (_Oid * 2)(_Oid(len(_SPNEGO), _SPNEGO), _Oid(len(_KRB5), _KRB5))
        with _import_name(library) as name:
            major = library.gss_acquire_cred_from(
                byref(minor), name, _FOR_EVER, byref(_Oids(2, both)), _TO_ACCEPT,
                byref(_Pairs(1, ctypes.pointer(place))), byref(key), None, None,
            )  # fmt: skip
        inner = _Oids(1, ctypes.pointer(_Oid(len(_KRB5), _KRB5)))
        if not major & _FAILED:
            major = library.gss_set_neg_mechs(byref(minor), key, byref(inner))
        if major & _FAILED:
            raise _keytab_error(keytab, _messages(library, major, minor.value))
        return key


def open_acceptor(keytab: str | None) -> Acceptor | None:
    """What believes tickets by a keytab, None without one; InvalidInput when it cannot be used."""
    return Acceptor(keytab) if keytab else None


def check_keytab(file: Path | None) -> str | None:
    """The name of a keytab by which tickets can be believed, None without one; InvalidInput for any other file."""
    if file is None:
        return None
    Acceptor(file)
    return str(file.absolute())


def read_token(header: str) -> bytes:
    """What an Authorization header shows; WantsTicket when that is nothing of SPNEGO, TooLarge above 64 KiB."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() != SCHEME.lower() or not text.strip():
        raise WantsTicket("this call wants a ticket of Kerberos, and shows none")
    try:
        token = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        raise WantsTicket("what is shown is no Base64") from None
    if len(token) > LARGEST:
        raise TooLarge(f"what is shown has more than {LARGEST} bytes", _FIELD, remedy="log in with a token")
    return token


def find_user(principal: str, service: str) -> str:
    """The user that a principal is here: its short name in the service's own realm; Forbidden for any other.

    >>> find_user("alice@EXAMPLE.ORG", "HTTP/master@EXAMPLE.ORG")
    'alice'
    """
    name, _, realm = principal.rpartition("@")
    own = service.rpartition("@")[2]
    if realm != own:
        raise Forbidden(
            f"{_short(principal)} is of another realm than this service, which is of {own}",
            _FIELD,
            remedy=f"get a ticket of {own} with `kinit`, or log in with a token",
        )
    if not USER_NAME.fullmatch(name) or name == USER_OF_FIRST_ADMIN:
        raise Forbidden(
            f"{_short(principal)} cannot be a user here: names have at most 32 small letters, digits and _.-, and "
            f"{USER_OF_FIRST_ADMIN} is the first admin",
            _FIELD,
            remedy="log in with a token",
        )
    return name


def _short(principal: str) -> str:
    return principal if len(principal) <= 200 else f"{principal[:200]}..."


def _check_file(keytab: Path) -> None:
    try:
        mode = keytab.stat().st_mode
        keytab.open("rb").close()
    except OSError as error:
        raise _keytab_error(keytab, error.strerror or str(error)) from error
    if mode & stat.S_IROTH:
        raise InvalidInput(
            f"the keytab {keytab} can be read by everybody", "spnego_keytab", remedy=f"chmod o= {keytab}"
        )


def _keytab_error(keytab: str | Path, reason: str) -> InvalidInput:
    return InvalidInput(
        f"the keytab {keytab} cannot be used ({reason})",
        "spnego_keytab",
        remedy="name a file that this user may read, with the key of HTTP/HOST that kadmin's `ktadd` writes, or leave "
        "--spnego-keytab out",
    )


@lru_cache(maxsize=1)
def _load() -> ctypes.CDLL:
    """The library; InvalidInput when this machine has none."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise InvalidInput(
            f"tickets of Kerberos want {LIBRARY}, which is not there ({error})",
            "spnego_keytab",
            remedy="`apt-get install libgssapi-krb5-2`",
        ) from None
    oid, oids, buffer, status, place = (
        POINTER(_Oid), POINTER(_Oids), POINTER(_Buffer), POINTER(c_uint32), POINTER(c_void_p)
    )  # fmt: skip
    taken = {
        "import_name": [status, buffer, oid, place],
        "acquire_cred_from": [status, c_void_p, c_uint32, oids, c_int, POINTER(_Pairs), place, c_void_p, c_void_p],
        "set_neg_mechs": [status, c_void_p, oids],
        "accept_sec_context": [
            status, place, c_void_p, buffer, c_void_p, c_void_p, c_void_p, buffer, c_void_p, status, c_void_p
        ],
        "inquire_context": [status, c_void_p, place, place, *[c_void_p] * 5],
        "display_name": [status, c_void_p, buffer, c_void_p],
        "display_status": [status, c_uint32, c_int, oid, status, buffer],
        "release_name": [status, place],
        "release_buffer": [status, buffer],
        "delete_sec_context": [status, place, buffer],
    }  # fmt: skip
    for name, types in taken.items():
        function = getattr(library, f"gss_{name}")
        function.argtypes, function.restype = types, c_uint32
    return library


@contextmanager
def _import_name(library: ctypes.CDLL) -> Iterator[c_void_p]:
    """The service as the library has it, at any host."""
    minor, name = c_uint32(), c_void_p()
    given, _held = _buffer(_SERVICE)
    library.gss_import_name(byref(minor), byref(given), byref(_Oid(len(_HOST_BASED), _HOST_BASED)), byref(name))
    try:
        yield name
    finally:
        library.gss_release_name(byref(minor), byref(name))


def _buffer(content: bytes) -> tuple[_Buffer, object]:
    """Bytes as the library takes them, and what must be held meanwhile."""
    held = ctypes.create_string_buffer(content, len(content))
    return _Buffer(len(content), ctypes.addressof(held)), held  # a cast would be a cycle, which stays for a while


def _messages(library: ctypes.CDLL, major: int, minor: int) -> str:
    """What the library says of a failure: what Kerberos told, if anything, else what kind of failure it is."""
    told = _message(library, minor, _OF_MECHANISM) if minor else ""
    return told if told and not told.startswith(("Unknown", "Success")) else _message(library, major, _OF_GSS)


def _message(library: ctypes.CDLL, code: int, kind: int) -> str:
    minor, more, text = c_uint32(), c_uint32(), _Buffer()
    library.gss_display_status(byref(minor), code, kind, None, byref(more), byref(text))
    try:
        return text.content().decode(errors="replace")
    finally:
        library.gss_release_buffer(byref(minor), byref(text))
