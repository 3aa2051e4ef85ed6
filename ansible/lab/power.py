"""One machine: made, switched on and off, limited, and spoken to."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

from lab import keys
from lab.commands import LabError, call, docker
from lab.inventory import Machine, machine
from lab.places import LXCFS, MIRROR, NAME

# lxcfs answers these from the limits and the use of the machine that reads them.
OWN_PROC = ("stat", "cpuinfo", "meminfo", "loadavg", "uptime")
UNITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}


def create(each: Machine, image: str) -> None:
    """A machine with this disk, switched off."""
    mounts = [f"{MIRROR}:/srv/debian:ro", f"{keys.identity(each)}:/lab:ro"]
    mounts += [f"{LXCFS}/proc/{name}:/proc/{name}:ro" for name in OWN_PROC]
    docker(
        *("create", "--name", each.name, "--hostname", each.name, "--network", NAME, "--ip", each.address),
        *("--cap-add", "SYS_ADMIN", "--cap-add", "NET_ADMIN"),  # systemd mounts, and the lab sets the card's rate
        *("--cap-add", "DAC_READ_SEARCH"),  # the broker of boxes opens its callers' folders
        *("--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"),
        *("--cgroupns", "private", "--tmpfs", "/run:exec", "--tmpfs", "/run/lock"),
        *("--device", "/dev/fuse"),  # environments are mounted
        *("--device-cgroup-rule", "b 7:* rwm", "--device-cgroup-rule", "c 10:237 rwm"),  # loop devices, as others have
        *("--stop-signal", "SIGRTMIN+3"),  # systemd's word for an orderly end
        *("--memory", each.memory, "--memory-swap", each.memory),
        *(word for mount in mounts for word in ("--volume", mount)),
        *("--volume", "/var/lib/docker"),  # of its own: a Docker within cannot store on what Docker without has layered
        image,
    )


def states() -> dict[str, str]:
    """Every machine that exists, and Docker's word for what it does."""
    lines = docker("ps", "--all", "--format", "{{.Names}} {{.State}}").splitlines()
    return dict(line.split() for line in lines)


def apply_limits(each: Machine) -> None:
    """Hold the machine to its processors, memory and sending rate."""
    docker("update", "--cpus", str(each.cpus), "--memory", each.memory, "--memory-swap", each.memory, each.name)
    burst = max(64 * 1024, bits(each.rate) // 8 // 100)  # 10 ms; less would slow a fast card down
    tbf = ("tbf", "rate", each.rate, "burst", str(burst), "latency", "50ms")
    docker("exec", each.name, "tc", "qdisc", "replace", "dev", "eth0", "root", *tbf)


def lift_limit(each: Machine) -> None:
    """Let the machine use every processor there is; Docker takes 0 for no change."""
    docker("update", "--cpus", str(os.cpu_count()), each.name)


def bits(rate: str) -> int:
    """Bits per second of a rate as tc writes it, as 100mbit."""
    matched = re.fullmatch(r"(\d+)([kmg]bit)", rate)
    if matched is None:
        raise LabError(f"lab_rate {rate!r} is not a rate: write it as 100mbit")
    return int(matched[1]) * UNITS[matched[2]]


def run(name: str, argv: Sequence[str], timeout: float = 60.0) -> str:
    """What a program printed on the machine, run by the operator over ssh; put sudo before it for more.

    LabError with what it complained of when it failed.
    """
    machine(name)
    return call(["ssh", "-F", keys.CONFIG, name, "--", shlex.join(argv)], timeout)


def kill(name: str) -> None:
    """Pull the power cord."""
    docker("kill", machine(name).name)


def start(name: str) -> None:
    """Switch a machine on again and wait until it answers."""
    each = machine(name)
    docker("start", each.name)
    wait_until_up(each)
    apply_limits(each)


def wait_until_up(each: Machine) -> None:
    """Until systemd has started all it wants to and sshd lets the operator in."""
    docker("exec", each.name, "sh", "-c", "until [ -S /run/systemd/private ]; do sleep 0.1; done", timeout=60)
    docker("exec", each.name, "sh", "-c", "systemctl is-system-running --wait || true", timeout=180)
    # systemd may say so before sshd listens, when it was just killed with all else.
    call(["ssh", "-F", keys.CONFIG, "-o", "ConnectionAttempts=60", each.name, "true"], 120)


def limit(name: str, cpus: float) -> None:
    """Give the machine other processors' worth of time, until `lab up` or `lab limits`."""
    docker("update", "--cpus", str(cpus), machine(name).name)


def nodewise(*words: str, timeout: float = 600.0) -> str:
    """What nodewise printed on the master, run by its own user."""
    return run("master", ["sudo", "-u", "nodewise", "nodewise", *words], timeout)
