"""The lab's machines behave as machines of their own, are held to their limits, and leave nothing."""

from __future__ import annotations

import json
import math
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lab
from lab import daemons, keys, power
from lab.commands import call
from lab.places import CGROUPS, DISKS, LXCFS, MIRROR, NAME, RUNTIME

pytestmark = pytest.mark.usefixtures("bare")
NAMES = ("master", "worker1", "worker2", "worker3", "worker4")
GIBIBYTE_KB = 1 << 20
# Spins for four seconds of the clock and says how many seconds of a processor it got.
SPIN = "import time; end = time.monotonic() + 4\nwhile time.monotonic() < end: pass\nprint(time.process_time())"


def switched_on(name: str) -> str:
    """When the machine's systemd began."""
    return lab.run(name, ["systemctl", "show", "--property=UserspaceTimestamp", "--value"])


def memory_total_kb(text: str) -> int:
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("MemTotal:"))


def sending_rate(name: str) -> int:
    """Bits per second that the machine's network card may send."""
    (tbf,) = json.loads(lab.run(name, ["sudo", "tc", "-json", "qdisc", "show", "dev", "eth0"]))
    assert tbf["kind"] == "tbf"
    return int(tbf["options"]["rate"]) * 8


def test_there_are_a_master_and_four_workers() -> None:
    assert tuple(machine.name for machine in lab.machines()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_systemd_runs_and_nothing_has_failed(name: str) -> None:
    assert lab.run(name, ["systemctl", "is-system-running"]).strip() == "running"
    assert lab.run(name, ["cat", "/proc/1/comm"]).strip() == "systemd"


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_is_bare(name: str) -> None:
    found = lab.run(name, ["sh", "-c", "command -v python3 java mariadbd mysqld nodewise hdfs || true"])

    assert found.split() == ["/usr/bin/python3"]
    assert lab.run(name, ["sh", "-c", "ls /opt /etc/hadoop /var/lib/mysql 2>/dev/null || true"]).split() == ["/opt:"]


@pytest.mark.parametrize("name", NAMES)
def test_proc_shows_the_machine_and_not_what_carries_it(name: str) -> None:
    machine = lab.machine(name)
    cpuinfo, meminfo = lab.run(name, ["cat", "/proc/cpuinfo"]), lab.run(name, ["cat", "/proc/meminfo"])
    uptime = float(lab.run(name, ["cat", "/proc/uptime"]).split()[0])

    assert cpuinfo.count("processor\t") == math.ceil(machine.cpus)
    assert f"{memory_total_kb(meminfo) // GIBIBYTE_KB}g" == machine.memory
    assert memory_total_kb(meminfo) != memory_total_kb(Path("/proc/meminfo").read_text())
    assert uptime < float(Path("/proc/uptime").read_text().split()[0])


def test_a_machine_that_shows_another_key_is_refused(tmp_path: Path) -> None:
    first, second = (lab.machine(name) for name in ("worker1", "worker2"))
    wrong = tmp_path / "known_hosts"
    wrong.write_text(keys.known_host(second).replace(second.name, first.name))
    ssh: list[str | Path] = ["ssh", "-F", keys.CONFIG, "-o", f"UserKnownHostsFile={wrong}"]

    with pytest.raises(lab.LabError, match="Host key verification failed"):
        call([*ssh, first.name, "true"])
    with pytest.raises(lab.LabError, match="Host key verification failed"):
        call([*ssh, "worker3", "true"])


def test_every_machine_knows_every_other_by_name() -> None:
    for machine in lab.machines():
        told = lab.run(machine.name, ["getent", "ahostsv4", *NAMES]).splitlines()
        assert {line.split()[0] for line in told} == {each.address for each in lab.machines()}


def test_packages_come_from_the_lab_and_nowhere_else() -> None:
    lab.run("worker3", ["sudo", "apt-get", "update"])
    wanted = ["openjdk-17-jre-headless", "mariadb-server", "stress-ng"]
    told = lab.run("worker3", ["apt-get", "install", "--print-uris", "--yes", "--no-install-recommends", *wanted])
    sources = [line.split()[0] for line in told.splitlines() if line.startswith("'")]

    assert len(sources) > len(wanted)
    assert all(source.startswith("'file:/srv/debian/") for source in sources)


def test_each_gets_its_share_of_the_processors() -> None:
    lab.limit("worker1", 0.1)
    lab.limit("worker2", 0.3)
    with ThreadPoolExecutor() as pool:
        spins = pool.map(lambda name: float(lab.run(name, ["python3", "-c", SPIN])), ["worker1", "worker2"])
        less, more = spins
    lab.limits()

    assert 2.0 < more / less < 4.0


def test_network_cards_send_at_the_inventorys_rate() -> None:
    for machine in lab.machines():
        assert sending_rate(machine.name) == power.bits(machine.rate)


def test_a_rate_that_tc_does_not_know_is_refused() -> None:
    with pytest.raises(lab.LabError, match="'fast' is not a rate"):
        power.bits("fast")


def test_who_lost_power_comes_back_with_its_disk_its_key_and_its_limits() -> None:
    lab.run("worker4", ["sh", "-c", "echo kept > mark && sync"])
    lab.kill("worker4")
    with pytest.raises(lab.LabError):
        lab.run("worker4", ["true"], timeout=20)
    lab.start("worker4")

    assert lab.run("worker4", ["cat", "mark"]) == "kept\n"
    assert sending_rate("worker4") == power.bits(lab.machine("worker4").rate)


def test_coming_up_again_touches_no_machine_and_adds_the_spare() -> None:
    before = {name: switched_on(name) for name in NAMES}
    lab.up(provision=False, spare=True)

    assert {name: switched_on(name) for name in NAMES} == before
    assert tuple(machine.name for machine in lab.machines()) == (*NAMES, "worker5")
    assert lab.run("master", ["getent", "hosts", "worker5"]).split()[0] == lab.machine("worker5").address
    assert lab.run("worker5", ["systemctl", "is-system-running"]).strip() == "running"


def test_a_lab_that_crashed_comes_up_again() -> None:
    lab.run("worker2", ["sh", "-c", "echo kept > mark && sync"])
    for name in ("dockerd", "lxcfs"):
        pid = daemons.running(name)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    lab.up(provision=False)

    assert lab.run("worker2", ["cat", "mark"]) == "kept\n"
    assert memory_total_kb(lab.run("worker2", ["cat", "/proc/meminfo"])) // GIBIBYTE_KB == 3


def of_the_lab() -> list[str]:
    """Every process of the lab, by its command line or its control group."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words, groups = (process / "cmdline").read_text(), (process / "cgroup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(RUNTIME) in words or NAME in groups:
            found.append(words.replace("\0", " "))
    return found


def test_down_leaves_nothing_but_disks() -> None:
    assert of_the_lab()
    lab.down()

    assert of_the_lab() == []
    assert str(LXCFS) not in Path("/proc/mounts").read_text()
    assert str(DISKS) not in Path("/proc/mounts").read_text()
    assert not Path("/sys/class/net", NAME).exists()
    assert not list(CGROUPS.glob(f"*/{NAME}"))
    assert not RUNTIME.exists()
    assert (MIRROR / "Packages").exists()
    with pytest.raises(lab.LabError, match="scripts/lab up"):
        lab.machines()
