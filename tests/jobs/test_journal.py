"""What the application master must not forget, without HDFS: frames, one flush for many, segments after failures."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Collection, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, BinaryIO, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hadoop.client import segments as segments_module
from hadoop.client.datanodes import DataNode
from hadoop.errors import HadoopError
from jobs.application import journal as journal_module
from jobs.application.frames import contents, frame
from jobs.application.journal import Journal, Record, read
from jobs.itemwork.messages import Task
from tests.jobs.dealing import block, rows, stored_rows, two_nodes
from tests.threads import join_threads

BEFORE = Path(__file__).parents[1] / "fixtures" / "before_rooms" / "journal"

CONTENTS = st.lists(st.binary(min_size=1, max_size=40), max_size=8)


def pieces(content: bytes, size: int) -> Iterator[bytes]:
    return (content[at : at + size] for at in range(0, len(content), size))


@given(written=CONTENTS, size=st.integers(1, 50))
def test_frames_are_read_in_chunks_of_any_size(written: list[bytes], size: int) -> None:
    assert list(contents(pieces(b"".join(map(frame, written)), size))) == written


@given(written=CONTENTS, size=st.integers(1, 50), data=st.data())
def test_a_file_that_ends_anywhere_has_the_frames_before(written: list[bytes], size: int, data: st.DataObject) -> None:
    whole = b"".join(map(frame, written))
    end = data.draw(st.integers(0, len(whole)))

    found = list(contents(pieces(whole[:end], size)))

    ends = [sum(len(frame(one)) for one in written[: n + 1]) for n in range(len(written))]
    assert found == written[: sum(at <= end for at in ends)]


@given(written=CONTENTS.filter(bool), data=st.data())
def test_nothing_is_read_from_a_frame_that_was_changed_on(written: list[bytes], data: st.DataObject) -> None:
    whole = bytearray(b"".join(map(frame, written)))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))

    found = list(contents([bytes(whole)]))

    assert found == written[: len(found)]
    assert len(b"".join(map(frame, found))) <= at


class Disk:
    """A folder of this machine in the place of HDFS, which refuses and delays what it is told to.

    `silent` has the DataNodes that do not answer, `nodes` those of each file, `held` the files that wait for one, and
    `go_on` ends the delays.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.refuse: list[str] = []
        self.nodes: dict[str, list[DataNode]] = {}
        self.silent: set[DataNode] = set()
        self.held: list[str] = []
        self.go_on = threading.Event()
        self.made_up: list[str] = []
        self.journals: list[Journal] = []
        self.flushes = 0
        self.files: list[BinaryIO] = []
        self.before_flush: Any = lambda: None

    def make_folder(self, name: str) -> None:
        (self.root / name).mkdir(parents=True, exist_ok=True)

    def exists(self, name: str) -> bool:
        return (self.root / name).exists()

    def rename(self, source: str, target: str) -> None:
        (self.root / source).rename(self.root / target)

    def holders(self, name: str) -> list[DataNode]:
        """Those of a file that a thread may be about to make."""
        while name not in self.nodes:
            time.sleep(0.01)
        return self.nodes[name]

    def wait(self, tries: Collection[Future[None]], seconds: float | None, until: str) -> Any:
        """As `wait`, but no try is given up that is not held up by a silent node: it is slow on a busy machine."""
        found = wait(tries, seconds, until)
        while not found.done and len(self.held) < len(tries):
            found = wait(tries, 0.01, until)
        return found


NODES = [DataNode(f"10.0.0.{n}", 9866, f"node{n}") for n in (1, 2, 3)]


