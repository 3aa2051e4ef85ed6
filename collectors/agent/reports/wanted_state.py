"""Whether a wanted state can be believed: its names become paths, its numbers become times."""

from __future__ import annotations

from infosvc.wire.errors import Conflict, InvalidInput
from infosvc.wire.records import Slot, Wanted, check_name


def check_wanted(wanted: Wanted, node_name: str) -> Wanted:
    """The wanted state itself; Conflict when it is another node's, InvalidInput tells what is wrong with a slot."""
    if wanted.node_name != node_name:
        raise Conflict(f"this is the agent of {node_name}, not of {wanted.node_name}", "node_name")
    for slot in wanted.slots:
        _check_slot(slot)
    return wanted


def _check_slot(slot: Slot) -> None:
    for name in (slot.data_name, *slot.emits, *slot.inputs):
        if not isinstance(name, str):
            raise InvalidInput(f"{name!r} is not a data name", "data_name", remedy="give text")
        check_name(name)
    if not isinstance(slot.cmd, str):
        raise InvalidInput(f"cmd of {slot.data_name} is {slot.cmd!r}", "cmd", remedy="give text")
    if type(slot.epoch) is not int:
        raise InvalidInput(f"epoch of {slot.data_name} is {slot.epoch!r}", "epoch", remedy="give a whole number")
    for field in ("interval", "timeout"):
        seconds = getattr(slot, field)
        if not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
            raise InvalidInput(f"{field} of {slot.data_name} is {seconds!r}", field, remedy="give seconds above 0")
