"""How people name an environment: `torch@1.13`, or `torch` for the newest version."""

from __future__ import annotations

import re
from typing import NamedTuple

from environments.errors import EnvError

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


class Reference(NamedTuple):
    """A name, and a version or None for the newest."""

    name: str
    version: str | None = None

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}@{self.version}"

    @classmethod
    def parse(cls, text: str) -> Reference:
        """EnvError unless names are of small letters, digits and `._-`, and versions of letters, digits and `._+-`.

        >>> Reference.parse("torch@1.13"), str(Reference.parse("torch"))
        (Reference(name='torch', version='1.13'), 'torch')
        """
        name, mark, version = text.partition("@")
        if not _NAME.fullmatch(name) or (mark and not _VERSION.fullmatch(version)):
            raise EnvError(f"{text!r} names no environment", remedy="write NAME or NAME@VERSION, such as torch@1.13")
        return cls(name, version if mark else None)


def version_key(version: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts versions as people count: numbers by size, however long they are, and after words.

    >>> sorted(["1.10", "1.9", "1.9rc1", "2"], key=version_key)
    ['1.9rc1', '1.9', '1.10', '2']
    """
    pieces = re.findall(r"[0-9]+|[A-Za-z]+", version)
    return (*map(_piece_key, pieces), (0, 0, ""))


def _piece_key(piece: str) -> tuple[int, int, str]:
    """Of numbers by their digits: Python makes no number of more than 4,300 of them."""
    if not piece.isdecimal():
        return -1, 0, piece.lower()
    digits = piece.lstrip("0")
    return 1, len(digits), digits
