"""The figures with what they must reach, and those that follow from others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.asked import Asked, Readings, Values
from bench.info.figures import Figure

PLAIN, KERBEROS, PRIVACY = "plain", "kerberos", "privacy"
WAYS = (PLAIN, KERBEROS, PRIVACY)
MOST_TIMES, MOST_SILENT, MOST_PAUSED = 1.10, 5.0, 20.0
JOB, LISTING, SERVICE, MASTERS, VIEWS = "job", "listing", "service", "masters", "views"
TOLD = {PLAIN: "without Kerberos", KERBEROS: "with Kerberos", PRIVACY: "with Kerberos and privacy"}


def _ask(
    piece: str, key: str, text: str, unit: str = "s", *, by: Callable[[Values], float] | None = None, most: float | None
) -> Asked:
    figure = Figure(key, piece, text, unit, most=most)
    return Asked(figure, by) if by else Asked(figure)


def key_of(piece: str, way: str, phase: str = "whole") -> str:
    """Under what the seconds of a way are kept."""
    return f"{piece}_{way}_{phase}"


def _compared(piece: str, phase: str, text: str, most: float | None) -> list[Asked]:
    """The seconds of each way, and how many times those without Kerberos they are."""
    seconds = [_ask(piece, key_of(piece, way, phase), f"{text}, {TOLD[way]}", most=None) for way in WAYS]
    times = [
        _ask(piece, f"{key_of(piece, way, phase)}_times", f"{text}, {TOLD[way]}: times without", "x", most=most)
        for way in (KERBEROS, PRIVACY)
    ]
    return [*seconds, *times]


def _ask_silences(piece: str, callers: Mapping[str, str], most: float | None) -> list[Asked]:
    """The longest silence of each caller, whose text says what it waited for, when the active service fails."""
    return [
        _ask(
            piece,
            key_of(piece, fault, caller),
            f"the active service of a pair is {fault}: longest time {text}",
            by=max,
            most=most,
        )
        for fault in ("killed", "frozen")
        for caller, text in callers.items()
    ]


ASKED = (
    *_compared(JOB, "whole", "classify job, its command from beginning to end", MOST_TIMES),
    *_compared(LISTING, "whole", "listing of all files, the program from beginning to end", MOST_TIMES),
    *_compared(LISTING, "listed", "the listing alone", None),
    *_ask_silences(
        SERVICE,
        {"read": "in which no read was answered", "write": "in which no write was answered"},
        MOST_SILENT,
    ),
    _ask(MASTERS, key_of(MASTERS, "none", "pause"), "job without a fault: longest time without a new row", most=None),
    *(
        _ask(
            MASTERS,
            key_of(MASTERS, kind, "pause"),
            f"the active {title} is killed: longest time in which a job has no new row",
            by=max,
            most=MOST_PAUSED,
        )
        for kind, title in (("namenode", "NameNode"), ("resourcemanager", "ResourceManager"))
    ),
    *_ask_silences(
        VIEWS,
        {
            "agent": "in which no new value of an agent was seen",
            "plugin": "in which YARN's plug-in was not answered",
        },
        None,
    ),
)


def derive(readings: Readings) -> dict[str, Values]:
    """With the ratios of each round."""
    found: dict[str, Values] = dict(readings)
    for piece, phase in ((JOB, "whole"), (LISTING, "whole"), (LISTING, "listed")):
        plain = readings.get(key_of(piece, PLAIN, phase), ())
        for way in (KERBEROS, PRIVACY):
            key = key_of(piece, way, phase)
            if plain and (secure := readings.get(key)):
                found[f"{key}_times"] = [one / other for one, other in zip(secure, plain, strict=True)]
    return found
