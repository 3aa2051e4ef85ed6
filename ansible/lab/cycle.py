"""The whole lab up and down."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from lab import daemons, disks, keys, power
from lab.commands import LabError, docker, follow, step
from lab.inventory import Machine, machines, read, remember
from lab.places import ANSIBLE, INVENTORY, PLAYBOOKS, ROOT, SECURE, SPARE, STATE


@contextmanager
def alone() -> Iterator[None]:
    """One change of the lab at a time."""
    STATE.mkdir(mode=0o755, exist_ok=True)
    with (STATE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def up(provision: bool = True, spare: bool = False, inventory: Path = INVENTORY) -> None:
    """All machines up and, unless told otherwise, made a cluster by the playbook; what is so already stays.

    A machine keeps its disk while it is off, a new one starts from a bare disk. Whoever brings up another inventory
    throws the machines of the first away before and after.
    """
    daemons.check_host()
    inventories = [inventory, SPARE] if spare else [inventory]
    follow([ROOT / "scripts" / "setup", "--ansible", "--lab"])
    if provision:
        follow([ROOT / "scripts" / "payload"])
    with alone():
        with step("starting Docker and lxcfs"):
            daemons.up()
        if power_on(read([inventory]), read([inventory, SPARE]), spare):
            disks.remember_provisioned(False)
        if provision:
            for machine in machines():
                power.lift_limit(machine)  # else what is done once would take minutes more
            known = disks.provisioned() and inventories == [INVENTORY]
            disks.remember_provisioned(False)
            if not (known and proven(inventories)):
                playbook(inventories)
            disks.remember_provisioned(inventory == INVENTORY)
        limits()


def power_on(usual: Sequence[Machine], known: Sequence[Machine], spare: bool) -> bool:
    """Switch on what is off; whether one of the usual machines is new."""
    keys.prepare(known)
    bare, states = disks.bare(), power.states()
    wanted = [machine for machine in known if spare or machine in usual or machine.name in states]
    new = [machine for machine in wanted if machine.name not in states]
    off = [machine for machine in wanted if states.get(machine.name) != "running"]
    with step(f"switching on {len(off)} of {len(wanted)} machines, {len(new)} of them new"):
        for machine in new:
            power.create(machine, bare)
        if off:
            docker("start", *(machine.name for machine in off))
        remember(wanted)
        with ThreadPoolExecutor() as pool:
            list(pool.map(power.wait_until_up, off))
    return any(machine in usual for machine in new)


def proven(inventories: Sequence[Path]) -> bool:
    """Whether machines that were made by just these sources prove that they work; somebody may have changed them."""
    try:
        playbook(inventories, "--tags=cluster")
    except LabError as error:
        print(f"Lab: {error}: all of the playbook runs again", flush=True)
        return False
    return True


def playbook(inventories: Sequence[Path], *more: str) -> None:
    """Make the machines a cluster."""
    words = [word for inventory in inventories for word in ("-i", inventory)]
    config = PLAYBOOKS / "ansible.cfg"
    argv = [ANSIBLE / "ansible-playbook", *words, PLAYBOOKS / "site.yml", *more]
    follow(argv, {**os.environ, "ANSIBLE_CONFIG": str(config)})


def limits() -> None:
    """Hold every machine to what the inventory says now."""
    there = {machine.name for machine in machines()}
    now = [machine for machine in read([INVENTORY, SPARE, SECURE]) if machine.name in there]
    with step("limiting processors, memory and network"):
        running = power.states()
        for machine in now:
            if running.get(machine.name) == "running":
                power.apply_limits(machine)
        remember(now)


def down(forget: bool = False, purge: bool = False) -> None:
    """Switch all off and end all that runs; `forget` the machines with their disks, `purge` keys and packages too."""
    with alone(), step("ending all machines, Docker and lxcfs"):
        daemons.check_host()
        if forget or purge:
            disks.remember_provisioned(False)
        daemons.down(forget or purge)
        if purge:
            shutil.rmtree(STATE)
