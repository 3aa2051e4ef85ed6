"""Images on their way into HDFS over WebHDFS: one file each or in packs, also to the NameNode that takes over."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock, Timer

import pytest
from PIL import Image

from hadoop.errors import HadoopError
from hadoop.rest import webhdfs_writing
from hadoop.rest.connections import Limits
from hadoop.rest.webhdfs_writing import WritableHdfs
from jobs.errors import JobError
from jobs.images.datasets import load
from jobs.images.packing import pack
from tests.hadoop.hadoop_pages import Asked, Daemon, Hdfs, Said

NAMES = ("a.jpg", "in/ü b.jpg", "100%.jpg")


class Place:
    """An HDFS with two NameNodes, of which the second is active, and a DataNode."""

    def __init__(self) -> None:
        self.hdfs, self.late = Hdfs(), Hdfs(is_active=False)
        self.datanode = Daemon(self.hdfs)
        self.hdfs.datanode = self.datanode.address
        self.namenodes = [Daemon(self.late), Daemon(self.hdfs)]

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(one.address for one in self.namenodes)

    def close(self) -> None:
        for daemon in (self.datanode, *self.namenodes):
            daemon.close()


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place()
    yield made
    made.close()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    for number, name in enumerate(NAMES):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / name)
    return folder


def test_files_arrive_whole_and_under_their_names(place: Place, pictures: Path) -> None:
    result = load(pictures, "hdfs://nodewise/data", place.addresses, "me", names=["nodewise"])

    assert (result.loaded, result.skipped) == (3, ())
    assert place.hdfs.files == {f"/data/{name}": (pictures / name).read_bytes() for name in NAMES}
    assert {asked.query["blocksize"] for asked in place.datanode.asked} == {str(16 << 20)}


@pytest.mark.parametrize("said", ["hdfs://nodewise/data", "hdfs://nodewise:8020/data", "hdfs://127.0.0.1/data"])
def test_a_name_service_names_this_hdfs(place: Place, pictures: Path, said: str) -> None:
    assert load(pictures, said, place.addresses, "me", names=["nodewise"]).loaded == 3
    with pytest.raises(JobError, match="names the HDFS at other, and images can go to the one at nodewise only"):
        load(pictures, "hdfs://other/data", place.addresses, "me", names=["nodewise"])


def test_what_is_there_is_replaced_only_on_demand(place: Place, pictures: Path) -> None:
    load(pictures, "/data", place.addresses, "me")
    with pytest.raises(JobError, match=r"/data already holds 3 of these files, 100%\.jpg for one"):
        load(pictures, "/data", place.addresses, "me")
    with pytest.raises(HadoopError, match="already exists"):
        WritableHdfs(place.addresses, "me").write("/data/a.jpg", b"other")
    (pictures / "a.jpg").write_bytes((pictures / "100%.jpg").read_bytes())
    load(pictures, "/data", place.addresses, "me", overwrite=True)
    assert place.hdfs.files["/data/a.jpg"] == (pictures / "100%.jpg").read_bytes()


def test_loading_goes_on_when_the_other_namenode_takes_over(place: Place, pictures: Path) -> None:
    place.hdfs.is_active = False

    def take_over() -> None:
        place.late.datanode = place.datanode.address
        place.late.is_active = True

    timer = Timer(0.5, take_over)
    timer.start()
    assert load(pictures, "/data", place.addresses, "me").loaded == 3
    timer.join()
    assert {asked.query["op"] for asked in place.namenodes[0].asked} >= {"CREATE"}


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a DataNode that takes connections and then does nothing: its thread waits for a NameNode."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


def test_loading_goes_on_when_a_datanode_is_busy_with_the_failover_itself(
    place: Place, pictures: Path, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs_writing, "LIMITS", Limits(connect=0.2, patience=30.0))
    asked, one_by_one = Counter[str](), Lock()

    def lead(request: Asked) -> Said:
        with one_by_one:
            asked[request.path] += request.query["op"] == "CREATE"
            place.hdfs.datanode = silent if asked[request.path] == 1 else place.datanode.address
            return place.hdfs(request)

    place.namenodes[1].answer = lead
    assert load(pictures, "/data", place.addresses, "me").loaded == 3

    assert place.hdfs.files == {f"/data/{name}": (pictures / name).read_bytes() for name in NAMES}
    assert [count for path, count in asked.items() if path.endswith(".jpg")] == [2, 2, 2]


def test_a_datanode_that_stays_busy_is_waited_for_as_long_as_a_namenode(
    place: Place, pictures: Path, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs_writing, "LIMITS", Limits(connect=0.2, patience=2.0))
    place.hdfs.datanode = silent
    begun = time.monotonic()
    with pytest.raises(JobError, match=rf"HDFS does not answer at {silent} \(.*timed out\)"):
        load(pictures, "/data", place.addresses, "me")
    assert 0.5 < time.monotonic() - begun < 20


def test_what_a_datanode_may_have_written_already_is_not_written_again(place: Place, pictures: Path) -> None:
    def die(_: Asked) -> Said:
        raise ConnectionAbortedError

    place.datanode.answer = die
    with pytest.raises(JobError, match="HDFS does not answer at"):
        load(pictures, "/data", place.addresses, "me")
    paths = [asked.path for asked in place.datanode.asked]
    assert paths
    assert len(paths) == len(set(paths))


def test_when_no_namenode_takes_over_both_are_named(
    place: Place, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs_writing, "LIMITS", Limits(patience=0.0))
    place.hdfs.is_active = False
    with pytest.raises(JobError, match=r"HDFS does not answer at http://.* or http://.* is not active"):
        load(pictures, "/data", place.addresses, "me")


def refuse(place: Place, operation: str) -> Callable[[Asked], Said]:
    def answer(asked: Asked) -> Said:
        if asked.query["op"] == operation:
            return Said(403, b'{"RemoteException": {"exception": "Other", "message": "Permission denied: no"}}')
        return place.hdfs(asked)

    return answer


def test_a_refusal_says_why(place: Place, pictures: Path) -> None:
    place.namenodes[1].answer = refuse(place, "CREATE")
    with pytest.raises(JobError, match=r"^HDFS refused to store images in /data for user me: Permission denied: no$"):
        load(pictures, "/data", place.addresses, "me")


def test_packs_stand_there_when_all_is_there(place: Place, pictures: Path) -> None:
    first = pack(pictures, "hdfs://nodewise/packed", place.addresses, "me", file_bytes=1, names=["nodewise"])

    assert (first.packed, first.files) == (3, 3)
    assert len(place.hdfs.files) == 12
    assert {name.rpartition("/")[0] for name in place.hdfs.files} == {"/packed"}
    for name in NAMES:
        assert any((pictures / name).read_bytes() in content for content in place.hdfs.files.values())
    (stored,) = (asked for asked in place.datanode.asked if asked.path.endswith("images-00000.rec"))
    assert stored.body == place.hdfs.files["/packed/images-00000.rec"], "it came in pieces"


def test_a_pack_is_replaced_by_another_and_nothing_is_left_beside_it(place: Place, pictures: Path) -> None:
    pack(pictures, "/packed", place.addresses, "me", file_bytes=1)
    with pytest.raises(JobError, match=r"/packed already holds images-00000\.idx \(12 names in all\)"):
        pack(pictures, "/packed", place.addresses, "me")

    assert pack(pictures, "/packed", place.addresses, "me", overwrite=True).files == 1

    assert len(place.hdfs.files) == 4
    assert place.hdfs.folders == {"/", "/packed"}


def test_a_packing_that_fails_leaves_nothing(place: Place, pictures: Path) -> None:
    place.namenodes[1].answer = refuse(place, "RENAME")
    with pytest.raises(JobError, match="HDFS refused to store images in /packed for user me: Permission denied"):
        pack(pictures, "/packed", place.addresses, "me")
    assert (place.hdfs.files, place.hdfs.folders) == ({}, {"/"})


def die_after(place: Place, operation: str) -> Callable[[Asked], Said]:
    """Do it each first time for a path, and hang up before anybody hears of it."""
    done = set[str]()

    def answer(asked: Asked) -> Said:
        said = place.hdfs(asked)
        if asked.query.get("op") == operation and asked.path not in done:
            done.add(asked.path)
            raise ConnectionAbortedError
        return said

    return answer


def test_what_a_namenode_did_before_it_died_is_not_called_undone(place: Place, pictures: Path) -> None:
    place.namenodes[1].answer = die_after(place, "RENAME")
    pack(pictures, "/packed", place.addresses, "me", file_bytes=1)

    assert pack(pictures, "/packed", place.addresses, "me", overwrite=True).files == 1

    assert len(place.hdfs.files) == 4
    assert place.hdfs.folders == {"/", "/packed"}


def test_a_rename_that_was_not_done_is_refused(place: Place) -> None:
    client = WritableHdfs(place.addresses, "me")
    client.make_folder("/there")
    with pytest.raises(HadoopError, match="RENAME was not done"):
        client.rename("/not-there", "/there")
