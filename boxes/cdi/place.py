"""Where in a CDI file something stands, so that a refusal names it."""

from __future__ import annotations

from dataclasses import dataclass


class CdiError(Exception):
    """What cannot be used of CDI files; `message` says why, `remedy` what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy


@dataclass(frozen=True)
class Place:
    """A file, and the way from its root to a field.

    >>> Place("/etc/cdi/v.json").at("devices").item(0).at("name").text
    '/etc/cdi/v.json: devices[0].name'
    """

    file: str
    path: str = ""

    @property
    def text(self) -> str:
        """As messages name it."""
        return f"{self.file}: {self.path}" if self.path else self.file

    def at(self, name: str) -> Place:
        """A field of what stands here."""
        return Place(self.file, f"{self.path}.{name}" if self.path else name)

    def item(self, number: int) -> Place:
        """An item of the list that stands here, counted from 0."""
        return Place(self.file, f"{self.path}[{number}]")

    def refuse(self, why: str, remedy: str = "correct the file") -> CdiError:
        """What is to be raised for it."""
        return CdiError(f"{self.text} {why}", remedy)
