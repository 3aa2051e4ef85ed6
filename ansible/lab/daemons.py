"""What runs on this machine for the lab: a Docker of its own, and lxcfs, which gives each machine its own /proc."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from lab.commands import LabError, call, docker
from lab.places import CGROUPS, DISKS, LXCFS, NAME, OWNER, ROOT, RUNTIME, SOCKET, SUBNET

PATIENCE_SECONDS = 60.0
CPU_SHARES = 16 * 1024
"""What the machines weigh together, as sixteen busy programs do; by default they weigh as much as one."""
CONTAINERD_PID = RUNTIME / "exec" / "containerd" / "containerd.pid"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def up() -> None:
    """Start what does not run; what a former lab that crashed has left is not an obstacle."""
    check_host()
    RUNTIME.mkdir(mode=0o700, exist_ok=True)
    OWNER.write_text(str(ROOT))
    DISKS.mkdir(parents=True, exist_ok=True)
    if not answers():
        stop("dockerd")
        stop("lxcfs")
        wait_for(lambda: not containerd_lives(), "dockerd", alive=False)
        CONTAINERD_PID.unlink(missing_ok=True)
        unmount()
        LXCFS.mkdir(exist_ok=True)
        start(
            "lxcfs",
            ["lxcfs", "--foreground", "--enable-cfs", "--enable-loadavg", "--pidfile", RUNTIME / "lxcfs.lock", LXCFS],
        )
        wait_for((LXCFS / "proc" / "stat").exists, "lxcfs")
        config = RUNTIME / "dockerd.json"
        config.write_text(json.dumps(settings(), indent=1))
        start("dockerd", ["dockerd", "--config-file", config])
        wait_for(answers, "dockerd")
    weigh()
    if NAME not in docker("network", "ls", "--format", "{{.Name}}").split():
        bridge = f"com.docker.network.bridge.name={NAME}"
        docker("network", "create", "--subnet", SUBNET, "--opt", bridge, NAME)


def weigh() -> None:
    """Let the machines have their part of this machine's CPUs also beside other work."""
    group = CGROUPS / "cpu" / NAME
    group.mkdir(exist_ok=True)
    (group / "cpu.shares").write_text(str(CPU_SHARES))


def down(forget: bool) -> None:
    """End both, and take the bridge, the mounts and the control groups away; with `forget` the machines' disks too."""
    if not RUNTIME.exists() and not DISKS.exists():
        return
    up()  # only a Docker that runs can end what one that crashed has left running
    if there := docker("ps", "--all", "--quiet").split():
        docker(*(("rm", "--force", "--volumes") if forget else ("stop", "--time", "20")), *there, timeout=300)
    if forget:
        docker("network", "rm", NAME)
    for name in ("dockerd", "lxcfs"):
        stop(name)
    unmount()
    if Path(f"/sys/class/net/{NAME}").exists():
        call(["ip", "link", "delete", NAME])
    for hierarchy in CGROUPS.iterdir():
        remove_groups(hierarchy / NAME)
    shutil.rmtree(RUNTIME)


def check_host() -> None:
    """LabError unless this machine can carry the lab and carries no other."""
    if os.geteuid() != 0:
        raise LabError("The lab needs root, for its network and its machines: run it by sudo")
    if not (CGROUPS / "systemd" / "cgroup.procs").exists() or not (CGROUPS / "cpu" / "cgroup.procs").exists():
        raise LabError(
            f"The lab needs control groups of version 1, with the hierarchies systemd and cpu under {CGROUPS}; "
            "start this machine with systemd.unified_cgroup_hierarchy=0"
        )
    if OWNER.exists() and (owner := OWNER.read_text()) != str(ROOT):
        raise LabError(f"The lab of another checkout is up: run {owner}/scripts/lab down first")


def settings() -> dict[str, object]:
    """dockerd's settings: nothing of a Docker that this machine may have is touched, nor its firewall or routing.

    Machines reach one another and this machine, and nothing else.
    """
    return {
        "hosts": [f"unix://{SOCKET}"],
        "group": "root",
        "pidfile": str(RUNTIME / "dockerd.lock"),
        "data-root": str(DISKS),
        "exec-root": str(RUNTIME / "exec"),
        "containerd-namespace": NAME,
        "storage-driver": "overlay2",
        "log-driver": "local",
        "cgroup-parent": f"/{NAME}",
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        "bridge": "none",
        "iptables": False,
        "ip-forward": False,
        "ip-masq": False,
        "userland-proxy": False,
    }


def start(name: str, argv: list[str | Path]) -> None:
    """Start a program that outlives this one; its process id and log go under RUNTIME."""
    log = os.open(RUNTIME / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    streams = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate((nothing, log, log))]
    words, env = [str(word) for word in argv], {"PATH": PATH}
    program = shutil.which(name, path=PATH)
    if program is None:
        raise LabError(f"{name} is not installed: run scripts/setup --lab")
    pid = os.posix_spawn(program, words, env, file_actions=streams, setsid=True)
    os.close(log)
    os.close(nothing)
    (RUNTIME / f"{name}.pid").write_text(f"{pid} {birth(pid)}")


def stop(name: str) -> None:
    """End a program that `start` started and wait until it is gone."""
    pid = running(name)
    if pid is None:
        return
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: running(name) is None, name, alive=False)


def running(name: str) -> int | None:
    """The process id of a program that `start` started, unless it has ended."""
    try:
        number, _, born = (RUNTIME / f"{name}.pid").read_text().partition(" ")
        pid = int(number)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        return pid if birth(pid) == born else None  # a number may have come to another program
    except (OSError, ValueError):
        return None


def containerd_lives() -> bool:
    """Whether the containerd that a former dockerd has started, and that dies with it, is still there.

    A new dockerd would take it for its own, even as a zombie.
    """
    try:
        return str(RUNTIME) in Path(f"/proc/{CONTAINERD_PID.read_text()}/cmdline").read_text()
    except OSError:
        return False


def birth(pid: int) -> str:
    """When the process began, in ticks of this machine's clock."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def answers() -> bool:
    """Whether both run and Docker answers."""
    if running("dockerd") is None or running("lxcfs") is None or not os.path.ismount(LXCFS):
        return False
    try:
        docker("version", timeout=10)
    except LabError:
        return False
    return True


def wait_for(condition: Callable[[], bool], name: str, alive: bool = True) -> None:
    """LabError when the condition has not come true in a minute, or the program it needs has ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline or (alive and running(name) is None):
            log = (RUNTIME / f"{name}.log").read_text()
            raise LabError(f"{name} did not {'start' if alive else 'end'}; its last words: {log[-1000:].strip()}")
        time.sleep(0.1)


def unmount() -> None:
    """Take away what lxcfs, Docker and its machines have mounted, should one of them have died before it could."""
    places = [Path(line.split()[1]) for line in Path("/proc/mounts").read_text().splitlines()]
    for place in reversed(places):
        if place.is_relative_to(RUNTIME) or place.is_relative_to(DISKS):
            call(["umount", "--lazy", place])


def remove_groups(group: Path) -> None:
    """Remove a control group with all below it; nothing runs in them any more."""
    for folder, _, _ in os.walk(group, topdown=False):
        Path(folder).rmdir()
