"""A member's side of the calls to the application master, which is played: it answers what a test says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from learning.errors import LearningError
from learning.lead import master
from learning.lead.calls import MOST_CUT_OFF, Answer, Doing, Done, Say
from learning.lead.lead import Told
from learning.lead.master import Master
from locality.training.generation_events import Generation

MADE = Generation(1, 1, ("a", "b"), 0, True, ("b",), "h:1:s")
LATER = Generation(2, 2, ("a",), 9, False, (), "h:1:s")
ANSWER = Answer(MADE, attempt=1, checkpoint=5)
SECONDS = 20.0
"""The longest that anything here may take."""
CALL_SECONDS = master.TIMEOUT_SECONDS
Reply = tuple[int, bytes]


def ok(answer: Answer) -> Reply:
    return 200, json.dumps(answer.to_json()).encode()


def error(status: int, said: str) -> Reply:
    return status, json.dumps({"error": said}).encode()


class Played:
    """Answers `reply` to each call, and keeps what was said."""

    def __init__(self) -> None:
        self.reply: Reply = ok(Answer(attempt=1))
        self.said: list[Say] = []
        self.sizes: list[int] = []
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def hear(self, body: bytes) -> Reply:
        with self._changed:
            self.said.append(Say.from_json(json.loads(body)))
            self.sizes.append(len(body))
            self._changed.notify_all()
            return self.reply

    def answer(self, reply: Reply, until: Callable[[Say], bool] = lambda say: True, calls: int = 1) -> Say:
        """From now on; once so many such calls were answered with it, the last of them."""
        with self._changed:
            self.reply, before = reply, len(self.said)

            def found() -> list[Say]:
                return [say for say in self.said[before:] if until(say)]

            assert self._changed.wait_for(lambda: len(found()) >= calls, SECONDS)
            return found()[-1]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        played = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                status, content = played.hear(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


class Time:
    """Goes on only when it shall."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Doings:
    """Something that a member does, in a thread of its own."""

    def __init__(self, does: Callable[[], Any]) -> None:
        self._does = does
        self._found: Any = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def result(self) -> Any:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        if isinstance(self._found, Exception):
            raise self._found
        return self._found

    @property
    def goes_on(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._found = self._does()
        except Exception as error:
            self._found = error


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is given up is made again, with another number, while the first may still be heard."""
    monkeypatch.setattr(master, "TIMEOUT_SECONDS", SECONDS)


@pytest.fixture
def played() -> Iterator[Played]:
    one = Played()
    yield one
    one.close()


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def member(played: Played, clock: Time) -> Iterator[Master]:
    one = Master(lambda: played.address, "a token", "a", "127.0.0.1", clock)
    yield one
    played.reply = error(410, "the test is over")
    one.close(None)
    if one._thread:
        one._thread.join(SECONDS)


def wait(member: Master, after: int = 0, steps: int = -1) -> Doings:
    return Doings(lambda: member.next_generation(after, steps, lambda: "h:2:s"))


def until(holds: Callable[[], Any]) -> None:
    """As soon as it is true, of what tells nobody when it is."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it does not hold"
        time.sleep(0.002)


def test_a_member_waits_computes_and_says_that_it_is_done(played: Played, member: Master) -> None:
    waiting = wait(member)
    played.answer(ok(ANSWER), lambda say: say.doing is Doing.WAITS)
    assert waiting.result() == Told(MADE, {})
    assert not member.is_over(1) and not member.is_ending(1)
    member.tell(Done(steps=3, steps_in_all=9), 2)
    say = played.answer(ok(Answer(MADE, is_ending=True, attempt=1)), lambda say: say.doing is Doing.COMPUTES, 2)
    assert (say.number, say.done.steps, say.checkpoint) == (1, 3, 2)
    member.close(None)

    assert played.said[-1].doing is Doing.DONE
    calls = [say.call for say in played.said]
    assert calls == list(range(1, len(calls) + 1))


def test_the_first_call_tells_what_was_told_before(played: Played, member: Master) -> None:
    member.tell(Done(steps_in_all=9), 7)
    waiting = wait(member)
    played.answer(ok(ANSWER))
    waiting.result()

    assert (played.said[0].checkpoint, played.said[0].steps, played.said[0].done.steps_in_all) == (7, -1, 9)


def test_the_confirmed_checkpoint_is_that_of_the_newest_answer(played: Played, member: Master) -> None:
    assert member.confirmed() == 0
    waiting = wait(member)
    played.answer(ok(ANSWER))
    waiting.result()

    assert member.confirmed() == 5


SAME = Answer(attempt=1, checkpoint=6, is_same=True)


def test_a_member_says_which_generation_it_knows_and_keeps_it(played: Played, member: Master) -> None:
    played.reply = ok(replace(ANSWER, measures={"a": 2.0}, nodes={"a": "n1"}))
    assert wait(member).result() == Told(MADE, {"a": 2.0}, {"a": "n1"})
    first = played.said[0]
    assert (first.doing, first.attempt, first.known) == (Doing.WAITS, 0, 0)
    said = played.answer(ok(SAME), lambda say: say.known == 1, 2)
    assert said.attempt == 1
    until(lambda: member.confirmed() == 6)
    assert not member.is_over(1)
    played.answer(ok(replace(SAME, is_over=True)), calls=2)

    assert member.is_over(1)
    waiting = wait(member, after=1)
    assert played.answer(ok(replace(SAME, is_over=True)), lambda say: say.doing is Doing.WAITS).known == 1
    assert waiting.goes_on
    played.answer(ok(Answer(LATER, attempt=1)))
    assert waiting.result() == Told(LATER, {})


def test_a_member_that_begins_anew_knows_nothing(played: Played, clock: Time) -> None:
    for _ in range(2):
        member = Master(lambda: played.address, "a token", "a", "127.0.0.1", clock)
        before, played.reply = len(played.said), ok(ANSWER)
        wait(member).result()
        first = played.said[before]
        assert (first.call, first.attempt, first.known) == (1, 0, 0)
        played.answer(ok(SAME), lambda say: say.known == 1)
        member.close(None)


@pytest.mark.parametrize("untold", [SAME, replace(SAME, attempt=2)], ids=["first", "of a later attempt"])
def test_what_leaves_out_a_generation_that_was_not_told_is_asked_for_again(
    played: Played, member: Master, untold: Answer
) -> None:
    waiting = wait(member)
    if untold.attempt == 2:
        played.answer(ok(replace(ANSWER, is_over=True)), calls=2)
    played.answer(ok(untold), calls=2)
    assert waiting.goes_on and member.confirmed() < untold.checkpoint
    played.answer(ok(Answer(LATER, attempt=2)))

    assert waiting.result() == Told(LATER, {})


def test_a_run_that_is_done_has_no_generation(played: Played, member: Master) -> None:
    played.reply = ok(Answer(MADE, is_done=True, attempt=2))

    assert wait(member).result() is None


def test_a_store_that_takes_long_to_offer_does_not_keep_the_member_from_calling(played: Played, member: Master) -> None:
    offers: list[str] = []
    may_offer = threading.Event()

    def offer() -> str:
        offers.append("h:2:s")
        if len(offers) == 3:
            may_offer.wait(SECONDS)
        return offers[-1]

    waiting = Doings(lambda: member.next_generation(0, -1, offer))
    until(lambda: len(offers) == 3)
    played.answer(ok(ANSWER), calls=3)
    may_offer.set()

    assert waiting.result() == Told(MADE, {})


def test_who_computed_for_long_without_an_answer_waits_as_long_as_any_other(
    played: Played, member: Master, clock: Time
) -> None:
    waiting = wait(member)
    played.answer(ok(ANSWER))
    waiting.result()
    played.answer(error(503, "not yet"), lambda say: say.doing is Doing.COMPUTES)
    clock.now += master.ORPHAN_SECONDS + 100
    waiting = wait(member, after=1)
    played.answer(error(503, "not yet"), lambda say: say.doing is Doing.WAITS, 3)
    assert waiting.goes_on
    played.answer(ok(Answer(LATER, attempt=2)))

    assert waiting.result() == Told(LATER, {})


@pytest.mark.parametrize(("status", "said"), [(500, "no space left"), (413, "4,097 bytes")])
def test_who_waits_for_too_long_says_why_nobody_answered(
    played: Played, member: Master, clock: Time, status: int, said: str
) -> None:
    waiting = wait(member)
    played.answer(error(status, said), calls=3)
    assert waiting.goes_on
    clock.now += master.ORPHAN_SECONDS + 1

    with pytest.raises(LearningError, match=rf"has not answered for 300 s: it answers {status} \({said}\)"):
        waiting.result()


def test_an_application_master_that_waits_itself_is_waited_for(played: Played, member: Master, clock: Time) -> None:
    waiting = wait(member)
    for _ in range(3):
        played.answer(error(503, "safe mode"), calls=3)
        clock.now += master.ORPHAN_SECONDS / 2
    played.answer(error(503, "safe mode"), calls=3)
    assert waiting.goes_on
    played.answer(ok(ANSWER))

    assert waiting.result() == Told(MADE, {})


def test_who_has_missed_a_whole_generation_has_stopped_in_it(played: Played, member: Master) -> None:
    waiting = wait(member)
    played.answer(ok(replace(ANSWER, is_over=True)))
    said = played.answer(ok(replace(ANSWER, is_over=True)), lambda say: say.number == MADE.number)
    assert (said.doing, said.steps) == (Doing.WAITS, -1)
    played.answer(ok(Answer(LATER, attempt=2)))

    assert waiting.result() == Told(LATER, {})


def test_a_member_leaves_an_application_master_that_is_followed_by_another(played: Played, clock: Time) -> None:
    other, where = Played(), [played.address]
    member = Master(lambda: where[0], "a token", "a", "127.0.0.1", clock)
    try:
        waiting = wait(member)
        played.answer(ok(Answer(attempt=1)))
        where[0] = other.address
        other.answer(ok(Answer(LATER, attempt=2)))

        assert waiting.result() == Told(LATER, {})
    finally:
        other.reply = error(410, "the test is over")
        member.close(None)
        other.close()


def test_who_waits_for_too_long_says_that_nobody_knows_the_address(clock: Time) -> None:
    asked = threading.Semaphore(0)
    member = Master(lambda: asked.release(), "a token", "a", "127.0.0.1", clock)
    waiting = wait(member)
    for _ in range(2):
        assert asked.acquire(timeout=SECONDS)
    clock.now += master.ORPHAN_SECONDS + 1

    with pytest.raises(LearningError, match="300 s: nobody knows where the application master is"):
        waiting.result()


@pytest.mark.parametrize(("status", "said"), [(401, "the token is wrong"), (400, "steps cannot be 'x'")])
def test_what_no_other_answer_can_follow_ends_the_wait_at_once(
    played: Played, member: Master, status: int, said: str
) -> None:
    played.reply = error(status, said)

    with pytest.raises(LearningError, match=rf"does not hear this member: it answers {status} \({said}\)"):
        wait(member).result()
    assert member.is_over(1)


def test_a_stranger_at_an_old_address_does_not_end_a_member_that_computes(played: Played, member: Master) -> None:
    waiting = wait(member)
    played.answer(ok(ANSWER))
    waiting.result()
    played.answer(ok(ANSWER), lambda say: say.doing is Doing.COMPUTES)
    played.answer(error(401, "the token is wrong"), calls=2)
    assert not member.is_over(1)
    played.answer(ok(Answer(MADE, is_over=True, attempt=1)), calls=2)

    assert member.is_over(1)


def test_who_takes_part_no_more_is_told_why(played: Played, member: Master) -> None:
    played.reply = error(410, "a takes part no more: silent for 5.1 s")

    with pytest.raises(LearningError, match=r"^a takes part no more: silent for 5.1 s$"):
        wait(member).result()


def _generation(**more: Any) -> bytes:
    body = ANSWER.to_json()
    return json.dumps(body | {"generation": body["generation"] | more}).encode()


NONSENSE = {
    "no JSON": b"<html>",
    "a list": b"[]",
    "null": b"null",
    "nothing": b"{}",
    "no object for a generation": json.dumps(ANSWER.to_json() | {"generation": 7}).encode(),
    "a text for a number": _generation(number="1"),
    "null for members": _generation(members=None),
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("content", NONSENSE.values(), ids=NONSENSE)
def test_an_answer_that_is_none_is_asked_for_again(played: Played, member: Master, content: bytes) -> None:
    waiting = wait(member)
    played.answer((200, content), calls=2)
    assert waiting.goes_on
    played.answer(ok(ANSWER))

    assert waiting.result() == Told(MADE, {})


@pytest.mark.parametrize("content", [b"", b"[]", b'{"error": 7}'])
def test_a_refusal_that_does_not_say_why_is_one_all_the_same(played: Played, member: Master, content: bytes) -> None:
    played.reply = (410, content)

    with pytest.raises(LearningError, match=r"^this member takes part no more$"):
        wait(member).result()


def test_nobody_waits_for_a_thread_that_has_died(clock: Time) -> None:
    def find() -> str:
        raise RuntimeError("a fault")

    member = Master(find, "a token", "a", "127.0.0.1", clock)

    with pytest.raises(LearningError, match=r"cannot call the application master any more: RuntimeError\('a fault'\)"):
        wait(member).result()
    assert member.is_over(1)
    member.close(None)


OLDER = {
    "an attempt": Answer(LATER, is_over=True, attempt=1),
    "a generation": Answer(MADE, is_over=True, attempt=2),
    "without any": Answer(is_done=True, attempt=3),
}


@pytest.mark.parametrize("older", OLDER.values(), ids=OLDER)
def test_what_an_earlier_application_master_answers_is_passed_over(
    played: Played, member: Master, clock: Time, older: Answer
) -> None:
    waiting = wait(member)
    played.answer(ok(Answer(LATER, attempt=2, checkpoint=8)))
    waiting.result()
    played.answer(ok(older), calls=3)
    assert (member.is_over(2), member.confirmed()) == (False, 8)
    waiting = wait(member, after=2)
    played.answer(ok(older), lambda say: say.doing is Doing.WAITS, 3)
    assert waiting.goes_on
    clock.now += master.ORPHAN_SECONDS + 1

    with pytest.raises(LearningError, match="after 2 of 2"):
        waiting.result()


def test_that_all_is_done_is_said_for_long(played: Played, member: Master, clock: Time) -> None:
    played.reply = error(503, "not yet")
    leaving = Doings(lambda: member.close(None))
    played.answer(played.reply, lambda say: say.doing is Doing.DONE, 2)
    clock.now += 100
    played.answer(error(503, "not yet"), calls=3)
    assert leaving.goes_on
    played.answer(ok(ANSWER), lambda say: say.doing is Doing.DONE)

    leaving.result()
    assert played.said[-1].doing is Doing.DONE


def test_that_all_is_done_is_not_said_for_ever(played: Played, member: Master, clock: Time) -> None:
    played.reply = error(503, "not yet")
    leaving = Doings(lambda: member.close(None))
    played.answer(played.reply)
    clock.now += master.DONE_SECONDS + 1

    leaving.result()


def test_what_went_wrong_is_said_for_longer_than_one_call_may_take(played: Played, member: Master, clock: Time) -> None:
    played.reply = error(503, "not yet")
    leaving = Doings(lambda: member.close("ValueError: no"))
    played.answer(played.reply, lambda say: say.doing is Doing.FAILED)
    clock.now += CALL_SECONDS + 2.5
    say = played.answer(error(503, "not yet"), calls=3)
    assert leaving.goes_on and say.why == "ValueError: no"
    clock.now += 1

    leaving.result()


def test_where_all_know_that_the_run_is_done_nobody_waits_for_long(played: Played, member: Master, clock: Time) -> None:
    played.reply = ok(Answer(MADE, is_done=True, attempt=1))
    assert wait(member).result() is None
    played.reply = error(503, "it ends")
    leaving = Doings(lambda: member.close(None))
    played.answer(played.reply, lambda say: say.doing is Doing.DONE)
    clock.now += master.FAILED_SECONDS + 1

    leaving.result()


WHY = {"long": "x" * 9999, "wide": "\N{GRINNING FACE}" * 9999, "no text": "\udc80" * 600, "control": "\x01" * 9999}


@pytest.mark.parametrize("why", WHY.values(), ids=WHY)
def test_what_went_wrong_fits_into_a_call(played: Played, member: Master, why: str) -> None:
    member.close(why)

    assert len(played.said[-1].why) == 500
    assert max(played.sizes) <= 4096


def test_whom_a_member_does_not_reach_is_said_until_it_does_or_waits(played: Played, member: Master) -> None:
    waiting = wait(member)
    played.answer(ok(ANSWER))
    waiting.result()
    member.complain(7, ["c"])  # of a generation that is no more
    assert played.answer(ok(ANSWER), lambda say: say.doing is Doing.COMPUTES, 2).cut_off == ()
    member.complain(1, ["b", *map(str, range(99))])
    said = played.answer(ok(ANSWER), lambda say: bool(say.cut_off))
    assert (said.cut_off[0], len(said.cut_off)) == ("b", MOST_CUT_OFF)
    member.complain(1, [])
    played.answer(ok(ANSWER), lambda say: not say.cut_off)
    member.complain(1, ["b"])
    played.answer(ok(ANSWER), lambda say: say.cut_off == ("b",))

    waiting = wait(member, 1, 3)
    assert played.answer(ok(Answer(LATER, attempt=1)), lambda say: say.doing is Doing.WAITS).cut_off == ()
    waiting.result()
