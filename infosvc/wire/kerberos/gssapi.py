"""Calls the library of Kerberos that kinit and curl use, too: its structures, its functions, and what it says.

Python's packages for it (gssapi, which requests-gssapi needs, too) come as source only: they want a compiler and the
headers of Kerberos on every machine. What is needed of the library are a few calls, so they are made directly.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from functools import lru_cache

LIBRARY = "libgssapi_krb5.so.2"
HOW_TO_GET_IT = "`apt-get install libgssapi-krb5-2`"
FOR_EVER = 0xFFFFFFFF
"""Seconds."""
TO_ASK, TO_ACCEPT = 1, 2
"""What rights are for."""
CONTINUE = 1
"""The bit of a status that tells that there is more to do."""
_FAILED = 0xFFFF0000
"""The bits of a status that tell of a failure."""
_OF_GSS, _OF_MECHANISM = 1, 2


class Buffer(Structure):
    """Bytes of the library's, or of ours where `make_buffer` made it."""

    _fields_ = [("length", c_size_t), ("value", c_void_p)]
    held: object

    def content(self) -> bytes:
        """A copy of the bytes."""
        return ctypes.string_at(self.value, self.length) if self.value else b""


class Oid(Structure):
    """The name of a mechanism, or of a kind of name."""

    _fields_ = [("length", c_uint32), ("elements", c_char_p)]


class Oids(Structure):
    """Several of them."""

    _fields_ = [("count", c_size_t), ("elements", POINTER(Oid))]


class Pair(Structure):
    """Where rights are taken from: a kind of place and the place."""

    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class Pairs(Structure):
    """Several of them."""

    _fields_ = [("count", c_uint32), ("elements", POINTER(Pair))]


SPNEGO = Oid(6, b"\x2b\x06\x01\x05\x05\x02")  # 1.3.6.1.5.5.2
KRB5 = Oid(9, b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02")  # 1.2.840.113554.1.2.2
HOST_BASED = Oid(10, b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04")  # HTTP@host; without @host it is any host's
USER = Oid(10, b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x01")  # alice@REALM


class Refused(Exception):
    """The library has not done what it was to do: what Kerberos told, if anything, else what kind of failure it is."""


@lru_cache(maxsize=1)
def load() -> ctypes.CDLL:
    """The library; OSError when this machine has none."""
    library = ctypes.CDLL(LIBRARY)
    oid, oids, buffer, status, place = (
        POINTER(Oid), POINTER(Oids), POINTER(Buffer), POINTER(c_uint32), POINTER(c_void_p)
    )  # fmt: skip
    taken = {
        "import_name": [status, buffer, oid, place],
        "acquire_cred": [status, c_void_p, c_uint32, oids, c_int, place, c_void_p, c_void_p],
        "acquire_cred_from": [status, c_void_p, c_uint32, oids, c_int, POINTER(Pairs), place, c_void_p, c_void_p],
        "set_neg_mechs": [status, c_void_p, oids],
        "init_sec_context": [
            status, c_void_p, place, c_void_p, oid, c_uint32, c_uint32, c_void_p, buffer, c_void_p, buffer, c_void_p,
            c_void_p,
        ],
        "accept_sec_context": [
            status, place, c_void_p, buffer, c_void_p, c_void_p, c_void_p, buffer, c_void_p, status, c_void_p
        ],
        "inquire_context": [status, c_void_p, place, place, *[c_void_p] * 5],
        "display_name": [status, c_void_p, buffer, c_void_p],
        "display_status": [status, c_uint32, c_int, oid, status, buffer],
        "release_name": [status, place],
        "release_cred": [status, place],
        "release_buffer": [status, buffer],
        "delete_sec_context": [status, place, buffer],
    }  # fmt: skip
    for name, types in taken.items():
        function = getattr(library, f"gss_{name}")
        function.argtypes, function.restype = types, c_uint32
    return library


def make_oids(*kinds: Oid) -> Oids:
    """Several names of mechanisms."""
    return Oids(len(kinds), (Oid * len(kinds))(*kinds))


def make_buffer(content: bytes) -> Buffer:
    """Bytes as the library takes them."""
    held = ctypes.create_string_buffer(content, len(content))
    made = Buffer(len(content), ctypes.addressof(held))  # a cast would be a cycle, which stays for a while
    made.held = held
    return made


@contextmanager
def open_buffer(library: ctypes.CDLL) -> Iterator[Buffer]:
    """What the library fills, until the block ends."""
    minor, made = c_uint32(), Buffer()
    try:
        yield made
    finally:
        library.gss_release_buffer(byref(minor), byref(made))


@contextmanager
def open_name(library: ctypes.CDLL, text: str, kind: Oid) -> Iterator[c_void_p]:
    """A principal as the library has it, until the block ends; Refused when the library cannot read it."""
    minor, name = c_uint32(), c_void_p()
    major = library.gss_import_name(byref(minor), byref(make_buffer(text.encode())), byref(kind), byref(name))
    check(library, major, minor)
    try:
        yield name
    finally:
        library.gss_release_name(byref(minor), byref(name))


def check(library: ctypes.CDLL, major: int, minor: c_uint32) -> None:
    """Refused when a call's status tells of a failure."""
    if major & _FAILED:
        told = _message(library, minor.value, _OF_MECHANISM) if minor.value else ""
        if not told or told.startswith(("Unknown", "Success")):
            told = _message(library, major, _OF_GSS)
        raise Refused(told)


def _message(library: ctypes.CDLL, code: int, kind: int) -> str:
    minor, more = c_uint32(), c_uint32()
    with open_buffer(library) as text:
        library.gss_display_status(byref(minor), code, kind, None, byref(more), byref(text))
        return text.content().decode(errors="replace")
