"""What goes wrong with environments."""

from __future__ import annotations


class EnvError(Exception):
    """An environment cannot be made, found or used; `message` says why, `remedy` what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy
