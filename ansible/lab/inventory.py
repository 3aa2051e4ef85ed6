"""The machines that the inventory names, as Ansible itself reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.commands import LabError, call
from lab.places import ANSIBLE, MACHINES


@dataclass(frozen=True)
class Machine:
    """One machine: its name and address, and what it may use."""

    name: str
    address: str
    cpus: float
    rate: str
    memory: str
    group: str


def read(inventories: Sequence[Path]) -> list[Machine]:
    """All machines of these inventories, the master first."""
    words = [word for inventory in inventories for word in ("-i", str(inventory))]
    told = json.loads(call([ANSIBLE / "ansible-inventory", *words, "--list"]))
    values = told["_meta"]["hostvars"]
    return [
        Machine(
            name,
            values[name]["ansible_host"],
            float(values[name]["lab_cpus"]),
            values[name]["lab_rate"],
            values[name]["lab_memory"],
            group,
        )
        for group in ("master", "workers")
        for name in sorted(told[group]["hosts"])
    ]


def remember(machines: Sequence[Machine]) -> None:
    """Let `machines` of other processes know what runs."""
    MACHINES.write_text(json.dumps([asdict(machine) for machine in machines], indent=1))


def machines() -> list[Machine]:
    """The machines of the lab that is up, the master first."""
    try:
        return [Machine(**entry) for entry in json.loads(MACHINES.read_text())]
    except FileNotFoundError as error:
        raise LabError("The lab is not up: run scripts/lab up") from error


def machine(name: str) -> Machine:
    """The machine of that name."""
    for each in machines():
        if each.name == name:
            return each
    raise LabError(f"The lab has no machine {name}; it has {', '.join(each.name for each in machines())}")
