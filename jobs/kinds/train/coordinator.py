"""Leads a training run: members in containers on the best nodes, in generations that stand in the journal."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from hadoop.client.yarn import Launch
from hadoop.errors import HadoopError
from jobs.application.attempts import STARTED
from jobs.application.calls import Request
from jobs.application.coordinator import (
    Attempt,
    Container,
    Coordinator,
    End,
    Knowledge,
    NodeProgress,
    Outcome,
    Progress,
    Role,
    Seat,
    Then,
)
from jobs.application.environments.laid import python_argv, shared
from jobs.application.exits import Exit
from jobs.application.journal import Record
from jobs.application.master import master_file, put
from jobs.errors import JobError
from jobs.kinds.train.asked import keep
from jobs.kinds.train.hearing import RunHearing
from jobs.kinds.train.launcher_settings import LauncherSettings
from jobs.kinds.train.news import LEFT_EARLY, History, by_node, last_loss, left_early
from jobs.kinds.train.page_section import PageSection
from jobs.kinds.train.registry.registry import Registry
from jobs.kinds.train.seating import Seating
from jobs.kinds.train.settings import TrainSettings
from jobs.kinds.train.stored import newest
from jobs.worker.memory import KEPT_MEMORY
from jobs.worker.threads import ONE_THREAD
from learning.lead.calls import Doing, Done
from learning.lead.leader import Leader, Member
from locality.program_names import training_speed_name
from locality.training.generation_events import Checkpointed, Event, from_body, to_body
from locality.training.generations import MemberRules, Phase

EVENT, NODES, DONE = "members", "nodes", "done"
"""Records of the journal: what happened to the members and when, which nodes are used in which order, and that all
steps are done, with what the report tells of them."""
UNIT = "steps"
SETTINGS, CODE = "train.json", "code.zip"
LAUNCHER = ("-m", "jobs.kinds.train.launcher", SETTINGS)
STORED_SECONDS = 2.0
"""Between two looks into HDFS for a checkpoint that a member has written."""
LEAVE_SECONDS = 10.0
"""How long a member that was lost keeps its container, if its program does not end."""
FIRST_WORD_SECONDS = 600.0
"""How long a program may take until it calls: it may read its data before."""
FEWER_SECONDS = 300.0
"""How long there may be fewer members than the run needs."""
LAST_SECONDS = 300.0
"""How long programs may take to end once all steps are done, and launchers to store the last checkpoint."""
MOST_NEWS = 10
FAILURES = (Exit.CRASHED, Exit.KILLED, Exit.MEMORY)
"""Exits that are the program's own, so that another node would not help."""


