"""What the board keeps for a moment, and how it has jobs ended while pages wait."""

from __future__ import annotations

import gc
import threading
import weakref
from itertools import count
from pathlib import Path

import pytest

from hadoop.errors import HadoopError
from hadoop.rest.webhdfs import WebHdfs
from infosvc.wire.errors import NotReady
from jobs.dashboard.answers import Ending
from jobs.dashboard.briefly import KEPT_SECONDS, Briefly
from jobs.dashboard.ending import Endings
from jobs.dashboard.listing import LISTING_SECONDS, Progress, take
from jobs.dashboard.sources.site import Place
from jobs.dashboard.views import translate_errors
from tests.jobs.played import JOB
from tests.threads import join_threads


def test_an_answer_is_asked_for_once_and_kept_for_its_time() -> None:
    now = [0.0]
    briefly = Briefly(lambda: now[0])
    asked: list[float] = []

    def ask() -> int:
        asked.append(now[0])
        return len(asked)

    assert [briefly.get("a", 2, ask), briefly.get("a", 2, ask), briefly.get("b", 2, ask)] == [1, 1, 2]
    now[0] = 2.5
    assert briefly.get("a", 2, ask) == 3


def test_a_failure_is_kept_too() -> None:
    briefly = Briefly(lambda: 0.0)
    asked: list[int] = []

    def ask() -> None:
        asked.append(1)
        raise HadoopError("away")

    for _ in range(3):
        with pytest.raises(HadoopError, match="away"):
            briefly.get("a", 2, ask)
    assert asked == [1]


def test_a_failure_that_is_kept_holds_nothing_of_what_was_read() -> None:
    briefly = Briefly(lambda: 0.0)

    class Read:
        """What was read before it went wrong."""

    kept: list[weakref.ref[Read]] = []

    def ask() -> None:
        read = Read()
        kept.append(weakref.ref(read))
        try:
            raise ValueError(read.__doc__)
        except ValueError as error:
            raise HadoopError("wrong") from error

    for _ in range(2):
        with pytest.raises(HadoopError, match="wrong"):
            briefly.get("a", 2, ask)
    gc.collect()
    assert [one() for one in kept] == [None]


def test_what_is_old_is_let_go_of() -> None:
    now = [0.0]
    briefly = Briefly(lambda: now[0])
    briefly.get("a", 2, lambda: "old")
    now[0] = KEPT_SECONDS + 1
    briefly.get("b", 2, lambda: "new")

    assert list(briefly._kept) == ["b"]


def test_while_one_asks_again_others_get_the_answer_before() -> None:
    now = [0.0]
    briefly = Briefly(lambda: now[0])
    briefly.get("a", 2, lambda: "old")
    now[0] = 3.0
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert go_on.wait(60)
        return "new"

    asking = threading.Thread(target=briefly.get, args=("a", 2, slow))
    asking.start()
    assert begun.wait(60)
    assert briefly.get("a", 2, lambda: "never") == "old"
    go_on.set()
    asking.join(60)
    assert briefly.get("a", 2, lambda: "never") == "new"


def test_a_hadoop_that_hangs_holds_up_only_so_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.dashboard.views.MOST_AT_ONCE", 2)
    room, begun, go_on = threading.BoundedSemaphore(2), threading.Barrier(3), threading.Event()

    def hanging() -> str:
        begun.wait(60)
        assert go_on.wait(60)
        return "found"

    threads = [threading.Thread(target=translate_errors(hanging, room)) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun.wait(60)
    with pytest.raises(NotReady, match="2 calls wait for Hadoop"):
        translate_errors(lambda: "never", room)()
    go_on.set()
    for thread in threads:
        thread.join(60)

    assert translate_errors(lambda: "again", room)() == "again"


def test_folders_that_take_too_long_are_given_up() -> None:
    now = count(step=LISTING_SECONDS + 1)
    nowhere = WebHdfs("http://127.0.0.1:1", "me")

    with pytest.raises(HadoopError, match="takes longer than 120 s to list"):
        take(nowhere, "/data", Progress(), lambda: float(next(now)))


def test_what_becomes_of_ending_a_job_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path, "", "", "me")
    endings = Endings(tmp_path, ("sh", "-c", "echo Error: it would not end >&2; exit 1"))

    endings.begin(place, JOB)
    join_threads("board-ending")

    assert endings.of(JOB) == Ending("failed", "it would not end")


@pytest.mark.parametrize(("kind", "words"), [("simple", " --user me"), ("kerberos", "")])
def test_with_kerberos_a_job_is_ended_as_whom_the_ticket_says(tmp_path: Path, kind: str, words: str) -> None:
    setting = f"<property><name>hadoop.security.authentication</name><value>{kind}</value></property>"
    (tmp_path / "core-site.xml").write_text(f"<configuration>{setting}</configuration>")
    endings = Endings(tmp_path, ("sh", "-c", 'echo "Error: $*" >&2; exit 1', "sh"))

    endings.begin(Place(tmp_path, "", "", "me"), JOB)
    join_threads("board-ending")

    said = f"--home {tmp_path} job kill {JOB} --hadoop-conf {tmp_path}{words}"
    assert endings.of(JOB) == Ending("failed", said)


def test_a_job_is_not_ended_when_that_cannot_be_noted(tmp_path: Path) -> None:
    endings = Endings(tmp_path, ("sh", "-c", "exit 0"))

    def note() -> None:
        raise NotReady("the database does not answer")

    with pytest.raises(NotReady, match="database"):
        endings.begin(Place(tmp_path, "", "", "me"), JOB, note)

    assert endings.of(JOB) is None


def test_what_the_command_prints_leaves_no_wish_open(tmp_path: Path) -> None:
    endings = Endings(tmp_path, ("sh", "-c", r"printf '\377'"))

    endings.begin(Place(tmp_path, "", "", "me"), JOB)
    join_threads("board-ending")

    assert endings.of(JOB) == Ending("done", "\N{REPLACEMENT CHARACTER}")


def test_not_too_many_jobs_are_ended_at_once(tmp_path: Path) -> None:
    endings = Endings(tmp_path, ("sleep", "0.5", "#"))
    monitored = Place(tmp_path, "", "", "me")
    endings._note("a", Ending("asked"))
    endings._note("b", Ending("asked"))

    noted: list[str] = []
    with pytest.raises(NotReady, match="a and b"):
        endings.begin(monitored, JOB, lambda: noted.append(JOB))
    assert not noted, "what is refused was not done"
