"""Leads a run: hears its members, decides which generations there are, and records each decision before it counts.

Any number of threads may call; the clock is passed in. Standard library only, as application masters have no PyTorch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from learning.lead.calls import Answer, Doing, Done, Say
from learning.lead.worth import Worth
from locality.training.generation_events import Began, Checkpointed, Event, Finished, Lost, StopAsked
from locality.training.generations import Generations, MemberRules, Phase, Refused

PAUSE_SECONDS, TURN_SECONDS = 0.5, 0.1
"""A leader that has looked at its clock no more for longer than this was away, and counts it as one short turn."""
MOST_FRUITLESS = 3
"""Generations one after the other that begin with the same step as the one before, and have all its members."""
BUSY_SECONDS = 1.5
"""A call waits no longer for others: members give a call up after two seconds."""
UNDONE = "it has ended before all steps were done"


class Unwanted(Exception):
    """The member that calls takes part no more."""


class Busy(Exception):
    """The leader does not answer now: the member calls again."""


class Inconsistent(RuntimeError):
    """The leader has decided what its own state does not allow: a fault of nodewise, and nobody's who calls."""


@dataclass(frozen=True)
class Member:
    """What is known of a process that has called, on `node`; `call` is the number of its newest call."""

    doing: Doing
    done: Done = field(default_factory=Done)
    said: str = ""
    call: int = 0
    node: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether it has said its last word."""
        return self.doing in (Doing.DONE, Doing.FAILED)


class Attention:
    """A clock of the seconds in which members could be heard: it stands still while their leader is away."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen = clock()
        self._now = 0.0

    def now(self) -> float:
        """The seconds until now."""
        seen = self._clock()
        passed = max(0.0, seen - self._seen)
        self._now += passed if passed <= PAUSE_SECONDS else TURN_SECONDS
        self._seen = seen
        return self._now

    def skip(self) -> None:
        """What has passed since it was asked last does not count."""
        self._seen = self._clock()


class Leader:
    """`record` makes an event durable, and raises when another attempt leads; `earlier` are the events before."""

    def __init__(
        self,
        attempt: int,
        rules: MemberRules,
        record: Callable[[Event], None],
        clock: Callable[[], float],
        earlier: Iterable[Event] = (),
    ) -> None:
        self._record = record
        self._time = Attention(clock)
        self._lock = threading.RLock()
        self._members: dict[str, Member] = {}
        self._measures: dict[str, float] = {}
        self._worth = Worth(rules.most)
        self._told: dict[str, tuple[Doing, int, str]] = {}
        self._same: Answer | None = None
        """What all who know the generation are answered; None after an event, which may change it."""
        self._generations = Generations.replay(earlier, self._time.now(), rules)
        self._decide(Began(attempt))

    def members(self) -> Mapping[str, Member]:
        """All that have called, by the names of their processes."""
        with self._lock:
            return dict(self._members)

    @property
    def phase(self) -> Phase:
        """Where the run stands."""
        return self._generations.phase

    @property
    def checkpoint(self) -> int:
        """Steps of the newest state that is stored."""
        return self._generations.checkpoint

    @property
    def is_done(self) -> bool:
        """Whether the run has ended, as a member of the current generation has said to this attempt or an earlier."""
        return self._generations.finished > 0

    @property
    def is_stopped(self) -> bool:
        """Whether it has ended before all its steps were done."""
        return self._generations.is_stopped

    @property
    def steps(self) -> int:
        """Steps that are done, as far as members, or the journal, tell."""
        with self._lock:
            known, current = self._generations, self._generations.current
            first_step = current.first_step if current else 0
            told = [member.done.steps for member in self._members.values()]
            return max(first_step, known.checkpoint, known.finished, *told)

    @property
    def steps_in_all(self) -> int:
        """Steps that the run has; 0 before a member has told it."""
        with self._lock:
            return max(self._generations.finished, *(one.done.steps_in_all for one in self._members.values()), 0)

    @property
    def hopeless(self) -> str:
        """Why the run should end, as one generation after the other does nothing; empty when it does not."""
        with self._lock:
            current, fruitless = self._generations.current, self._generations.fruitless
            if current is None or fruitless < MOST_FRUITLESS:
                return ""
            return (
                f"generations {current.number - fruitless} to {current.number - 1} did not get beyond step "
                f"{current.first_step:,}; the members of the next are {', '.join(current.members)}"
            )

    def judge(self, measures: Mapping[str, float]) -> None:
        """What members may be worth, in any unit, by the names of their processes."""
        with self._lock:
            self._measures |= measures

    def hear(self, say: Say) -> Answer:
        """A member's call; Unwanted when it takes part no more, Busy when an event is recorded for long."""
        if not self._lock.acquire(timeout=BUSY_SECONDS):
            raise Busy("the run waits until what has happened is recorded")
        try:
            if not self._is_late(say):
                is_news = self._is_news(say)
                self._take(say)
                if is_news:
                    self._turn(is_silence_judged=False)
            return self._answer(say)
        finally:
            self._lock.release()

    def lose(self, process: str, reason: str) -> None:
        """A process is known to have ended."""
        with self._lock:
            self._lose(process, reason)
            self._turn(is_silence_judged=False)

    def stop(self) -> None:
        """The run shall end after the step that its members compute."""
        with self._lock:
            if not (self.is_done or self._generations.is_stopping):
                self._decide(StopAsked(self._generations.attempt))

    def note_stored(self, steps: int) -> None:
        """The newest state that is stored is the one after so many steps."""
        with self._lock:
            if steps > self._generations.checkpoint:
                self._decide(Checkpointed(self._generations.attempt, steps))

    def hang_up(self, process: str, has_another: Callable[[], bool] = lambda: False) -> None:
        """The connection by which a process called last has ended.

        Whether it `has_another` by now is asked when no call is heard meanwhile: what calls after that is alive.
        """
        if self._lock.acquire(timeout=BUSY_SECONDS):  # else its silence will tell
            try:
                if not has_another():
                    self._generations.hang_up(process, self._time.now())
            finally:
                self._lock.release()

    def tick(self) -> None:
        """Time has passed; several times a second. Only now those that are silent are lost."""
        with self._lock:
            self._turn(is_silence_judged=True)

    def _is_late(self, say: Say) -> bool:
        """Whether the process has said something else since, or its last word; Unwanted when it had failed."""
        known = self._members.get(say.process)
        if known is None:
            return False
        if known.doing is Doing.FAILED and say.doing is not Doing.FAILED:
            raise Unwanted(f"{say.process} takes part no more: {known.said}")
        return known.has_ended or 0 < say.call <= known.call

    def _is_news(self, say: Say) -> bool:
        """Whether something may follow at once: most calls only say that a member goes on."""
        told = (say.doing, say.number, say.store)
        is_same = self._told.get(say.process) == told
        self._told[say.process] = told
        return not is_same

    def _take(self, say: Say) -> None:
        """What members say counts once they may say it and what follows from it is recorded."""
        if say.doing is Doing.FAILED:
            if self._generations.is_lost(say.process):
                return  # its program ends because it was told so
            self._lose(say.process, say.why)
            self._remember(say)
            return
        self._let_speak(say)
        if say.doing is Doing.DONE and not self._finish(say):
            self._take(replace(say, doing=Doing.FAILED, why=UNDONE))
            return
        self._remember(say)
        self._generations.allow_step(say.process, say.done.longest_step_seconds)
        self.note_stored(say.checkpoint)

    def _let_speak(self, say: Say) -> None:
        now = self._time.now()
        try:
            if say.doing is Doing.WAITS:
                self._generations.stop(say.process, say.number, say.steps, say.store, now)
            else:
                self._generations.beat(say.process, now)
                self._generations.complain(say.process, say.number, say.cut_off, now)
        except Refused as error:
            raise Unwanted(str(error)) from None

    def _finish(self, say: Say) -> bool:
        """Whether the run has ended, when this member says so."""
        done = say.done
        has_all = done.steps == done.steps_in_all > 0
        if not self.is_done and (has_all or done.is_stopped) and say.process in self._generations.members:
            self._decide(Finished(self._generations.attempt, done.steps, is_stopped=not has_all))
        return self.is_done

    def _remember(self, say: Say) -> None:
        """What a member tells when it fails may be less than what it has told before."""
        known = self._members.get(say.process)
        done = known.done if known and say.doing is Doing.FAILED and not say.done.steps else say.done
        node = say.node or (known.node if known else "")
        self._members[say.process] = Member(say.doing, done, say.why, say.call, node)

    def _lose(self, process: str, reason: str) -> None:
        lost: Lost | None = self._generations.lose(process, reason)
        if lost:
            self._decide(lost)

    def _turn(self, *, is_silence_judged: bool) -> None:
        while event := self._generations.due(
            self._time.now(), self._find_wanted(), is_silence_judged=is_silence_judged
        ):
            self._decide(event)

    def _find_wanted(self) -> frozenset[str] | None:
        """The processes that are worth the end of a generation that computes; all where there is another one anyway."""
        run = self._generations
        if run.current is None or run.phase is not Phase.RUNNING or not (waiting := run.waiting):
            return None
        done = {name: one.done for name, one in self._members.items()}
        return self._worth.find_wanted(run.current, waiting, done, self._measures)

    def _decide(self, event: Event) -> None:
        """Record it, for as long as that takes, and let it count."""
        now = self._time.now()
        try:
            self._record(event)
        finally:
            self._time.skip()
        self._same = None
        try:
            self._generations.apply(event, now)
        except Refused as error:
            raise Inconsistent(f"{event} was decided and recorded, but {error}") from error

    def _answer(self, say: Say) -> Answer:
        """Most who call know the generation, and get what is the same for all of them until the next event."""
        if self._same is None:
            self._same = self._summarize()
        current = self._generations.current
        if current is None or (say.attempt, say.known) == (self._same.attempt, current.number):
            return self._same
        whole = replace(self._same, generation=current, is_same=False)
        return whole if say.doing is not Doing.WAITS else self._with_members(whole, current.members)

    def _with_members(self, answer: Answer, names: Iterable[str]) -> Answer:
        """What only those need that wait for a generation: by what its members are judged, and where they are."""
        return replace(
            answer,
            measures={name: self._measures[name] for name in names if name in self._measures},
            nodes={name: self._members[name].node for name in names if name in self._members},
        )

    def _summarize(self) -> Answer:
        """The answer without the generation."""
        run = self._generations
        return Answer(
            is_over=run.current is not None and run.phase is Phase.OVER,
            is_ending=run.current is not None and run.phase is Phase.ENDING,
            is_done=self.is_done,
            attempt=run.attempt,
            checkpoint=run.checkpoint,
            finished=run.finished,
            is_stopping=run.is_stopping,
            is_same=run.current is not None,
        )
