"""The processes of a control group of version 2, as the kernel tells them; those of version 1 have boxes of Docker."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex

import pytest

from boxes.broker import group

PLACES = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A control group with one inside it; there is nothing in them yet."""
    root = next((one for one in PLACES if (one / "cgroup.controllers").exists()), None)
    if os.geteuid() or root is None:
        pytest.skip("only root makes control groups, and not every machine has version 2")
    monkeypatch.setattr("boxes.broker.group.GROUPS", root)
    made = root / f"nodewise-{token_hex(32)}"
    (made / "inner").mkdir(parents=True)
    yield made
    for one in (made / "inner", made):
        one.rmdir()


def test_all_processes_of_a_control_group_and_of_those_within_are_named(folder: Path) -> None:
    container = folder.name.removeprefix("nodewise-")
    with ExitStack() as stack:
        sleeping = [stack.enter_context(subprocess.Popen(["sleep", "3600"])) for _ in range(3)]
        first, other, outside = [one.pid for one in sleeping]
        (folder / "cgroup.procs").write_text(str(first))
        (folder / "inner/cgroup.procs").write_text(str(other))

        try:
            assert sorted(group.processes(first, container)) == sorted([first, other])
            with pytest.raises(OSError, match="control group"):
                group.processes(outside, container)
        finally:
            for one in sleeping:
                one.kill()
