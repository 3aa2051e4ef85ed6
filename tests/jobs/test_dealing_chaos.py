"""Whatever happens in whatever order, every image ends with exactly one row, and only poison is convicted."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hadoop.errors import HadoopError
from jobs.application.calls import Gone
from jobs.itemwork.blame import DIED
from jobs.itemwork.messages import Group, Task
from locality.leases import Answer
from locality.rules import Rules
from locality.types import Part, Plan
from tests.jobs.dealing import LEASE_SECONDS, Job, block, rows, stored_rows

NODES = ("a", "b", "c")
CHUNK = 4
FEW = st.integers(0, 3).map(lambda n: n == 0)


@dataclass
class Doing:
    """A task in work: groups to do, and names that are done."""

    task: Task
    groups: list[Group]
    done: list[str] = field(default_factory=list)
    convicted: dict[str, str] = field(default_factory=dict)


@dataclass
class Container:
    """A worker without a process: what it holds, in order; it lives until its node has another one, or 410."""

    node: str
    name: str
    holds: dict[str, Doing] = field(default_factory=dict)


def chunks(task: Task) -> list[Group]:
    """What nobody suspects is done in batches, each suspect group apart."""
    found = []
    for group in task.groups:
        size = len(group.items) if group.suspect else CHUNK
        found += [Group(group.items[at : at + size], group.suspect) for at in range(0, len(group.items), size)]
    return found


class Chaos(RuleBasedStateMachine):
    """Poison ends a process, strong poison the container; both end whatever is done together with it."""

    @initialize(
        packed=st.integers(1, 40),
        files=st.integers(0, 8),
        poison=st.sets(st.integers(0, 47), max_size=3),
        strong=st.sets(st.integers(0, 47), max_size=2),
        steal=st.booleans(),
        most=st.integers(1, 20),
    )
    def begin(self, packed: int, files: int, poison: set[int], strong: set[int], steal: bool, most: int) -> None:
        whole = block("/p", packed, "a", "b")
        cut = packed // 3
        shares = {
            "a": (Part(whole, 0, cut), *(Part(block(f"/f{n}", 1, "b"), 0, 1) for n in range(files))),
            "b": (Part(whole, cut, packed - cut),),
            "c": (),
        }
        plan = Plan({node: tuple(part for part in parts if part.items) for node, parts in shares.items()})
        rules = Rules(lease_seconds=LEASE_SECONDS, most_items=most, share=0.5, steal=steal)
        self.job = Job(plan, {"a": 3.0, "b": 1.0, "c": 0.5}, rules)
        self.names = self.job.names()
        self.strong = {self.names[n] for n in strong if n < len(self.names)}
        self.poison = {self.names[n] for n in poison if n < len(self.names)} - self.strong
        self.current: dict[str, Container] = {}
        self.old: list[Container] = []
        self.started = 0

    @rule(node=st.sampled_from(NODES))
    def start(self, node: str) -> None:
        if node in self.current:
            self.old.append(self.current[node])
        self.started += 1
        self.current[node] = Container(node, f"{node}{self.started}")
        self.job.dealer.add_container(node, self.current[node].name, 1.0)

    @rule(node=st.sampled_from(NODES), lost=FEW)
    def take(self, node: str, lost: bool) -> None:
        if not (worker := self.current.get(node)):
            return
        offer = self.job.dealer.take(node, worker.name, list(worker.holds))
        if isinstance(offer, Task) and not lost:
            assert offer.lease not in worker.holds
            worker.holds[offer.lease] = Doing(offer, chunks(offer), convicted=dict(offer.convicted))

    @rule(node=st.sampled_from(NODES), lost=FEW)
    def work(self, node: str, lost: bool) -> None:
        """One group of the oldest lease, or its commit."""
        worker = self.current.get(node)
        if not worker or not worker.holds:
            return
        doing = next(iter(worker.holds.values()))
        if not doing.groups:
            self.commit(worker, doing, lost)
            return
        group = doing.groups.pop(0)
        names = [picture.name for picture in group.items]
        if group.suspect:
            self.job.dealer.note_begin(node, worker.name, doing.task.lease, names)
        if self.strong & set(names):
            self.end(worker, blame=True)
        elif self.poison & set(names):
            self.die(worker, doing, names, lost)
        else:
            doing.done += names
            if group.suspect:
                self.job.dealer.note_begin(node, worker.name, doing.task.lease, [])

    @rule(node=st.sampled_from(NODES))
    def hear(self, node: str) -> None:
        if worker := self.current.get(node):
            counts = self.job.dealer.heartbeat(node, worker.name)
            worker.holds = {lease: doing for lease, doing in worker.holds.items() if lease in counts}

    @rule(node=st.sampled_from(NODES))
    def kill(self, node: str) -> None:
        if worker := self.current.get(node):
            self.end(worker, blame=False)

    @rule(seconds=st.sampled_from([0.1, 1.0, LEASE_SECONDS * 0.6, LEASE_SECONDS * 3]))
    def wait(self, seconds: float) -> None:
        self.job.now += seconds
        self.job.dealer.expire()

    @rule()
    def restart(self) -> None:
        """Another attempt of the application master; the containers go on."""
        self.job.restart()
        for worker in self.current.values():
            self.job.dealer.add_container(worker.node, worker.name, 1.0)

    @rule(keeps=st.booleans())
    def break_journal(self, keeps: bool) -> None:
        """What is recorded next fails, and with it the attempt."""
        self.job.paper.fails, self.job.paper.keeps = True, keeps
        try:
            for node in NODES:
                for _ in range(6):
                    self.work(node, False)
        except HadoopError:
            self.restart()
        self.job.paper.fails = False

    @precondition(lambda self: any(worker.holds for worker in self.old))
    @rule()
    def come_late(self) -> None:
        """A container that was given up still says something."""
        worker = next(worker for worker in self.old if worker.holds)
        doing = worker.holds.pop(next(iter(worker.holds)))
        names = [picture.name for group in doing.task.groups for picture in group.items]
        try:
            told = rows(worker.node, [*names, *doing.convicted])
            self.job.dealer.commit(worker.node, worker.name, doing.task.lease, told, 1, 1)
        except Gone:
            return
        raise AssertionError("a container that is not the current one was heard")

    @invariant()
    def no_row_twice(self) -> None:
        if hasattr(self, "job"):
            told = Counter(name for name, _ in stored_rows(self.job.paper.records))
            assert max(told.values(), default=1) == 1
            assert self.job.dealer.left == len(self.names) - len(told)
            deaths = [record.body["convicted"] for record in self.job.paper.records if record.kind == DIED]
            assert {name for names in deaths for name in names} <= self.poison | self.strong

    def teardown(self) -> None:
        """Let it end without further trouble."""
        if not hasattr(self, "job"):
            return
        for _ in range(400):
            if not self.job.dealer.left:
                break
            for node in NODES:
                if node not in self.current:
                    self.start(node)
                self.hear(node)
                self.take(node, False)
                for _ in range(10):
                    self.work(node, False)
            self.job.now += 1.0
            self.job.dealer.expire()
        self.no_row_twice()
        told = dict(stored_rows(self.job.paper.records))
        assert sorted(told) == sorted(self.names)
        assert {name for name, error in told.items() if error} == self.poison | self.strong
        for worker in self.current.values():
            assert self.job.dealer.take(worker.node, worker.name, list(worker.holds)) is None
        done = self.job.dealer.totals().values()
        assert sum(total.items for total in done) == len(self.names)
        assert sum(total.errors for total in done) == len(self.poison | self.strong)

    def commit(self, worker: Container, doing: Doing, lost: bool) -> None:
        told = rows(worker.node, [*doing.done, *doing.convicted], doing.convicted)
        call = (worker.node, worker.name, doing.task.lease, told, 1.0, 1)
        answer = self.job.dealer.commit(*call)
        if lost:
            again = self.job.dealer.commit(*call)
            assert again is (Answer.REPEATED if answer is Answer.ACCEPTED else answer)
        del worker.holds[doing.task.lease]

    def die(self, worker: Container, doing: Doing, names: list[str], lost: bool) -> None:
        call = (worker.node, worker.name, doing.task.lease, names, "signal 11")
        groups, convicted = self.job.dealer.note_death(*call)
        if lost:
            assert self.job.dealer.note_death(*call) == (groups, convicted)
        if doing.task.lease not in self.job.dealer.heartbeat(worker.node, worker.name):
            del worker.holds[doing.task.lease]
            return
        told = {picture.name for group in groups for picture in group.items} | set(convicted)
        assert told == set(names)
        doing.groups += groups
        doing.convicted |= convicted

    def end(self, worker: Container, blame: bool) -> None:
        del self.current[worker.node]
        self.old.append(worker)
        self.job.dealer.end_container(worker.node, worker.name, blame, "memory kill")


TestChaos = Chaos.TestCase
TestChaos.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


def test_threads_that_hammer_and_steal_lose_and_double_nothing() -> None:
    whole = block("/p", 400, "a")
    rules = Rules(lease_seconds=LEASE_SECONDS, most_items=5)
    job = Job(Plan({"a": (Part(whole, 0, 400),), "b": ()}), {"a": 1.0, "b": 1.0}, rules)
    for node in ("a", "b"):
        job.dealer.add_container(node, f"{node}1", 1.0)
    faults: list[BaseException] = []

    def work(node: str) -> None:
        try:
            while (offer := job.dealer.take(node, f"{node}1", [])) is not None:
                job.dealer.heartbeat(node, f"{node}1")
                if isinstance(offer, Task):
                    names = [picture.name for group in offer.groups for picture in group.items]
                    job.dealer.commit(node, f"{node}1", offer.lease, rows(node, names), 1, 1)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(node,)) for node in ("a", "b", "a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert faults == []
    assert Counter(stored_rows(job.paper.records)) == Counter((name, None) for name in job.names())
    assert job.dealer.left == 0
