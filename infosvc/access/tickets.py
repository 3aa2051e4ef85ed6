"""Believes tickets of Kerberos (SPNEGO, RFC 4559) by the service's own keytab.

What shows tickets is hadoop.rest.spnego. A ticket is believed in one step, of which nothing is kept but what Kerberos'
library itself keeps: that this ticket was shown (its replay cache).
"""

from __future__ import annotations

import base64
import ctypes
import os
import stat
from ctypes import byref, c_uint32, c_void_p
from pathlib import Path
from typing import NamedTuple

from infosvc.access.roles import USER_OF_FIRST_ADMIN
from infosvc.wire.errors import Forbidden, InvalidInput, TooLarge, Unauthorized
from infosvc.wire.kerberos import gssapi
from infosvc.wire.tasks import USER_NAME

LARGEST = 64 << 10  # bytes of what is shown
SCHEME = "Negotiate"
_FIELD = "Authorization"
_SERVICE = "HTTP"
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


class Acceptor:
    """Believes tickets for HTTP at any host of which a keytab has the key. Any thread may ask it."""

    def __init__(self, keytab: str | Path) -> None:
        """InvalidInput when the keytab cannot be used, or this machine has no Kerberos."""
        _check_file(Path(keytab))
        self._library = _load()
        self._key = self._acquire(keytab)

    def accept(self, token: bytes) -> Shown:
        """Whose ticket it is; WantsTicket when it is not good, Forbidden when it is not that of a user here."""
        library, minor, context, seconds = self._library, c_uint32(), c_void_p(), c_uint32()
        with gssapi.open_buffer(library) as answer:
            major = library.gss_accept_sec_context(
                byref(minor), byref(context), self._key, byref(gssapi.make_buffer(token)), None, None, None,
                byref(answer), None, byref(seconds), None,
            )  # fmt: skip
            try:
                gssapi.check(library, major, minor)
                if major & gssapi.CONTINUE:
                    raise WantsTicket("what is shown is no ticket of Kerberos, or takes more than one step")
                principal, service = self._names(context)
                return Shown(find_user(principal, service), seconds.value, answer.content())
            except gssapi.Refused as error:
                raise WantsTicket(f"the ticket is refused ({error})") from None
            finally:
                library.gss_delete_sec_context(byref(minor), byref(context), None)

    def _names(self, context: c_void_p) -> tuple[str, str]:
        """Who shows a ticket and for which service it is, as principals; gssapi.Refused when nobody does."""
        minor, source, target = c_uint32(), c_void_p(), c_void_p()
        major = self._library.gss_inquire_context(
            byref(minor), context, byref(source), byref(target), None, None, None, None, None
        )  # fmt: skip
        try:
            gssapi.check(self._library, major, minor)
            return self._text(source), self._text(target)
        finally:
            for name in (source, target):
                self._library.gss_release_name(byref(minor), byref(name))

    def _text(self, name: c_void_p) -> str:
        minor = c_uint32()
        with gssapi.open_buffer(self._library) as text:
            self._library.gss_display_name(byref(minor), name, byref(text), None)
            return text.content().decode(errors="replace")

    def _acquire(self, keytab: str | Path) -> c_void_p:
        """The right to believe tickets, which reads the keytab anew each time: its keys may change."""
        library, minor, key = self._library, c_uint32(), c_void_p()
        place = gssapi.Pair(b"keytab", b"FILE:" + os.fsencode(Path(keytab).absolute()))
        places = gssapi.Pairs(1, ctypes.pointer(place))
        # Kerberos alone, in SPNEGO or bare: other mechanisms that this machine may have are believed nothing.
        outer, inner = gssapi.make_oids(gssapi.SPNEGO, gssapi.KRB5), gssapi.make_oids(gssapi.KRB5)
        try:
            with gssapi.open_name(library, _SERVICE, gssapi.HOST_BASED) as name:
                major = library.gss_acquire_cred_from(
                    byref(minor), name, gssapi.FOR_EVER, byref(outer), gssapi.TO_ACCEPT, byref(places), byref(key),
                    None, None,
                )  # fmt: skip
            gssapi.check(library, major, minor)
            gssapi.check(library, library.gss_set_neg_mechs(byref(minor), key, byref(inner)), minor)
        except gssapi.Refused as error:
            raise _keytab_error(keytab, str(error)) from None
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


def _load() -> ctypes.CDLL:
    """The library; InvalidInput when this machine has none."""
    try:
        return gssapi.load()
    except OSError as error:
        raise InvalidInput(
            f"tickets of Kerberos want {gssapi.LIBRARY}, which is not there ({error})",
            "spnego_keytab",
            remedy=gssapi.HOW_TO_GET_IT,
        ) from None
