"""What can go wrong while a program trains, as sentences."""

from __future__ import annotations


class LearningError(Exception):
    """The run cannot go on; `message` says why and names the value, `remedy` what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy
