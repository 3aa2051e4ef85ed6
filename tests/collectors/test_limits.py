"""What the kernel is told about a run, by util-linux's tools and without them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from collectors.agent.run.limits import Confinement, Limits

LIMITS = Limits(cpu_seconds=7, address_space_bytes=1 << 30, open_files=99, processes=1234)
SHOWN = {
    "Max cpu time": "7",
    "Max address space": str(1 << 30),
    "Max open files": "99",
    "Max processes": "1234",
    "Max core file size": "0",
}


@pytest.fixture(params=["tools", "fork"])
def confinement(request: pytest.FixtureRequest, tmp_path: Path) -> Confinement:
    """With the tools of the machine, and as on a machine that has none."""
    made = Confinement(LIMITS, *([] if request.param == "tools" else [str(tmp_path)]))
    argv, before = made.start(["true"], 1)
    assert (before is None) == (request.param == "tools")
    assert len(argv) > 1 or before is not None
    return made


def printed(confinement: Confinement, *command: str, timeout: float = 10) -> subprocess.CompletedProcess[str]:
    argv, before = confinement.start(list(command), timeout)
    return subprocess.run(argv, preexec_fn=before, capture_output=True, text=True, timeout=120, check=False)


def test_every_limit_reaches_the_command(confinement: Confinement) -> None:
    lines = printed(confinement, "cat", "/proc/self/limits").stdout.splitlines()
    seen = {line[:26].strip(): line[26:].split()[:2] for line in lines[1:]}

    assert {name: seen[name] for name in SHOWN} == {name: [most, most] for name, most in SHOWN.items()}


def test_a_run_can_gain_no_privileges(confinement: Confinement) -> None:
    assert "NoNewPrivs:\t1" in printed(confinement, "cat", "/proc/self/status").stdout


def test_a_run_gets_sigkill_when_what_started_it_dies(confinement: Confinement) -> None:
    asked = "import ctypes; n = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(n)); print(n.value)"

    assert printed(confinement, sys.executable, "-c", asked).stdout.strip() == str(int(signal.SIGKILL))


def test_a_command_that_needs_more_than_it_may_fails(confinement: Confinement) -> None:
    assert "MemoryError" in printed(confinement, sys.executable, "-c", "bytearray(1 << 31)").stderr
    assert (
        "Too many open files"
        in printed(confinement, sys.executable, "-c", "kept = [open('/dev/null') for _ in range(200)]").stderr
    )


def test_a_run_that_only_computes_is_ended_by_its_cpu_seconds(confinement: Confinement) -> None:
    short = Confinement(Limits(cpu_seconds=1))

    assert printed(short, "sh", "-c", "while :; do :; done").returncode == -signal.SIGKILL


def test_python_and_awk_work_within_the_limits_that_ship() -> None:
    usual = Confinement(Limits())

    assert printed(usual, sys.executable, "-c", "import ssl, json; print(1)").stdout == "1\n"
    assert printed(usual, "awk", "BEGIN { print 1 }").stdout == "1\n"


@pytest.mark.parametrize("path", ["/usr/bin:/bin:/usr/sbin:/sbin", "/no/tools"])
def test_what_the_login_may_have_at_most_is_not_exceeded_and_no_reason_to_fail(path: str) -> None:
    """In a process whose hard limits are lower than ours, and who is not root, which could raise them."""
    asked = (
        "import os, resource, subprocess, sys; from collectors.agent.run.limits import *\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50)); resource.setrlimit(resource.RLIMIT_NPROC, (70, 70))\n"
        "if os.geteuid() == 0: os.setresuid(65534, 65534, 65534)\n"
        f"argv, before = Confinement(Limits(), {path!r}).start(['sh', '-c', 'ulimit -n'], 1)\n"
        "subprocess.run(argv, preexec_fn=before, check=True); print(before is None)"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=120, check=False)

    assert (done.stdout.split(), done.stderr) == (["50", str(path != "/no/tools")], "")


@pytest.mark.parametrize(("timeout", "seconds"), [(0.5, 10), (5, 10), (30, 60)])
def test_cpu_seconds_go_by_the_timeout_unless_they_are_set(timeout: float, seconds: int) -> None:
    assert Limits().cpu(timeout) == seconds
    assert LIMITS.cpu(timeout) == 7


def test_tools_of_the_same_name_that_do_something_else_are_not_used(tmp_path: Path) -> None:
    for name in ("prlimit", "setpriv"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    argv, before = Confinement(LIMITS, f"{tmp_path}:{os.environ['PATH']}").start(["true"], 1)

    assert (argv, before is None) == (["true"], False)
