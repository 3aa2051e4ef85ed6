"""A worker as a whole: real processes that really die, and an application master that speaks real HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import cv2
import numpy as np
import pytest

from jobs.itemwork.messages import Item
from jobs.itemwork.suspects import Suspects
from jobs.worker.lookout import Lookout
from jobs.worker.master import Master
from jobs.worker.settings import WorkerSettings
from jobs.worker.worker import MOST_DEATHS
from tests.worker.application import TOKEN, Application
from tests.worker.trapped import EXITS, HANGS, KILLS, RAISES, SLOW, Folder

ROOT = Path(__file__).resolve().parents[2]
MASTER = "job/master.json"
DEADLINE = 180
LONG = 400
"""So many slow images take 15 s: whatever happens to their worker meanwhile happens before it is done."""


def until(condition: Callable[[], object], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


class Place:
    """A folder with images in the place of HDFS, and workers that read it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workers: list[subprocess.Popen[bytes]] = []
        (root / "job").mkdir()

    def point_to(self, application: Application) -> None:
        new = self.root / "new"
        new.write_text(json.dumps({"address": application.address}))
        new.rename(self.root / MASTER)

    def picture(self, grey: int, number: int) -> Item:
        path = self.root / f"{number:03}-{grey}.png"
        path.write_bytes(bytes(cv2.imencode(".png", np.full((40, 50, 3), grey, dtype=np.uint8))[1]))
        return Item(f"/{path.name}", f"/{path.name}", None, path.stat().st_size)

    def pictures(self, *greys: int) -> list[Item]:
        return [self.picture(grey, number) for number, grey in enumerate(greys)]

    def silence(self, *pictures: Item) -> None:
        """Their first read never returns."""
        (self.root / "silent").mkdir()
        for picture in pictures:
            (self.root / "silent" / picture.path[1:]).touch()

    def start(
        self,
        engine: str = "trap",
        picture_seconds: float = 90.0,
        orphan: float = 90.0,
        stalled: float = 240.0,
        labels: str | None = None,
    ) -> int:
        settings = WorkerSettings(
            job_id="job_1",
            master=f"/{MASTER}",
            token=TOKEN,
            engine=engine,
            batch=4,
            processes=2,
            threads=1,
            weights=None,
            labels=labels,
            picture_seconds=picture_seconds,
            orphan_seconds=orphan,
        )
        (self.root / "worker.json").write_bytes(settings.to_bytes())
        argv = [sys.executable, "-m", "tests.worker.trapped", str(self.root / "worker.json"), str(self.root)]
        names = {"NODE_NAME": "worker1", "CONTAINER_ID": "container_1"}
        environment = os.environ | names | {"OMP_NUM_THREADS": "1", "STALLED_SECONDS": str(stalled)}
        self.workers.append(
            subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )
        return self.workers[-1].pid

    def end(self) -> tuple[int, str, str]:
        """The last worker's exit status and what it printed."""
        worker = self.workers[-1]
        out, err = worker.communicate(timeout=DEADLINE)
        return worker.returncode, out.decode(), err.decode()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    for worker in made.workers:
        worker.kill()
        worker.communicate()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def job(place: Place, *leases: list[Item]) -> Application:
    application = Application({f"1-{number}": lease for number, lease in enumerate(leases)})
    place.point_to(application)
    return application


def test_every_picture_of_every_lease_gets_its_row(place: Place) -> None:
    pictures = place.pictures(*range(100, 160))
    application = job(place, pictures[:20], pictures[20:21], pictures[21:])
    place.start()

    assert place.end()[0] == 0
    assert {row["path"]: row["class_id"] for row in application.rows} == {
        picture.name: 100 + number for number, picture in enumerate(pictures)
    }
    assert [row["error"] for row in application.rows] == [None] * 60
    assert application.commits["1-0"][1] == sum(picture.length for picture in pictures[:20])
    assert 0 < application.commits["1-2"][0] < DEADLINE
    assert not application.said("/working")


def test_the_first_heartbeat_alone_tells_how_the_worker_began(place: Place) -> None:
    pictures = place.pictures(*[SLOW] * 40)
    application = job(place, *[pictures[first : first + 8] for first in range(0, 40, 8)])
    place.start()

    assert place.end()[0] == 0
    first, *others = application.said("/heartbeat")
    assert first["age"] >= first["libraries"] + first["network"]
    assert first["libraries"] > 0 and first["network"] > 0
    assert others and all(one.keys() == {"node_name", "container_id"} for one in others)