class Train(Coordinator):
    """One attempt at one run; JobError tells why it cannot go on. Another run with the same output resumes it."""

    calls = RunHearing.calls

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._settings = TrainSettings.from_json(attempt.spec.settings)
        self._nodes = {one.body["container_id"]: one.body["node_name"] for one in self._earlier(STARTED)}
        self._values: Mapping[str, float] = {}
        self._running: set[str] = set()
        self._failed_in_a_row = 0
        self._failed_at_step = -1
        self._failed_at = attempt.clock()
        self._few_since = attempt.clock()
        self._stored_at = attempt.clock()
        self._seated: dict[int, str] = {}
        self._seen_at: dict[str, float] = {}
        self._concluding = threading.Lock()
        self._done: Mapping[str, Any] = next((record.body for record in reversed(self._earlier(DONE))), {})
        self._ended = 0
        self._history = History(self._nodes)
        self._registry = Registry(attempt, training_speed_name(self._settings.script), self._nodes)
        self._page = PageSection(attempt, self._history, self._registry)
        stored = Checkpointed(0, newest(attempt.filesystem, self._settings.output))
        rules = MemberRules(
            least=self._settings.least,
            most=self._settings.most,
            gather_seconds=attempt.spec.container_wait,
        )
        self._leader = Leader(attempt.number, rules, self._note, attempt.clock, [stored, *self._earlier_events()])
        self._hearing = RunHearing(self._leader, stored_elsewhere=True)

    def roles(self, knowledge: Knowledge) -> Sequence[Role]:
        """A member on each of the best nodes; the others are spares."""
        self._publish()
        earlier, most = self._earlier(NODES), self._settings.most
        seating = Seating(
            knowledge,
            self._settings,
            self._registry,
            lambda body: self._attempt.journal.append(Record(NODES, body)),
            earlier[-1].body if earlier else None,
        )
        self._values = seating.values
        return (
            Role(
                "member",
                seating.nodes[:most],
                self._launch,
                silence=LEAVE_SECONDS,
                ends_alone=True,
                spares=seating.nodes[most:],
                most=most,
                admit=partial(self._admit, seating),
            ),
        )

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None:
        """What members say."""
        answer = self._hearing.hear(call, request)
        self._conclude()
        return answer

    def hang_up(self, connection: object) -> None:
        """A member may be no more."""
        self._hearing.hang_up(connection)

    def last_heard(self, seat: Seat) -> float:
        """Now, unless the member of this seat was lost, or has not called for long: then its container is to end."""
        name, now = self._seated.get(seat.index, ""), self._attempt.clock()
        begun, lost_at = self._seen_at.get(name, now), self._history.lost_at(name)
        if lost_at is not None:
            return max(begun, lost_at)
        has_called = name in self._leader.members() or now < begun + FIRST_WORD_SECONDS
        return now if has_called else begun

    def on_start(self, container: Container) -> None:
        """A member is on its way, or goes on from an earlier attempt."""
        node = container.seat.node_name
        self._nodes[container.container_id] = node
        self._seated[container.seat.index] = container.container_id
        self._seen_at[container.container_id] = self._attempt.clock()
        self._running.add(container.container_id)
        self._judge()

    def on_end(self, container: Container, end: End) -> Then:
        """A member is no more: the others go on, and another takes its place unless the program itself fails."""
        self._running.discard(container.container_id)
        if self._leader.is_done:
            return Then.DONE
        was_silent = self._was_silent(container.container_id)
        self._leader.lose(container.container_id, end.text)
        if end.exit is Exit.FINISHED:
            self._refuse_left_early(container)
        if end.exit in (Exit.FINISHED, *FAILURES) and not was_silent:
            self._count_failure(container, end)
        return Then.AGAIN

    def tick(self) -> None:
        """A moment has passed; JobError when the run cannot come to its end."""
        self._leader.tick()
        self._note_stored()
        self._conclude()
        self._registry.look(self._history.last_members, self._leader.members(), self._work_by_node)
        self._page.look(self._leader.members())
        if self._done:
            return
        if hopeless := self._leader.hopeless:
            raise JobError(self._history.with_nodes(hopeless), remedy=self._logs())
        now = self._attempt.clock()
        if self._leader.phase in (Phase.RUNNING, Phase.ENDING):
            self._few_since = now
        elif now - self._few_since > FEWER_SECONDS + self._attempt.spec.container_wait:
            raise JobError(
                f"there were fewer than {self._settings.least} members for {FEWER_SECONDS:.0f} s",
                remedy="submit it again with the same --output and fewer --members: it goes on from its checkpoint",
            )

    def progress(self) -> Progress:
        """Steps that are applied; all of them once nothing is left to wait for."""
        steps, members = self._leader.steps, self._leader.members()
        of = max(1, self._done.get("steps", 0) or self._leader.steps_in_all or steps + 1)
        return Progress(
            done=of if self._is_over() else min(steps, of - 1),
            of=of,
            unit=UNIT,
            nodes={self._nodes.get(name, name): _progress(one) for name, one in members.items()},
            news=self._history.news(MOST_NEWS, self._registry.news(MOST_NEWS)),
            section=self._section(members),
        )

    def finish(self) -> Outcome:
        """Put the report beside the checkpoints, unless an earlier attempt has."""
        output, steps = self._settings.output, self._done["steps"]
        stored = newest(self._attempt.filesystem, output)
        work = self._work()
        self._registry.finish(self._leader.members(), self._work_by_node)
        is_stopped = self._done.get("is_stopped", False)
        report = {
            "job_id": self._attempt.spec.job_id,
            "steps": steps,
            "stopped": is_stopped,
            "seconds": self._done["seconds"],
            "sync": self._settings.sync,
            "loss": last_loss(work.values()),
            "checkpoint": stored,
            "nodes": by_node(work, self._nodes),
            **self._history.report(),
            **self._registry.report(),
            "loss_curve": self._page.losses(),
        }
        put(self._attempt.filesystem, f"{output}/report.json", json.dumps(report, indent=1).encode())
        lacking = f", but the newest checkpoint is the one after {stored:,} steps" if stored < steps else ""
        if is_stopped:
            again = f"resume it with nodewise train resume hdfs://{output}"
            return Outcome(f"stopped after {steps:,} of {self._done['steps_in_all']:,} steps; {again}{lacking}")
        return Outcome(f"{steps:,} steps are done; checkpoints and report.json are in {output}{lacking}")

    def _earlier(self, kind: str) -> list[Record]:
        return [record for record in self._attempt.earlier if record.kind == kind]

    def _earlier_events(self) -> Iterator[Event]:
        """Of the attempts before, in their order."""
        for record in self._earlier(EVENT):
            event = from_body(record.body["kind"], record.body["event"])
            self._history.note(record.body["at"], event)
            yield event

    def _conclude(self) -> None:
        """Record that all steps are done, and what members have told at their end: the next attempt cannot ask them."""
        if not self._leader.is_done:
            return
        with self._concluding:
            members = self._leader.members()
            ended = sum(one.has_ended for one in members.values())
            if not self._done or (ended > self._ended and self._have_ended(members)):
                seconds = self._done.get("seconds", round(self._attempt.clock(), 3))
                work = {name: asdict(done) for name, done in self._work().items()}
                done = {"steps": self._leader.steps, "seconds": seconds, "work": work}
                done |= {"steps_in_all": self._leader.steps_in_all, "is_stopped": self._leader.is_stopped}
                self._attempt.journal.append(Record(DONE, done))
                self._done, self._ended = done, ended
                self._registry.hurry()

    def _note_stored(self) -> None:
        """A checkpoint counts once HDFS has it: the disk of a member that wrote it may be gone with its node."""
        now, written = self._attempt.clock(), self._hearing.written
        if written <= self._leader.checkpoint or now < self._stored_at + STORED_SECONDS:
            return
        self._stored_at = now
        try:
            self._leader.note_stored(newest(self._attempt.filesystem, self._settings.output))
        except HadoopError as error:
            print(f"HDFS does not tell which checkpoints it has: {error}", flush=True)

    def _was_silent(self, container_id: str) -> bool:
        """Whether a member was lost that has not said why: its program is not to blame for its end."""
        member = self._leader.members().get(container_id)
        has_failed = member is not None and member.doing is Doing.FAILED
        return self._history.lost_at(container_id) is not None and not has_failed

    def _work(self) -> dict[str, Done]:
        """What each member has done, as it told this attempt or an earlier one."""
        work = {name: Done.from_json(body) for name, body in self._done.get("work", {}).items()}
        for name, member in self._leader.members().items():
            if name not in work or member.done.steps >= work[name].steps:
                work[name] = member.done
        return work

    def _have_ended(self, members: Mapping[str, Member]) -> bool:
        """Whether all members of the last generation have said their last word."""
        return all(name in members and members[name].has_ended for name in self._history.last_members)

    def _work_by_node(self) -> Mapping[str, Mapping[str, Any]]:
        return by_node(self._work(), self._nodes)

    def _is_over(self) -> bool:
        """Whether all steps are done and the members have ended: until then they store the last checkpoint."""
        if not self._done:
            return False
        left = self._running & self._history.last_members
        return not left or self._attempt.clock() > self._done["seconds"] + LAST_SECONDS

    def _section(self, members: Mapping[str, Member]) -> dict[str, Any]:
        loss = last_loss(one.done for one in members.values())
        computing = sum(one.doing is Doing.COMPUTES for one in members.values())
        section: dict[str, Any] = {
            "Program": self._settings.argv[0],
            "Output": self._settings.output,
            "Members": f"{computing}, {self._leader.phase.value}",
            "training": self._page.section(self._leader.steps, self._leader.steps_in_all, self._work_by_node),
        }
        return section if loss is None else section | {"Loss": f"{loss:.6g}"}

    def _refuse_left_early(self, container: Container) -> None:
        """JobError when a program has ended well although its member took leave before the last step."""
        member = self._leader.members().get(container.container_id)
        if early := left_early(f"the program on {container.seat.node_name}", member):
            raise JobError(early, remedy=LEFT_EARLY)

    def _count_failure(self, container: Container, end: End) -> None:
        """JobError when members fail one after the other, and no step is done in between.

        Of those that ran already when the last one counted, and are killed before another step, as with a machine or by
        hand, none counts.
        """
        steps, has_moved = self._leader.steps, self._leader.steps != self._failed_at_step
        began = self._seen_at.get(container.container_id, self._failed_at)  # or while there was no application master
        if end.exit is Exit.KILLED and not has_moved and began <= self._failed_at:
            return
        self._failed_in_a_row = 1 if has_moved else self._failed_in_a_row + 1
        self._failed_at_step, self._failed_at = steps, self._attempt.clock()
        if self._failed_in_a_row > self._settings.restarts:
            member = self._leader.members().get(container.container_id)
            said = member.said if member and member.said else f"{end.text}, exit code {end.status}"
            node = container.seat.node_name
            what = "ended before the run was done" if end.exit is Exit.FINISHED else "failed"
            times = f"{self._failed_in_a_row} times at step {steps}, the last time on {node}"
            raise JobError(f"the program {what} {times}: {self._history.with_nodes(said)}", remedy=self._logs())

    def _logs(self) -> str:
        return f"`nodewise job logs {self._attempt.spec.job_id}` shows what it printed"

    def _note(self, event: Event) -> None:
        at = self._attempt.clock()
        self._attempt.journal.append(Record(EVENT, {"at": at, "kind": event.kind, "event": to_body(event)}))
        self._history.note(at, event)

    def _admit(self, seating: Seating, nodes: Sequence[str]) -> Sequence[str]:
        """Those that are worth a container, of nodes that were added to the cluster."""
        added = seating.admit(nodes)
        if added:
            self._values = seating.values
            self._judge()
        return added

    def _judge(self) -> None:
        """Let members be judged by the values of their nodes."""
        values = self._values
        self._leader.judge({name: values[node] for name, node in self._nodes.items() if node in values})

    def _publish(self) -> None:
        """Lay out what all members are told, where no attempt has: YARN refuses a file newer than a container."""
        spec, settings = self._attempt.spec, self._settings
        stored = f"{spec.staging}/{SETTINGS}"
        if not self._attempt.filesystem.exists(stored):
            keep(self._attempt.filesystem, spec, settings)
            told = LauncherSettings(
                argv=settings.argv,
                master=master_file(spec),
                token=spec.token,
                output=settings.output,
                sync=settings.sync,
            )
            put(self._attempt.filesystem, stored, told.to_bytes())

    def _launch(self, seat: Seat) -> Launch:
        settings, spec = self._settings, self._attempt.spec
        names = (CODE, SETTINGS, *settings.files)
        seen, python = (*names, spec.conf_dir), settings.worker_python
        return Launch(
            argv=python_argv(settings.parts, python, LAUNCHER, settings.devices, settings.wanted_gpus, seen),
            environment={
                **dict.fromkeys(ONE_THREAD, str(settings.vcores)),
                **KEPT_MEMORY,
                "NODE_NAME": seat.node_name,
                "PYTHONPATH": CODE,
                "PYTHONUNBUFFERED": "1",
                "HADOOP_CONF_DIR": spec.conf_dir,
                "HADOOP_USER_NAME": spec.user,
            },
            files={name: f"{spec.staging}/{name}" for name in names},
            shared=shared(settings.parts),
            memory_mb=settings.memory_mb,
            vcores=settings.vcores,
        )


def _progress(member: Member) -> NodeProgress:
    done = member.done
    rate = done.samples / done.compute_seconds if done.compute_seconds else 0.0
    said = f"{done.samples:,} samples, {rate:,.0f} a second" if done.samples else member.said
    return NodeProgress(
        planned=done.steps_in_all, done=done.steps, running=int(member.doing is Doing.COMPUTES), said=said
    )
