"""The store at which members find each other: for those who know its secret, for as long as its member lives."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from torch.distributed import PrefixStore

from learning.errors import LearningError
from learning.lead.lead import Alone, Told
from learning.member.group import Broken, Group, Place
from learning.member.membership import Membership
from learning.member.store import Store, StoreClient, name_of

HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store(HOST)
    yield made
    made.close()


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def client(address: str, is_over: bool = False) -> StoreClient:
    return StoreClient(address, lambda: is_over)


def test_what_one_member_tells_another_hears(store: Store) -> None:
    first, second = client(store.offer()), client(store.offer())
    heard: list[bytes] = []
    waiting = threading.Thread(target=lambda: heard.append(second.get("rank 0")))
    waiting.start()

    first.set("rank 0", bytes(range(256)))
    waiting.join(60)

    assert heard == [bytes(range(256))]
    for one in (first, second):
        one.close()


class Offering(Alone):
    """Members of its generations find each other at the store that was offered last."""

    address = ""

    def next_generation(self, after: int, steps: int, store: Callable[[], str]) -> Told:
        self.address = store()
        return super().next_generation(after, steps, store)


def test_a_new_generation_makes_its_members_stores_forget_those_before() -> None:
    lead = Offering()
    membership = Membership(lead)
    membership.form(0)
    of_all = client(lead.address)
    for number in (1, 2, 21):  # of the next one, members may have told something before this one hears of it
        PrefixStore(name_of(number), of_all).set("rank 0", "here")
    membership.give_up()

    membership.form(0)

    values = [of_all._ask({"get": f"generation {number}/rank 0", "seconds": 0})["value"] for number in (1, 2, 21)]
    assert values == [None, b"here".hex(), None]
    of_all.close()
    membership.leave(None)


def test_what_can_be_forgotten_leaves_room(store: Store) -> None:
    """As with many members and many generations."""
    one = client(store.offer())
    for number in range(1, 5):
        for rank in range(256):
            one.set(f"{name_of(number)}/{rank}", bytes(70_000))
        store.keep(number)

    assert rss_of(_process_of(store)) < 120 << 20
    one.close()


def rss_of(pid: int) -> int:
    """Bytes of memory that a process has now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_store_that_does_not_answer_is_left_alone(store: Store) -> None:
    store.offer()
    os.kill(_process_of(store), signal.SIGKILL)
    until(lambda: store._process is not None and store._process.poll() is not None)

    store.keep(1)


def test_waiting_ends_with_the_generation(store: Store) -> None:
    one = client(store.offer(), is_over=True)

    with pytest.raises(InterruptedError):
        one.wait(["never told"])
    one.close()


def test_a_stranger_is_told_nothing(store: Store) -> None:
    host, port, _ = store.offer().split(":")
    stranger = client(f"{host}:{port}:guessed")

    with pytest.raises(OSError):
        stranger.get("rank 0")
    stranger.close()
    known = client(store.offer())  # which goes on to serve those who know it
    known.set("a", b"b")
    assert known.get("a") == b"b"
    known.close()


def test_it_listens_on_its_host_alone(store: Store) -> None:
    _, port, _ = store.offer().split(":")

    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", int(port)), 60):
        pass


def test_one_that_died_is_replaced_and_one_that_lives_stays(store: Store) -> None:
    first = store.offer()
    assert store.offer() == first
    assert store._process is not None
    os.kill(store._process.pid, signal.SIGKILL)
    until(lambda: store._process is not None and store._process.poll() is not None)

    second = store.offer()

    assert second != first
    one = client(second)
    one.set("a", b"b")
    one.close()


def test_one_that_died_is_replaced_before_it_is_asked_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("learning.member.store.AGAIN_SECONDS", 0.0)
    first = _process_of(store)
    os.kill(first, signal.SIGKILL)
    until(lambda: store._process is not None and store._process.poll() is not None)

    store.revive()
    begun = store._process

    assert begun is not None and begun.pid not in (first, None) and begun.poll() is None
    assert _process_of(store) == begun.pid
    client(store.offer()).close()


def test_one_that_cannot_be_replaced_ends_nothing_before_it_is_asked_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learning.member.store.AGAIN_SECONDS", 0.0)
    first = _process_of(store)
    os.kill(first, signal.SIGKILL)
    until(lambda: store._process is not None and store._process.poll() is not None)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    store.revive()

    with pytest.raises(LearningError, match="no store can be started"):
        store.offer()


def test_no_store_is_begun_before_one_is_asked_for(store: Store) -> None:
    store.revive()

    assert store._process is None


def test_it_ends_with_its_member_even_if_a_process_that_this_has_forked_lives_on() -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        server = _process_of(Store(HOST))
        forked = os.fork() or _sleep_on()
        os.write(writer, f"{server} {forked}".encode())
        os._exit(0)  # without a word, as one that is killed
    os.waitpid(pid, 0)
    server, forked = map(int, os.read(reader, 100).split())

    try:
        until(lambda: not _is_running(server))
        assert _is_running(forked)
    finally:
        os.kill(forked, signal.SIGKILL)


def _sleep_on() -> NoReturn:
    while True:
        time.sleep(60)


def test_it_starts_wherever_the_program_works(tmp_path: Path) -> None:
    program = "import os, sys; from learning.member.store import Store; "
    program += "os.chdir(sys.argv[1]); print(Store(sys.argv[2]).offer())"
    environment = {**os.environ, "PYTHONPATH": os.path.relpath(ROOT)}

    told = subprocess.run(
        [sys.executable, "-c", program, tmp_path, HOST], env=environment, capture_output=True, text=True, check=True
    )

    assert told.stdout.startswith(f"{HOST}:")


def _process_of(store: Store) -> int:
    store.offer()
    assert store._process is not None
    return store._process.pid


def _is_running(pid: int) -> bool:
    """Nobody may be there to wait for one that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_host_that_is_not_here_is_refused() -> None:
    with pytest.raises(LearningError, match=r"no store can be started on 192\.0\.2\.1"):
        Store("192.0.2.1").offer()


def test_a_group_whose_other_member_does_not_come_is_given_up(store: Store) -> None:
    over: list[bool] = []
    group = Group(Place(1, 0, 2, store.offer(), HOST), lambda: bool(over))
    threading.Timer(0.3, over.append, [True]).start()

    with pytest.raises(Broken, match="the generation is over"):
        group.form()
    group.abandon().join(20)
