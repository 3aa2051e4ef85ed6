"""Which records stay in the folder of a jobs' owner, on files that are played; tests/cluster keeps some in HDFS."""

from __future__ import annotations

from typing import Any

import pytest

from hadoop.client.filesystem import Entry
from jobs.division import decision_store


class Folder:
    """One folder, whose clock counts what is written."""

    def __init__(self) -> None:
        self.entries_by_name: dict[str, Entry] = {}
        self.now = 0.0

    def make_folder(self, path: str, mode: int) -> None:
        """It is there."""

    def write(self, path: str, content: bytes, mode: int) -> None:
        self.now += 1
        name = path.rpartition("/")[2]
        self.entries_by_name[name] = Entry(name, len(content), self.now)

    def entries(self, path: str) -> list[Entry]:
        return list(self.entries_by_name.values())

    def delete(self, path: str) -> None:
        del self.entries_by_name[path.rpartition("/")[2]]


def test_jobs_in_a_pool_push_out_no_others_and_are_kept_however_old_their_pool_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decision_store, "MOST_KEPT", 2)
    folder: Any = Folder()

    for job_id in ("application_1_5", "application_1_7", "application_1_9", "pool_1_5_1", "pool_1_7_1", "pool_1_5_2"):
        decision_store.keep(folder, "/owner", job_id, b"x")

    assert set(folder.entries_by_name) == {
        f"{one}.json" for one in ("application_1_7", "application_1_9", "pool_1_7_1", "pool_1_5_2")
    }