def test_a_lease_is_queued_while_one_is_computed_and_not_more(place: Place) -> None:
    pictures = place.pictures(*[SLOW] * 40)
    application = job(place, *[pictures[first : first + 8] for first in range(0, 40, 8)])
    place.start()

    assert place.end()[0] == 0
    assert application.most == 2


def test_a_picture_that_came_with_an_urgent_lease_is_done_before_the_lease_that_came_first(place: Place) -> None:
    pictures = place.pictures(*[SLOW] * 25)
    content = (place.root / pictures[24].path[1:]).read_bytes()
    application = Application({"1-0": pictures[:24], "now": [Item("sent", "", None, len(content), content)]})
    application.urgent.add("now")
    place.point_to(application)
    place.start()

    assert place.end()[0] == 0
    assert list(application.commits) == ["now", "1-0"]
    assert {row["class_id"] for row in application.rows if row["path"] == "sent"} == {SLOW}
    assert len(application.rows) == 25


def test_a_worker_has_patience_while_it_has_nothing_to_do_and_asks_at_once_when_that_is_so(place: Place) -> None:
    application = Application({"1-0": place.pictures(101)})
    application.wait = 3600.0
    place.point_to(application)
    place.start()

    assert place.end()[0] == 0
    assert [bool(body["patience"]) for body in application.said("/take")] == [True, False, True]


def test_packed_pictures_are_cut_out_of_their_file(place: Place) -> None:
    singles = place.pictures(101, 102, 103)
    contents = [(place.root / picture.path[1:]).read_bytes() for picture in singles]
    (place.root / "packed.rec").write_bytes(b"head" + b"between".join(contents))
    offset, packed = 4, []
    for number, content in enumerate(contents):
        packed.append(Item(f"/packed.rec#{number}.png", "/packed.rec", offset, len(content)))
        offset += len(content) + len(b"between")
    application = job(place, packed)
    place.start()

    assert place.end()[0] == 0
    assert {row["path"]: row["class_id"] for row in application.rows} == {
        f"/packed.rec#{number}.png": 101 + number for number in range(3)
    }


@pytest.mark.parametrize(
    ("trap", "reason"),
    [(KILLS, "ended by SIGKILL"), (EXITS, "exited with 3"), (HANGS, "did not come further"), (RAISES, "fell over")],
    ids=["killed", "exits", "hangs", "raises"],
)
def test_a_picture_that_ends_its_process_costs_itself_only(place: Place, trap: int, reason: str) -> None:
    pictures = place.pictures(*range(100, 110), trap, *range(110, 125))
    application = job(place, pictures[:16], pictures[16:])
    place.start(picture_seconds=5.0 if trap == HANGS else 30.0)

    assert place.end()[0] == 0
    errors = {row["path"]: row["error"] for row in application.rows if row["error"]}
    assert len(application.rows) == len(pictures)
    assert list(errors) == [pictures[10].name]
    assert reason in errors[pictures[10].name]


def test_many_pictures_in_a_row_that_end_their_processes_are_no_fault_of_the_worker(place: Place) -> None:
    pictures = place.pictures(*[KILLS] * 16, 101)
    application = job(place, pictures[:16], pictures[16:])
    place.start()

    assert place.end()[0] == 0
    assert len(application.said("/died")) > 2 * MOST_DEATHS
    assert [row["path"] for row in application.rows if not row["error"]] == [pictures[16].name]


def test_a_read_that_never_returns_costs_a_process_and_no_picture(place: Place) -> None:
    pictures = place.pictures(*range(100, 125))
    place.silence(pictures[3], pictures[7])
    application = job(place, pictures[:16], pictures[16:])
    place.start(stalled=2.0)
    status, _, err = place.end()

    assert status == 0
    assert [row["error"] for row in application.rows] == [None] * 25
    assert not application.said("/died")
    assert "no read of HDFS has returned" in err


def test_a_suspect_whose_read_never_returns_stays_one(place: Place) -> None:
    pictures = place.pictures(*range(101, 105))
    place.silence(pictures[0])
    suspects = Suspects()
    suspects.note_death([picture.name for picture in pictures], "ended by SIGKILL")
    application = Application({"1-0": pictures}, suspects)
    place.point_to(application)
    place.start(stalled=15.0)

    assert place.end()[0] == 0
    assert [row["error"] for row in application.rows] == [None] * 4
    assert not application.said("/died")
    announced = [body["group"] for body in application.said("/working") if body["group"]]
    assert announced.count([picture.name for picture in pictures[:2]]) == 2


