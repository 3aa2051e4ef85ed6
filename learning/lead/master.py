"""The application master as a member's lead: a thread calls it several times a second, and finds it again.

While it is away the member computes on: only a new generation has to wait for it.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from learning.errors import LearningError
from learning.lead.calls import LONGEST_WHY, MEMBER, MOST_CUT_OFF, Answer, Doing, Done, Say
from learning.lead.lead import Told
from locality.training.generations import USUAL

COMPUTING_SECONDS, WAITING_SECONDS = 0.2, 0.05
"""Between two calls, of up to so many members; more call more rarely."""
TIMEOUT_SECONDS = 2.0
ORPHAN_SECONDS = 300.0
"""A member that waits for a generation ends after so long without any answer."""
DONE_SECONDS, FAILED_SECONDS = 120.0, 5.0
"""How long a member that leaves tries to say so: without its word, done work would be done again."""
BUSY = 503
"""It waits for its journal or for HDFS, and decides nothing meanwhile."""
NOT_TAKEN = (400, 401)
"""Answers to a call that will never be another."""
GONE = "this member takes part no more"


class Master:
    """`find` says where it is now, as an address like http://host:port, or None; it is asked before each call."""

    def __init__(
        self,
        find: Callable[[], str | None],
        token: str,
        process: str,
        host: str,
        clock: Callable[[], float] = time.monotonic,
        node: str = "",
    ) -> None:
        self.process = process
        self.host = host
        self._find = find
        self._clock = clock
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection: http.client.HTTPConnection | None = None
        self._address = ""
        self._say = Say(process, Doing.COMPUTES, 0, -1, node=node)
        self._answer = Answer()
        self._heard_at = clock()
        self._problem = ""
        self._refused = ""
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._has_ended = False

    def next_generation(self, after: int, steps: int, store: Callable[[], str]) -> Told | None:
        """Wait for it; LearningError when this member takes part no more, or nobody answers for too long."""
        began = self._clock()
        while True:
            after = self._after_missed(after)
            offered = store()  # it may take seconds, in which the thread has to go on
            with self._wake:
                if self._say.doing is not Doing.WAITS:
                    self._wake.notify_all()
                self._say = replace(self._say, doing=Doing.WAITS, number=after, steps=steps, store=offered, cut_off=())
                self._start()
                if self._answer.is_done:
                    return None
                if (told := self._told(after)) is not None:
                    number = told.generation.number
                    self._say = replace(self._say, doing=Doing.COMPUTES, number=number, store="")
                    return told
                self._check(began)
                self._wake.wait(WAITING_SECONDS)

    def is_over(self, number: int) -> bool:
        """Whether generation `number` ends at once, or this member is not wanted any more."""
        made = self._answer.generation
        is_newest = made is not None and made.number == number
        return bool(self._refused) or self._has_ended or not is_newest or self._answer.is_over

    def is_ending(self, number: int) -> bool:
        """Whether it ends after a step."""
        made = self._answer.generation
        return made is not None and made.number == number and self._answer.is_ending

    def finished(self) -> int:
        """Steps of the run, as the newest answer tells."""
        return self._answer.finished

    def is_stopping(self) -> bool:
        """Whether the run shall end after the step that is computed."""
        return self._answer.is_stopping

    def tell(self, done: Done, checkpoint: int) -> None:
        """Goes along with the next call, whatever that is."""
        with self._wake:
            steps = done.steps if self._say.doing is Doing.COMPUTES else self._say.steps
            self._say = replace(self._say, steps=steps, done=done, checkpoint=checkpoint)

    def complain(self, number: int, members: Sequence[str]) -> None:
        """Goes along with each call, as long as this member is in that generation."""
        with self._wake:
            if self._say.doing is Doing.COMPUTES and self._say.number == number:
                self._say = replace(self._say, cut_off=tuple(members[:MOST_CUT_OFF]))

    def confirmed(self) -> int:
        """Steps of the newest checkpoint that the journal has, as the newest answer tells."""
        return self._answer.checkpoint

    def close(self, why: str | None) -> None:
        """Say goodbye, and wait until it is heard: long where that matters, and a moment where it is known already."""
        doing = Doing.DONE if why is None else Doing.FAILED
        with self._wake:
            self._say = replace(self._say, doing=doing, store="", cut_off=(), why=(why or "")[:LONGEST_WHY])
            self._start()
            self._wake.notify_all()
            began = self._clock()
            while not self._has_ended and self._clock() - began < self._patience():
                self._wake.wait(WAITING_SECONDS)

    def _patience(self) -> float:
        return DONE_SECONDS if self._say.doing is Doing.DONE and not self._answer.is_done else FAILED_SECONDS

    def _check(self, began: float) -> None:
        """LearningError when it is of no use to wait, as this member has done since second `began`."""
        if self._refused or self._has_ended:
            raise LearningError(self._refused or "this member has said that it leaves")
        if self._clock() - max(self._heard_at, began) > ORPHAN_SECONDS:
            problem = f": {self._problem}" if self._problem else ""
            raise LearningError(f"the application master has not answered for {ORPHAN_SECONDS:.0f} s{problem}")

    def _after_missed(self, after: int) -> int:
        """The number of a generation of this member that was over before it began there; else `after`."""
        made, answer = self._answer.generation, self._answer
        is_missed = made is not None and answer.is_over and self.process in made.members
        return max(after, made.number) if made is not None and is_missed else after

    def _told(self, after: int) -> Told | None:
        made = self._answer.generation
        if made is None or made.number <= after or self.process not in made.members or self._answer.is_over:
            return None
        return Told(made, self._answer.measures, self._answer.nodes)

    def _start(self) -> None:
        """Once there is something to say."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._talk, name="application master", daemon=True)
            self._thread.start()

    def _talk(self) -> None:
        """Until the last word is heard, or the member is refused; nobody waits for a thread that has ended."""
        try:
            self._talk_on()
        except Exception as error:
            self._refused = f"this member cannot call the application master any more: {error!r}"
        finally:
            self._hang_up()
            with self._wake:
                self._has_ended = True
                self._wake.notify_all()

    def _talk_on(self) -> None:
        call = 0
        while not self._refused:
            call += 1
            attempt, known = self._answer.age
            with self._wake:
                say = replace(self._say, call=call, attempt=attempt, known=known)
            is_heard = self._call(say)
            if is_heard and say.doing in (Doing.DONE, Doing.FAILED):
                return
            with self._wake:
                self._wake.notify_all()
                if self._say.doing == say.doing or not is_heard:
                    self._wake.wait(self._pause(say.doing) if is_heard else WAITING_SECONDS)

    def _pause(self, doing: Doing) -> float:
        made = self._answer.generation
        crowd = max(1.0, len(made.members) / USUAL.crowd) if made else 1.0
        return crowd * (COMPUTING_SECONDS if doing is Doing.COMPUTES else WAITING_SECONDS)

    def _call(self, say: Say) -> bool:
        """Whether it has answered; what it has not is kept as the problem."""
        try:
            status, content = self._post(json.dumps(say.to_json(), ensure_ascii=False).encode(errors="replace"))
            if status == 200:
                self._note(Answer.from_json(json.loads(content)))
                return True
            self._problem = f"it answers {status} ({_error(content) or 'and does not say why'})"
            if status == BUSY:
                self._heard_at = self._clock()
                return False  # by the same connection again
            if status == 410:
                self._refused = _error(content) or GONE
            elif status in NOT_TAKEN and say.doing in (Doing.WAITS, Doing.FAILED):
                self._refused = f"the application master does not hear this member: {self._problem}"
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            self._problem = str(error) or repr(error)
        self._hang_up()
        return False

    def _note(self, answer: Answer) -> None:
        """ConnectionError when a later one is known: this is an application master that leads no more."""
        answer = answer.complete(self._answer)
        (attempt, number), (latest, newest) = answer.age, self._answer.age
        if attempt < latest or number < newest:
            raise ConnectionError(f"attempt {attempt} answers with generation {number}, after {newest} of {latest}")
        self._answer = answer
        self._heard_at = self._clock()
        self._problem = ""

    def _post(self, body: bytes) -> tuple[int, bytes]:
        address = self._find() or ""
        if address != self._address:
            self._hang_up()
        if self._connection is None:
            self._address, parts = address, urlsplit(address)
            if not parts.hostname:
                raise ConnectionError("nobody knows where the application master is")
            self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_SECONDS)
        self._connection.request("POST", MEMBER, body, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.will_close:
            self._hang_up()
        return answer.status, content

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _error(content: bytes) -> str:
    """What an answer says that went wrong; nothing where it is none of an application master."""
    try:
        said: Any = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    error = said.get("error") if isinstance(said, dict) else None
    return error if isinstance(error, str) else ""
