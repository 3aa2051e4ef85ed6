"""What is laid out for workers before any of them is started."""

from __future__ import annotations

import json
from typing import Any

from jobs.application.master import master_file, put
from jobs.kinds.classify.launches import Launches
from tests.jobs.stored import SETTINGS, SPEC


class Folder:
    """Files and what was done to them, in order."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, int]] = {}
        self.done: list[tuple[str, ...]] = []

    def exists(self, name: str) -> bool:
        return name in self.files

    def write(self, name: str, content: bytes, mode: int) -> None:
        self.done.append(("write", name))
        self.files[name] = content, mode

    def rename(self, source: str, target: str, overwrite: bool) -> None:
        assert overwrite
        self.done.append(("rename", source, target))
        self.files[target] = self.files.pop(source)


def publish(folder: Any, address: str) -> None:
    """What an attempt lays out before it has a plan."""
    put(folder, master_file(SPEC), json.dumps({"address": address}).encode())
    Launches(folder, SPEC, SETTINGS).publish()


def test_no_file_is_ever_half_there_and_only_the_user_may_read_it() -> None:
    folder = Folder()

    publish(folder, "http://here:1")

    assert sorted(folder.files) == ["/staging/master.json", "/staging/worker.json"]
    assert {name for what, name, *_ in folder.done if what == "write"} == {f"{name}.new" for name in folder.files}
    assert {mode for _, mode in folder.files.values()} == {0o600}


def test_a_later_attempt_moves_and_the_settings_stay_as_running_workers_have_them() -> None:
    folder = Folder()
    publish(folder, "http://here:1")
    folder.done.clear()

    publish(folder, "http://there:2")

    assert folder.done == [
        ("write", "/staging/master.json.new"),
        ("rename", "/staging/master.json.new", "/staging/master.json"),
    ]
    assert json.loads(folder.files["/staging/master.json"][0]) == {"address": "http://there:2"}
