"""Generations against a simple model: processes that compute, die, freeze and thaw, masters that follow one another.

In the model a step is applied by members that were all there when it was computed, as an all-reduce has it. A state is
the list of the steps that it was made from: so a step that is missed or applied twice is seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from locality.training.generation_events import (
    Began,
    Checkpointed,
    EndAnnounced,
    Event,
    Generation,
    Lost,
    StopAsked,
    from_body,
    to_body,
)
from locality.training.generations import Generations, MemberRules, Phase, Refused
from locality.training.regrouping import NO_STATE

RULES = MemberRules(
    least=2,
    most=4,
    gather_seconds=3.0,
    silence_seconds=5.0,
    suspect_seconds=1.0,
    stop_seconds=8.0,
    takeover_seconds=10.0,
)


@dataclass
class Process:
    """One process: its state if it has any, the generation that it computes in, and whether it runs."""

    name: str
    state: list[int] | None = None
    group: Generation | None = None
    is_frozen: bool = False
    has_stopped: bool = False
    """Whether it has told a leader that it computes no more in its generation."""
    told: list[int] = field(default_factory=list)
    """Numbers of the generations that it was in."""

    def computes_in(self, made: Generation) -> bool:
        """Whether it takes part in the steps of this generation."""
        return self.group == made and not (self.is_frozen or self.has_stopped)


def number_of(group: list[Process]) -> int:
    return group[0].told[-1]


class GenerationMachine(RuleBasedStateMachine):
    """Many masters one after the other, of which the last one leads; those before go on to believe that they do."""

    @initialize(count=st.integers(2, 5))
    def begin(self, count: int) -> None:
        self.now = 0.0
        self.started = 0
        self.next_step: dict[int, int] = {}
        self.journal: list[tuple[str, str]] = []
        self.saved: dict[int, list[int]] = {0: []}
        self.processes: dict[str, Process] = {}
        self.ended: dict[str, Process] = {}
        self.wanted: frozenset[str] | None = None
        self.leader = Generations(RULES)
        self.former: list[Generations] = []
        self.write(Began(1))
        for _ in range(count):
            self.start()
        self.wait(4.0)

    def write(self, event: Event) -> None:
        """As a master does: into the journal, which is fenced, and only then into effect."""
        before = self.leader.current
        if isinstance(event, Generation):
            self.check(event)
        self.leader.apply(event, self.now)
        self.journal.append((event.kind, json.dumps(to_body(event))))
        if isinstance(event, Generation):
            assert event.number == (before.number if before else 0) + 1

    def end(self, name: str) -> None:
        """The leader may go on to count with what the process has told it."""
        self.ended[name] = self.processes.pop(name)

    def check(self, made: Generation) -> None:
        """What must hold of a new generation, by what its processes really have."""
        states = {name: (self.processes | self.ended)[name].state for name in made.members}
        assert RULES.least <= len(made.members) <= RULES.most
        assert len(set(made.members)) == len(made.members)
        assert set(made.behind) < set(made.members)
        assert made.members[0] not in made.behind
        latest = max((len(state) for state in states.values() if state is not None), default=NO_STATE)
        assert made.first_step == max(latest, self.leader.checkpoint)
        for name, state in states.items():
            is_right = state is not None and len(state) == made.first_step
            assert is_right or name in made.behind or (name == made.members[0] and made.from_checkpoint)

    def follow(self) -> None:
        """Let all processes that run talk to the leader until nothing happens any more."""
        for _ in range(20):
            self.talk()
            event = self.leader.due(self.now, self.wanted)
            if event is None:
                return
            self.write(event)
        raise AssertionError("the leader decides for ever")

    def talk(self) -> None:
        for process in list(self.processes.values()):
            if not process.is_frozen:
                try:
                    self.call(process)
                except Refused:
                    self.end(process.name)  # it is told that it takes part no more, and ends

    def call(self, process: Process) -> None:
        leader, store = self.leader, f"{process.name}:1"
        steps = NO_STATE if process.state is None else len(process.state)
        leader.beat(process.name, self.now)
        if process.group is None:
            leader.join(process.name, store, self.now, steps)
        elif process.has_stopped or self.shall_stop(process.group):
            leader.stop(process.name, process.group.number, steps, store, self.now)
            process.has_stopped = True
            if leader.current and leader.current.number > process.group.number:
                process.group = None
        if process.group is None and leader.current and process.name in leader.current.members:
            if leader.phase is Phase.RUNNING and leader.current.number not in process.told:
                process.group, process.has_stopped = leader.current, False
                process.told.append(leader.current.number)
            elif leader.current.number in process.told or leader.phase is not Phase.RUNNING:
                leader.stop(process.name, leader.current.number, steps, store, self.now)

    def shall_stop(self, group: Generation) -> bool:
        """Where a member is gone, the exchange fails; otherwise it is what the leader has announced."""
        gone = any(name not in self.processes or self.processes[name].group != group for name in group.members)
        current = self.leader.current
        is_over = current is None or current.number != group.number or self.leader.phase is not Phase.RUNNING
        return is_over or (gone and all(group.number in p.told for p in self.processes.values() if p.group == group))

    def form_groups(self) -> Iterator[tuple[list[Process], int]]:
        """The groups whose members all run, with the step that each makes next; they need no master for that.

        Before its first step, those behind get the state of rank 0. Nobody looks whether what the others have is right.
        """
        for made in {
            process.group.number: process.group for process in self.processes.values() if process.group
        }.values():
            group = [self.processes[name] for name in made.members if name in self.processes]
            if len(group) < len(made.members) or not all(one.computes_in(made) for one in group):
                continue
            if made.number not in self.next_step:
                self.next_step[made.number] = made.first_step
                if made.from_checkpoint:
                    group[0].state = list(self.saved[made.first_step])
                for process in group:
                    if process.name in made.behind:
                        process.state = list(group[0].state or ())
            yield group, self.next_step[made.number]

    @rule()
    def start(self) -> None:
        self.started += 1
        name = f"p{self.started}"
        self.processes[name] = Process(name)

    @rule(at=st.integers(0, 9), is_seen=st.booleans())
    def kill(self, at: int, is_seen: bool) -> None:
        if self.processes:
            name = sorted(self.processes)[at % len(self.processes)]
            self.end(name)
            if is_seen and (lost := self.leader.lose(name, "exit code 137")):
                self.write(lost)

    @rule(at=st.integers(0, 9))
    def freeze_or_thaw(self, at: int) -> None:
        if self.processes:
            process = self.processes[sorted(self.processes)[at % len(self.processes)]]
            process.is_frozen = not process.is_frozen

    @rule(pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4))
    def complain(self, pairs: list[tuple[int, int]]) -> None:
        """Members say that they do not reach others: some are told to go, and never all."""
        current, before = self.leader.current, set(self.leader.members)
        for one, other in pairs:
            if current and one < len(current.members) and other < len(current.members):
                process = self.processes.get(current.members[one])
                if process and process.group == current and not process.is_frozen:
                    self.leader.complain(process.name, current.number, [current.members[other]], self.now)
        cut_off = set()
        self.now += RULES.complain_seconds
        while isinstance(event := self.leader.due(self.now, self.wanted), Lost):
            self.write(event)
            cut_off |= {event.member} if "do not reach" in event.reason else set()
        assert not before or cut_off < before
        self.follow()

    @rule(steps=st.integers(1, 3), seconds=st.sampled_from([0.0, 0.4, 3.0]))
    def compute(self, steps: int, seconds: float) -> None:
        """Often right after something went wrong, often when the leader has put it right."""
        self.wait(seconds)
        for _ in range(steps):
            for group, number in self.form_groups():
                self.next_step[number_of(group)] = number + 1
                for process in group:
                    process.state = [*(process.state or ()), number]

    @rule(victim=st.integers(0, 9), appliers=st.integers(0, 15))
    def step_that_fails_for_some(self, victim: int, appliers: int) -> None:
        """All have given their part, then one dies, and only some of the others get the sum."""
        for group, number in self.form_groups():
            for at, process in enumerate(group):
                if appliers >> at & 1:
                    process.state = [*(process.state or ()), number]
            self.end(group[victim % len(group)].name)

    @rule(seconds=st.sampled_from([0.3, 1.1, 3.1, 6.0, 12.0]))
    def wait(self, seconds: float) -> None:
        """In beats of at most 0.4 s."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 0.4)
            self.follow()

    @rule()
    def save(self) -> None:
        """Any group does that, also one that counts as lost: the leader does not hear it."""
        for group, number in self.form_groups():
            try:
                self.leader.beat(group[0].name, self.now)
            except Refused:
                continue
            self.saved[number] = list(group[0].state or ())
            self.write(Checkpointed(self.leader.attempt, number))

    @rule(names=st.none() | st.frozensets(st.integers(1, 8), max_size=4))
    def want(self, names: frozenset[int] | None) -> None:
        self.wanted = None if names is None else frozenset(f"p{number}" for number in names)

    @rule()
    def ask_to_stop(self) -> None:
        """What is asked for hinders nobody: members end after a step, and until then go on as ever."""
        self.write(StopAsked(self.leader.attempt))

    @rule()
    def take_over(self) -> None:
        self.former.append(self.leader)
        self.leader = self.replay()
        self.write(Began(self.leader.attempt + 1))

    @rule(seconds=st.floats(0, 100))
    def a_former_master_decides(self, seconds: float) -> None:
        for former in self.former:
            if event := former.due(self.now + seconds, self.wanted):
                before = self.leader.current, self.leader.phase, self.leader.members
                with pytest.raises(Refused, match="leads the run"):
                    self.leader.apply(event, self.now)
                assert (self.leader.current, self.leader.phase, self.leader.members) == before

    def replay(self) -> Generations:
        events = [from_body(kind, json.loads(body)) for kind, body in self.journal]
        return Generations.replay(events, self.now, RULES)

    @invariant()
    def no_state_misses_a_step_or_has_one_twice(self) -> None:
        for process in self.processes.values():
            assert process.state is None or process.state == list(range(len(process.state)))

    @invariant()
    def the_journal_leads_to_what_the_leader_knows(self) -> None:
        again = self.replay()

        assert (again.attempt, again.current, again.phase) == (
            self.leader.attempt, self.leader.current, self.leader.phase,
        )  # fmt: skip
        assert (again.members, again.checkpoint) == (self.leader.members, self.leader.checkpoint)
        assert again.is_stopping == self.leader.is_stopping == any(kind == StopAsked.kind for kind, _ in self.journal)

    @invariant()
    def a_generation_begins_only_when_the_one_before_has_been_told_to_end(self) -> None:
        ended = {0}
        for event in (from_body(kind, json.loads(body)) for kind, body in self.journal):
            if isinstance(event, Generation):
                assert event.number - 1 in ended
            elif isinstance(event, EndAnnounced):
                ended.add(event.number)

    def teardown(self) -> None:
        """Whatever has happened, enough processes that run come to compute together."""
        if not hasattr(self, "processes"):
            return
        self.wanted = None
        for process in [one for one in self.processes.values() if one.is_frozen]:
            self.end(process.name)
        while len(self.processes) < RULES.least:
            self.start()
        self.wait(40.0)
        while len(self.processes) < RULES.least:  # some only learned that they counted as lost
            self.start()
        self.wait(40.0)
        assert self.leader.phase is Phase.RUNNING
        assert list(self.form_groups())


TestGenerations = GenerationMachine.TestCase
TestGenerations.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
