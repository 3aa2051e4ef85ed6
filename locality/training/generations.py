"""Generations of members: one at a time, made by one attempt of the application master at a time.

    gathering -> running -> ending after a step -> running ...
                    |               |
                    +---------------+--> over at once -> running, when there are enough

`due` says which event follows from what was heard. Whoever leads the run writes the event to the journal, then has it
applied, and only then answers members by it. A journal that is fenced, and events of earlier attempts that are refused,
leave one generation at any time: there is no split brain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from locality.training.broken_links import choose_cut_off
from locality.training.generation_events import (
    Began,
    Checkpointed,
    EndAnnounced,
    Event,
    Finished,
    Generation,
    Lost,
    StopAsked,
)
from locality.training.regrouping import NO_STATE, Ready, choose_members, make_generation
from locality.types import PlanError

STEPS_TO_STOP = 3
"""A member that shall stop has time for so many of the longest step."""


class Refused(PlanError):
    """The event or the call belongs to what is no more: an earlier attempt, or a process that counts as lost."""


class Phase(Enum):
    """Where a run stands; the value is for people."""

    GATHERING = "waits for members"
    RUNNING = "computes"
    ENDING = "ends after a step"
    OVER = "waits until all members have stopped"


@dataclass(frozen=True)
class MemberRules:
    """How members are counted.

    least, most      members of a generation
    gather_seconds   the first generation waits so long for `most`
    silence_seconds  after which a process that is not heard of is lost
    suspect_seconds  the same after the others were told to stop, or began to: somebody may be to blame
    recall_seconds   after which a process is lost whose connection has ended and that has not called again: the system
                     of a process that was killed ends its connections at once
    complain_seconds members that do not reach each other have so long to say so, before one of them is lost
    crowd            of more members than so many each calls more rarely, and has as much longer to call again
    stop_seconds     after the end, or the first member that stopped, others that have not stopped are lost: longer
                     than a step takes
    takeover_seconds a later attempt waits so long for the first member to turn to it
    """

    least: int = 1
    most: int = 256
    gather_seconds: float = 30.0
    silence_seconds: float = 5.0
    suspect_seconds: float = 3.0
    recall_seconds: float = 0.7
    complain_seconds: float = 1.0
    crowd: int = 64
    stop_seconds: float = 30.0
    takeover_seconds: float = 60.0


USUAL = MemberRules()


class Generations:
    """Pure and without a clock: `now`, in seconds, never goes back. Who leads a run has one of these.

    Events are what must survive. What members tell (`join`, `beat`, `stop`, `doubt`, `complain`) they tell again to a
    later attempt, so it is not written anywhere.
    """

    def __init__(self, rules: MemberRules = USUAL) -> None:
        """A run in which nothing has happened."""
        if not 1 <= rules.least <= rules.most:
            raise PlanError(f"a generation cannot have {rules.least} to {rules.most} members: at least 1, then more")
        self._rules = rules
        self.attempt = 0
        self.phase = Phase.GATHERING
        self.current: Generation | None = None
        self.checkpoint = 0
        self.finished = 0
        """Steps of the run once it has ended, 0 before."""
        self.is_stopped = False
        """Whether it ended before all its steps were done."""
        self.is_stopping = False
        """Whether it shall end after a step."""
        self.fruitless = 0
        """Generations one after the other that began with the same step, and lost no member."""
        self.members: tuple[str, ...] = ()
        """Of the current generation, by rank, without those that were lost since."""
        self._ranks: frozenset[str] = frozenset()
        """All members of the current generation, in no order."""
        self._lost: dict[str, str] = {}
        self._heard: dict[str, float] = {}
        self._hung_up: dict[str, float] = {}
        self._ready: dict[str, Ready] = {}
        self._broken = ""
        self._complaints: dict[str, Collection[str]] = {}
        self._complained_at = 0.0
        """When the first of these complaints was heard."""
        self._since = 0.0
        self._is_new = False
        self._step_seconds: dict[str, float] = {}
        """How long a step may take a member, as far as it has told."""

    @classmethod
    def replay(cls, events: Iterable[Event], now: float, rules: MemberRules = USUAL) -> Generations:
        """The state that events of a journal lead to; members count as heard of now."""
        found = cls(rules)
        for event in events:
            found.apply(event, now)
        return found

    @property
    def waiting(self) -> tuple[str, ...]:
        """Processes that are up and were in no generation or an earlier one, by name."""
        return tuple(sorted(self._ready.keys() - self._ranks))

    def apply(self, event: Event, now: float) -> None:
        """Note what was decided. Refused: by an earlier attempt, or of another generation than there is now."""
        if isinstance(event, Began):
            self._begin(event, now)
            return
        if event.attempt != self.attempt:
            raise Refused(f"attempt {event.attempt} has decided this, but attempt {self.attempt} leads the run")
        match event:
            case Generation():
                self._start(event, now)
            case EndAnnounced():
                self._end(event, now)
            case Lost():
                self._lose(event)
            case Checkpointed():
                self.checkpoint = max(self.checkpoint, event.steps)
            case Finished():
                self.finished, self.is_stopped = event.steps, event.is_stopped
            case StopAsked():
                self.is_stopping = True

    def join(self, process: str, store: str, now: float, steps: int = NO_STATE) -> None:
        """A process is up, offers a store and waits for a generation; Refused if it was lost.

        From a member of the current generation it is no more than a sign of life.
        """
        self._hear(process, now)
        if process not in self._ranks:
            if not self._ready and self.phase is Phase.GATHERING:
                self._since = now
            self._ready[process] = Ready(steps, store)

    def beat(self, process: str, now: float) -> None:
        """A process lives; Refused if it was lost."""
        self._hear(process, now)

    def hang_up(self, process: str, now: float) -> None:
        """The connection of a process has ended: it calls again at once, or is no more."""
        if process in self._heard:
            self._hung_up.setdefault(process, now)

    def stop(self, member: str, number: int, steps: int, store: str, now: float) -> None:
        """A member of generation `number` computes no more, with a state of so many steps (NO_STATE: none).

        In a generation that runs it tells that the group broke. One that says so of an earlier generation has missed
        the next, and needs to hear of it; one that has left its generation waits for another.
        """
        self._hear(member, now)
        if self.current is None or member not in self._ranks:
            self.join(member, store, now, steps)
            return
        if number != self.current.number:
            return
        if self.phase is Phase.RUNNING:
            self.doubt(number, f"{member} could not go on")
        if self.phase is Phase.ENDING and not self._has_begun_to_stop():
            self._since = now
        self._complaints.pop(member, None)
        self._ready[member] = Ready(steps, store)

    def doubt(self, number: int, reason: str) -> None:
        """The group of generation `number` does not work any more, whoever is to blame."""
        if self.current and number == self.current.number and self.phase in (Phase.RUNNING, Phase.ENDING):
            self._broken = self._broken or reason

    def complain(self, member: str, number: int, cut_off: Collection[str], now: float) -> None:
        """These of generation `number` do not answer this member; what it has said before counts no more."""
        if not cut_off or self.current is None or number != self.current.number:
            self._complaints.pop(member, None)
            return
        if not self._complaints:
            self._complained_at = now
        self._complaints[member] = cut_off

    def is_lost(self, process: str) -> bool:
        """Whether it takes part no more."""
        return process in self._lost

    def lose(self, process: str, reason: str) -> Lost | None:
        """The event that a process is known to have ended; None if that is known already."""
        known = process in self._heard or process in self._ranks
        return Lost(self.attempt, process, reason) if known and process not in self._lost else None

    def allow_step(self, process: str, seconds: float) -> None:
        """The longest of its newest steps has taken a process so long; what it has said before counts no more.

        Who shall stop and computes a step has time for three times as long as the slowest member, if not longer.
        """
        self._step_seconds[process] = seconds

    def due(self, now: float, wanted: frozenset[str] | None = None, *, is_silence_judged: bool = True) -> Event | None:
        """The next event that follows from what was heard; None if there is nothing to decide.

        `wanted` are the processes worth having, None: all. Call it again after the event was applied. Where silence is
        not judged, nobody is lost who may have called without being heard yet.
        """
        if self.finished:
            return None
        silent = self._find_silent(now) if is_silence_judged else None
        late = self._find_late(now) if is_silence_judged else None
        cut_off = self._find_cut_off(now) if is_silence_judged else None
        return silent or cut_off or self._find_end(wanted) or late or self._find_next(now, wanted)

    def _begin(self, event: Began, now: float) -> None:
        if event.attempt <= self.attempt:
            raise Refused(f"attempt {event.attempt} cannot take over from attempt {self.attempt}")
        self.attempt = event.attempt
        self._heard = dict.fromkeys(self.members, now + self._rules.takeover_seconds)
        self._hung_up = {}
        self._ready = {}
        self._broken = ""
        self._complaints = {}
        self._since = now
        self._is_new = True

    def _start(self, made: Generation, now: float) -> None:
        latest = self.current.number if self.current else 0
        if made.number != latest + 1 or self.phase not in (Phase.GATHERING, Phase.OVER, Phase.ENDING):
            raise Refused(f"generation {made.number} cannot follow generation {latest}, which {self.phase.value}")
        if gone := [member for member in made.members if member in self._lost]:
            raise Refused(f"generation {made.number} cannot have {', '.join(gone)}: lost before")
        before = self.current
        has_all = before is not None and set(before.members) <= set(made.members)  # else a loss explains it
        is_fruitless = before is not None and has_all and made.first_step <= before.first_step
        self.fruitless = self.fruitless + 1 if is_fruitless else 0
        self.current, self.phase, self._broken, self._since = made, Phase.RUNNING, "", now
        self.members, self._ranks = made.members, frozenset(made.members)
        for member in made.members:
            self._ready.pop(member, None)
            self._heard[member] = now

    def _end(self, event: EndAnnounced, now: float) -> None:
        if self.current is None or event.number != self.current.number or self.phase is Phase.OVER:
            raise Refused(f"generation {event.number} cannot end: it is not the one that runs")
        self.phase = Phase.OVER if event.at_once else Phase.ENDING
        self._since = now

    def _lose(self, event: Lost) -> None:
        self._lost.setdefault(event.member, event.reason)
        self._ready.pop(event.member, None)
        self._heard.pop(event.member, None)
        self._hung_up.pop(event.member, None)
        self._step_seconds.pop(event.member, None)
        self._complaints.pop(event.member, None)
        self.members = tuple(member for member in self.members if member != event.member)

    def _hear(self, process: str, now: float) -> None:
        if process in self._lost:
            raise Refused(f"{process} takes part no more: {self._lost[process]}")
        if self._is_new:  # where one has found this attempt, all others can
            self._heard = dict.fromkeys(self._heard, now)
            self._since, self._is_new = now, False
        self._heard[process] = now
        self._hung_up.pop(process, None)

    def _find_silent(self, now: float) -> Lost | None:
        """Who is not heard of; when the others stop, that counts from then on, so that each has its chance to tell."""
        is_over = self.phase is Phase.OVER or self._has_begun_to_stop()
        recall_seconds = self._rules.recall_seconds * max(1.0, len(self._ranks) / self._rules.crowd)
        for process, heard in self._heard.items():
            until = heard + self._rules.silence_seconds
            if is_over and process in self._ranks and process not in self._ready:
                until = min(until, max(heard, self._since) + self._rules.suspect_seconds)
            if now > until:
                return Lost(self.attempt, process, f"silent for {now - heard:.1f} s")
            if process in self._hung_up and now > self._hung_up[process] + recall_seconds:
                return Lost(self.attempt, process, "its connection has ended, and it has not called again")
        return None

    def _find_cut_off(self, now: float) -> Lost | None:
        """One after the other, until all that are left reach each other: so that one new generation is enough."""
        if self.phase not in (Phase.RUNNING, Phase.ENDING) or now < self._complained_at + self._rules.complain_seconds:
            return None
        silent = [one for one in self.members if now - self._heard.get(one, now) > self._rules.suspect_seconds]
        if (found := choose_cut_off(self._complaints, self.members, silent)) is None:
            return None
        gone, other = found
        return Lost(self.attempt, gone, f"it and {other} do not reach each other")

    def _find_end(self, wanted: frozenset[str] | None) -> EndAnnounced | None:
        if self.current is None or self.phase not in (Phase.RUNNING, Phase.ENDING):
            return None
        number = self.current.number
        if len(self.members) < len(self._ranks):
            gone = [one for one in self.current.members if one in self._lost]
            return EndAnnounced(self.attempt, number, True, f"lost {', '.join(gone)}")
        if self._broken:
            return EndAnnounced(self.attempt, number, True, self._broken)
        if self.phase is Phase.ENDING or not self._may_improve(wanted):
            return None
        better = self._choose(wanted)
        joins, leaves = sorted(set(better) - set(self.members)), sorted(set(self.members) - set(better))
        if not (joins or leaves):
            return None
        changes = [f"{', '.join(some)} {verb}" for some, verb in ((joins, "joins"), (leaves, "leaves")) if some]
        return EndAnnounced(self.attempt, number, False, "; ".join(changes))

    def _may_improve(self, wanted: frozenset[str] | None) -> bool:
        """Whether others may be worth more than the members, which stay before those that only wait."""
        places = self._rules.most - len(self.members)
        return wanted is not None or places < 0 or (places > 0 and not self._ready.keys() <= self._ranks)

    def _find_late(self, now: float) -> Lost | None:
        """Who still has not stopped; when an end after a step was announced, that counts from the first that has."""
        is_over = self.phase is Phase.OVER or self._has_begun_to_stop()
        seconds = self._stop_seconds()
        if not is_over or self._is_new or now - self._since <= seconds:
            return None
        late = [member for member in self.members if member not in self._ready]
        return Lost(self.attempt, late[0], f"did not stop within {seconds:g} s") if late else None

    def _stop_seconds(self) -> float:
        longest = max((self._step_seconds.get(member, 0.0) for member in self.members), default=0.0)
        return max(self._rules.stop_seconds, STEPS_TO_STOP * longest)

    def _find_next(self, now: float, wanted: frozenset[str] | None) -> Generation | None:
        rules, up = self._rules, len(self._ready)
        if self.phase is Phase.RUNNING or any(member not in self._ready for member in self.members) or up < rules.least:
            return None
        if self.phase is Phase.GATHERING and up < rules.most and now - self._since < rules.gather_seconds:
            return None
        number = self.current.number + 1 if self.current else 1
        return make_generation(self.attempt, number, self._choose(wanted), self._ready, self.checkpoint)

    def _has_begun_to_stop(self) -> bool:
        """Whether a member has stopped after the step that rank 0 chose: the others reach it now."""
        return self.phase is Phase.ENDING and any(member in self._ready for member in self.members)

    def _choose(self, wanted: frozenset[str] | None) -> tuple[str, ...]:
        survivors = sorted(self.members, key=lambda member: -self._ready[member].steps if member in self._ready else 0)
        return choose_members(survivors, self.waiting, wanted, self._rules.least, self._rules.most)