def test_processes_without_a_storage_say_so_and_blame_nothing(place: Place) -> None:
    application = job(place, place.pictures(*range(101, 120)))
    place.start(engine="closed")

    assert place.end()[0] == 1
    (told,) = application.said("/failed")
    assert told["reason"].endswith("the last one so: HDFS cannot be opened: OSError: no route to HDFS")
    assert not told["everywhere"]
    assert not application.said("/died")


def test_labels_that_are_no_text_are_everybody_s_failure(place: Place) -> None:
    (place.root / "labels-pets").write_bytes("Kätzchen\n".encode("latin-1"))
    application = job(place, place.pictures(101))
    place.start(labels=str(place.root / "labels-pets"))
    status, _, err = place.end()

    assert status == 1
    assert "Traceback" not in err
    (told,) = application.said("/failed")
    assert told["everywhere"]
    assert told["reason"].endswith("labels-pets is not UTF-8 (invalid continuation byte at byte 1): save it as UTF-8")


def test_labels_name_the_classes(place: Place) -> None:
    (place.root / "labels").write_text("".join(f"Kätzchen {number}\n" for number in range(256)), "utf-8")
    application = job(place, place.pictures(101))
    place.start(labels=str(place.root / "labels"))

    assert place.end()[0] == 0
    assert [row["class_name"] for row in application.rows] == ["Kätzchen 101"]


def test_suspects_are_announced_and_done_apart(place: Place) -> None:
    pictures = place.pictures(*range(100, 110), KILLS, *range(110, 125))
    application = job(place, pictures[:16], pictures[16:])
    place.start()

    assert place.end()[0] == 0
    groups = [body["group"] for body in application.said("/working")]
    deaths = [body["group"] for body in application.said("/died")]
    assert all(death in groups for death in deaths[1:])
    assert sum(bool(group) for group in groups) == sum(not group for group in groups) + len(deaths) - 1
    assert len(deaths) == 3  # of the four, of two of them, of one
    assert all(len(death) == size for death, size in zip(deaths, (4, 2, 1), strict=True))


def test_nothing_else_is_looked_at_beside_a_suspect(place: Place) -> None:
    pictures = place.pictures(*[SLOW] * 8, 201, KILLS, 202, 203, *[SLOW] * 24)
    application = job(place, pictures[:16], pictures[16:])
    place.start()

    assert place.end()[0] == 0
    assert len(application.said("/died")) == 3
    busy: set[str] = set()
    beside = []
    for what, process, *greys in map(str.split, (place.root / "trace").read_text().splitlines()):
        if what == "end":
            busy.discard(process)
            continue
        if str(SLOW) not in greys:
            beside.append(len(busy))
        busy = {process} | busy if str(KILLS) not in greys else busy
    assert beside[1:] == [0] * len(beside[1:])
    assert len(beside) > 3


def test_what_was_computed_beside_a_death_is_not_computed_again(place: Place) -> None:
    pictures = place.pictures(*range(100, 110), KILLS, *range(110, 125))
    application = job(place, pictures)
    place.start()

    assert place.end()[0] == 0
    assert application.commits["1-0"][1] == sum(picture.length for picture in pictures) - pictures[10].length


def test_pictures_that_are_none_cost_their_own_row_only(place: Place) -> None:
    (place.root / "empty").write_bytes(b"")
    (place.root / "text").write_bytes(b"not at all")
    odd = [Item(f"/{name}", f"/{name}", None, 10) for name in ("empty", "text", "vanished")]
    application = job(place, [*odd, *place.pictures(101, 102)])
    place.start()

    assert place.end()[0] == 0
    errors = {row["path"]: row["error"] or "" for row in application.rows}
    assert errors["/empty"] == "the file is empty"
    assert errors["/text"].startswith("not an image")
    assert errors["/vanished"] == "cannot be read from HDFS: the file is not there any more"
    assert sum(not error for error in errors.values()) == 2


def test_rows_computed_before_are_committed_to_the_next_application_master(place: Place) -> None:
    pictures = place.pictures(*[SLOW] * 8)
    first = job(place, pictures)
    first.refuses = lambda path: 503 if path == "/commit" else None
    place.start()
    first.until(lambda: "1-0" in first.given)
    second = Application({})
    second.given = {"1-0": pictures}
    first.close()
    place.point_to(second)

    assert place.end()[0] == 0
    assert sorted(row["path"] for row in second.rows) == [picture.name for picture in pictures]
    assert not first.rows


