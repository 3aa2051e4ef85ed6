"""Reads what members say, of which hundreds come a second: what is right at once, and the rest field by field."""

from __future__ import annotations

from typing import Any

import msgspec

from learning.lead.calls import MOST, MOST_CUT_OFF, Say
from locality.training.regrouping import NO_STATE


def read_said(body: bytes) -> Say:
    """The same as `Say.from_json` of the body, only sooner; ValueError when it is no JSON or something else.

    It refuses NaN and halves of characters, which Python takes for JSON: members do not write them.
    """
    told = msgspec.json.decode(body)
    said = _convert(told)
    if said is not None and _has_no_stranger(told, said) and _is_in_range(said):
        return said
    return Say.from_json(told)  # which knows what is wrong


def _convert(told: Any) -> Say | None:
    """None when a field is missing, or has another type."""
    try:
        return msgspec.convert(told, Say)
    except msgspec.ValidationError:
        return None


def _has_no_stranger(told: dict[str, Any], said: Say) -> bool:
    """Whether it has only fields that are known: the conversion passes over others."""
    done: dict[str, Any] = told.get("done", {})
    share: dict[str, Any] = done.get("share", {})
    is_known = told.keys() <= vars(said).keys() and done.keys() <= vars(said.done).keys()
    return is_known and share.keys() <= vars(said.done.share).keys()


def _is_in_range(said: Say) -> bool:
    done, share = said.done, said.done.share
    numbers = (
        *(said.number, said.steps - NO_STATE, said.checkpoint, said.call, said.attempt, said.known),
        *(done.steps, done.steps_in_all, done.samples, done.reads, done.local_reads),
        *(done.compute_seconds, done.wait_seconds, done.longest_step_seconds),
        *(share.samples, share.batch, share.since, share.fixed_seconds, share.sample_seconds),
    )
    are_names = all((said.process, *said.cut_off)) and len(said.cut_off) <= MOST_CUT_OFF
    return are_names and min(numbers) >= 0 and max(numbers) <= MOST