class DiskStream:
    """As `AppendStream`; a refusal of "half" has written the half of it, one of "all" all of it."""

    def __init__(self, disk: Disk, name: str) -> None:
        self._disk, self._name = disk, name
        try:
            self._file = (disk.root / name).open("xb")
        except OSError as error:
            raise HadoopError(str(error)) from None
        disk.files.append(self._file)

    @classmethod
    def create(cls, disk: Disk, name: str, nodes: list[DataNode]) -> Self:
        made = cls(disk, name)
        disk.nodes[Path(name).name] = nodes or NODES
        return made

    def append(self, content: bytes) -> None:
        self._disk.before_flush()
        self._disk.flushes += 1
        refusal = self._disk.refuse.pop(0) if self._disk.refuse else ""
        self._file.write({"": content, "half": content[: len(content) // 2], "all": content, "none": b""}[refusal])
        self._file.flush()
        if refusal:
            raise HadoopError(f"the pipeline broke: {refusal}")
        if self._disk.silent.intersection(self._disk.nodes[Path(self._name).name]):
            self._disk.held.append(self._name)
            assert self._disk.go_on.wait(60)

    def abandon(self) -> None:
        self._file.close()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    def children(disk: Disk, folder: str) -> list[str]:
        return sorted(path.name for path in (disk.root / folder).glob("*"))

    disk = Disk(tmp_path)
    monkeypatch.setattr(segments_module, "AppendStream", DiskStream)
    monkeypatch.setattr(segments_module, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(segments_module, "SILENT_SECONDS", 60.0)  # a busy machine is silent for a while, too
    monkeypatch.setattr(segments_module, "wait", disk.wait)
    monkeypatch.setattr(segments_module, "last_holders", lambda disk, path: disk.holders(Path(path).name))
    monkeypatch.setattr(
        segments_module, "find_answering", lambda nodes: [node for node in nodes if node not in disk.silent]
    )
    monkeypatch.setattr(segments_module, "make_up_replicas", lambda disk, path: disk.made_up.append(Path(path).name))
    for module in (segments_module, journal_module):
        monkeypatch.setattr(module, "children", children)
        monkeypatch.setattr(module, "take_away", lambda disk, name, patience=0.0: None)
    monkeypatch.setattr(journal_module, "chunks", lambda disk, name: [(disk.root / name).read_bytes()])
    yield disk
    disk.go_on.set()
    for journal in disk.journals:
        journal.close()
    await_segments()
    for file in disk.files:
        file.close()


def await_segments() -> None:
    """Until what the journals left is closed and has its replicas: they do not wait for that."""
    join_threads("segment")


def opened(disk: Any, attempt: int) -> Journal:
    journal = Journal.open(disk, "journal", attempt)
    disk.journals.append(journal)
    return journal


def recorded(disk: Any) -> list[Record]:
    return list(read(disk, "journal"))


def numbered(*numbers: int) -> list[Record]:
    return [Record("number", {"n": n}, bytes([n])) for n in numbers]


def test_a_later_attempt_reads_what_the_earlier_ones_recorded_and_goes_on(disk: Disk) -> None:
    for attempt in (1, 2, 10):
        journal = opened(disk, attempt)
        bare = [Record("number", {"n": n}) for n in (1, 2) if n < attempt]
        assert list(journal.earlier()) == bare, "what fills the memory is left where it is"
        journal.append(*numbered(attempt))
        assert attempt not in [record.body["n"] for record in journal.earlier()]
        journal.close()

    assert recorded(disk) == numbered(1, 2, 10)


@pytest.mark.parametrize("refusals", [["none"], ["half"], ["all"], ["half", "all"], ["all", "none"]])
def test_what_was_refused_is_written_again_and_read_once(disk: Disk, refusals: list[str]) -> None:
    journal = opened(disk, 1)
    journal.append(*numbered(1))
    disk.refuse = list(refusals)
    for record in numbered(2, 3):
        journal.append(record)
    journal.close()

    assert disk.refuse == []
    assert recorded(disk) == numbered(1, 2, 3)


def test_a_journal_that_cannot_be_written_says_so_to_everyone_from_then_on(disk: Disk) -> None:
    journal = opened(disk, 1)
    disk.refuse = ["none"] * 3
    for record in numbered(1, 2):
        with pytest.raises(HadoopError, match="the pipeline broke"):
            journal.append(record)

    assert disk.refuse == []
    assert recorded(disk) == []


def test_a_silent_node_does_not_hold_the_journal_up(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_module, "RENEW_SECONDS", 0.0)
    journal = opened(disk, 1)
    journal.append(*numbered(1))
    disk.silent = {NODES[1]}

    with monkeypatch.context() as patched:
        patched.setattr(segments_module, "SILENT_SECONDS", 0.2)
        journal.append(*numbered(2))
    assert disk.nodes["000002"] == [NODES[0], NODES[2]]
    assert recorded(disk) == numbered(1, 2), "also while the first file still waits"
    disk.silent.clear()
    journal.append(*numbered(3))
    disk.go_on.set()
    journal.close()
    await_segments()

    assert disk.nodes["000003"] == NODES, "as many replicas as before, as soon as it may be that all nodes are back"
    assert disk.made_up == ["000002"], "those of what was written meanwhile"
    assert recorded(disk) == numbered(1, 2, 3)


def test_nodes_that_answer_but_keep_a_file_waiting_are_tried_one_fewer(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments_module, "find_answering", lambda nodes: nodes)
    journal = opened(disk, 1)
    disk.silent = {NODES[1]}

    with monkeypatch.context() as patched:
        patched.setattr(segments_module, "SILENT_SECONDS", 0.2)
        journal.append(*numbered(1))
    journal.append(*numbered(2))

    assert [len(nodes) for nodes in disk.nodes.values()] == [3, 2, 1]
    assert recorded(disk) == numbered(1, 2)


def test_what_is_acknowledged_late_counts_when_nothing_else_does(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_module, "SILENT_SECONDS", 0.1)
    journal = opened(disk, 1)
    disk.silent = {NODES[0]}
    monkeypatch.setattr(segments_module, "find_answering", lambda nodes: nodes)
    threading.Timer(1.0, disk.go_on.set).start()

    for record in numbered(1, 2):
        journal.append(record)

    assert recorded(disk) == numbered(1, 2)


def test_an_attempt_that_was_taken_over_can_make_no_segment(disk: Disk) -> None:
    old = opened(disk, 1)
    old.append(*numbered(1))
    new = opened(disk, 2)
    disk.refuse = ["none"]  # as HDFS does when the segment was taken away

    with pytest.raises(HadoopError, match="a later attempt has taken over"):
        old.append(*numbered(2))
    assert old._segments and old._segments._count == 2, "no other try can help"
    new.append(*numbered(3))

    assert recorded(disk) == numbered(1, 3)


def test_an_attempt_that_comes_too_late_is_refused(disk: Disk) -> None:
    opened(disk, 2)

    with pytest.raises(HadoopError, match="attempt 1 at this job may record nothing more"):
        opened(disk, 1)


def test_nothing_is_recorded_after_the_end(disk: Disk) -> None:
    journal = opened(disk, 1)
    journal.close()

    with pytest.raises(HadoopError, match="the journal is closed"):
        journal.append(*numbered(1))


def test_threads_that_wait_share_a_flush_and_each_is_durable_when_it_goes_on(disk: Disk) -> None:
    journal = opened(disk, 1)
    first_is_writing, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        first_is_writing.set()
        assert go_on.wait(60)

    disk.before_flush = hold
    missing: list[int] = []

    def append(n: int) -> None:
        journal.append(*numbered(n))
        if numbered(n)[0] not in recorded(disk):
            missing.append(n)

    threads = [threading.Thread(target=append, args=(n,)) for n in range(20)]
    threads[0].start()
    assert first_is_writing.wait(60)
    for thread in threads[1:]:
        thread.start()
    deadline = time.monotonic() + 60
    while len(journal._waiting) < 19:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    go_on.set()
    for thread in threads:
        thread.join(60)

    assert (disk.flushes, missing) == (2, [])
    assert sorted(record.body["n"] for record in recorded(disk)) == list(range(20))


def test_a_job_of_the_version_before_the_rooms_goes_on_with_its_journal(disk: Disk) -> None:
    """Its first lease was committed, and one picture of its second ended a process."""
    shutil.copytree(BEFORE, disk.root / "journal")
    journal = opened(disk, 2)
    job = two_nodes([block("/f", 1, "a"), block("/p", 11, "a")], [block("/q", 4, "b")])
    job.paper.records = recorded(disk)
    earlier, job.attempt = len(job.paper.records), 1
    job.restart()
    for node in ("a", "b"):
        job.dealer.add_container(node, f"{node}2", 1.0)

    assert [name for name, _ in stored_rows(recorded(disk))] == ["/f", *(f"/p#{number}" for number in range(7))]
    for node in ("a", "b"):
        while isinstance(task := job.dealer.take(node, f"{node}2", []), Task):
            told = [item.name for group in task.groups for item in group.items]
            job.dealer.commit(node, f"{node}2", task.lease, rows(node, told), 0.5, 100)
    for record in job.paper.records[earlier:]:
        journal.append(record)
    assert sorted(name for name, _ in stored_rows(recorded(disk))) == sorted(job.names())