def test_an_application_master_that_refuses_old_leases_gets_the_pictures_done_anew(place: Place) -> None:
    pictures = place.pictures(*[SLOW] * 8)
    first = job(place, pictures)
    first.refuses = lambda path: 503 if path == "/commit" else None
    place.start()
    first.until(lambda: "1-0" in first.given)
    first.close()
    second = Application({"2-1": pictures})
    place.point_to(second)

    assert place.end()[0] == 0
    assert list(second.commits) == ["2-1"]


def test_leases_that_do_not_count_any_more_are_dropped(place: Place) -> None:
    pictures = place.pictures(*[SLOW] * LONG, 130)
    application = job(place, pictures[:LONG], pictures[LONG:])
    place.start()
    application.until(lambda: not application.waiting)
    with application.changed:
        del application.given["1-0"]

    assert place.end()[0] == 0
    assert [body["lease"] for body in application.said("/commit")] == ["1-1"]
    assert (place.root / "trace").read_text().count("begin") < 0.8 * LONG / 4, "of all pieces"


def test_a_worker_that_is_not_wanted_ends_and_leaves_nothing_running(place: Place) -> None:
    application = job(place, place.pictures(*[SLOW] * LONG))
    pid = place.start()
    application.until(lambda: bool(application.given))
    until(lambda: len(children_of(pid)) == 2)
    children = children_of(pid)
    application.refuses = lambda path: 410
    status, out, _ = place.end()

    assert status == 0
    assert "does not want this container" in out
    assert not any(alive(child) for child in children)


def test_the_end_of_the_job_s_folder_is_the_end_of_the_worker(place: Place) -> None:
    application = job(place, place.pictures(*[SLOW] * LONG))
    place.start()
    application.until(lambda: bool(application.given))
    application.close()
    (place.root / MASTER).unlink()
    (place.root / "job").rmdir()
    status, out, _ = place.end()

    assert status == 0
    assert "the job has ended" in out


def test_without_any_application_master_a_worker_ends_after_a_while(place: Place) -> None:
    application = job(place, place.pictures(*[SLOW] * LONG))
    pid = place.start(orphan=15.0)
    application.until(lambda: bool(application.given))
    until(lambda: len(children_of(pid)) == 2)
    children = children_of(pid)
    application.close()
    status, _, err = place.end()

    assert status == 1
    assert "the application master has not answered for 15 s" in err
    assert not any(alive(child) for child in children)


def test_what_is_done_before_an_application_master_is_looked_for_is_no_silence(place: Place) -> None:
    application = job(place)
    started = time.monotonic() - 1000
    lookout = Lookout(f"/{MASTER}", lambda: Folder(place.root), lambda: None, started)
    master = Master(lookout, TOKEN, "worker1", "container_1", 60.0, started)
    try:
        until(lambda: master.is_reached(time.monotonic()))
        assert master.call("/heartbeat", {}, time.monotonic()) == {"holding": []}
    finally:
        lookout.close()
        master.close()
        application.close()


def test_processes_end_with_a_parent_that_is_killed(place: Place) -> None:
    application = job(place, place.pictures(*[HANGS] * 40))
    pid = place.start()
    application.until(lambda: bool(application.given))
    until(lambda: len(children_of(pid)) == 2)
    children = children_of(pid)
    os.kill(pid, signal.SIGKILL)

    until(lambda: not any(alive(child) for child in children))


def test_a_process_that_is_killed_from_outside_costs_a_fork(place: Place) -> None:
    pictures = place.pictures(*[SLOW] * 24)
    application = job(place, pictures)
    application.refuses = lambda path: 503 if path == "/commit" else None  # so that no worker is done before that
    pid = place.start()
    application.until(lambda: bool(application.given))
    until(lambda: len(children_of(pid)) == 2)
    os.kill(children_of(pid)[0], signal.SIGKILL)
    application.refuses = lambda path: None

    assert place.end()[0] == 0
    assert [row["error"] for row in application.rows] == [None] * len(pictures)


def test_weights_that_do_not_fit_are_told_as_everybody_s_failure(place: Place) -> None:
    application = job(place, place.pictures(101))
    place.start(engine="unloadable")
    status, _, err = place.end()

    assert status == 1
    assert "Traceback" not in err
    (told,) = application.said("/failed")
    assert told["everywhere"]
    assert told["reason"] == "cat.params does not fit"


def test_processes_that_die_of_whatever_they_get_are_no_pictures_fault(place: Place) -> None:
    application = job(place, place.pictures(*range(100, 180)))
    place.start(engine="deadly")
    status, _, _ = place.end()

    assert status == 1
    (told,) = application.said("/failed")
    assert not told["everywhere"]
    assert "processes died one after the other" in told["reason"]
