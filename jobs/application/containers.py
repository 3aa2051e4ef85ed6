"""One container for each seat of a job, however often it has to be asked for: from asking to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hadoop.client.master import Ended, Granted, Heartbeat, MasterSession, Unprepared
from hadoop.errors import HadoopError
from hadoop.rest.told import tell_end
from jobs.application.coordinator import Container, End, Role, Seat, Then
from jobs.application.exits import Exit, exit_of
from jobs.application.package import tell_missing
from jobs.errors import JobError
from jobs.reports.report import Failure

BEFORE = "before its container started"
ADMIT_SECONDS = 3.0
"""Between two questions whether a role takes nodes that are new in the cluster."""
TRY_AGAIN_SECONDS, LATEST_SECONDS = 60.0, 3600.0
"""After which a role that stands tries a node again that it had left out, and after twice as long each further time."""
FORGET_SECONDS = 600.0
"""A container that has worked for so long shows that its node is well: what failed there before counts no more."""


class Work(Protocol):
    """The part of a coordinator that has to know which containers there are."""

    def on_start(self, container: Container) -> None: ...

    def on_end(self, container: Container, end: End) -> Then: ...

    def last_heard(self, seat: Seat) -> float: ...

    def starting(self, seat: Seat) -> None: ...

    def pop_excused(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class Patience:
    """How many seconds a node may take to give its container; how many failures leave it out."""

    container_wait: float
    failures: int


@dataclass
class _Place:
    """A seat: asked for by number `request`, or with a `container` since `since`, or without one.

    `blamed` are containers whose end speaks against its node; `rests` counts how often that was left out for a while.
    """

    seat: Seat
    role: Role
    since: float
    request: int = 0
    container: Container | None = None
    state: str = "waiting"
    blamed: list[str] = field(default_factory=list)
    said: str = ""
    rests: int = 0

    @property
    def failures(self) -> int:
        return len(self.blamed)

    def begin_again(self, seat: Seat, now: float) -> None:
        """On another node."""
        self.seat, self.since, self.state, self.blamed, self.said = seat, now, "waiting", [], ""


@dataclass(frozen=True)
class NodeState:
    """The seat of a node as its status has it."""

    state: str
    failures: int
    said: str


class Containers:
    """Asks for what is missing, and leaves a node out that fails too often; `step` is one exchange with YARN.

    `note` hears every failure, `reasons` are what programs said before they ended, by container.
    """

    def __init__(
        self,
        session: MasterSession,
        roles: Sequence[Role],
        work: Work,
        patience: Patience,
        note: Callable[[Failure], None],
        reasons: Mapping[str, str],
        now: float,
    ) -> None:
        self._session = session
        self._work = work
        self._patience = patience
        self._note = note
        self._reasons = reasons
        self._asked = 0
        self._unhealthy: set[str] = set()
        self._known: dict[str, Seat] = {}
        self._places = [
            _Place(Seat(role.name, index, node), role, now, state="done" if index in role.done else "waiting")
            for role in roles
            for index, node in enumerate(role.nodes)
        ]
        self._spares = {role.name: list(role.spares) for role in roles}
        self._resting: list[tuple[float, str, str]] = []
        """Since when nodes have lost their seats in roles that stand: they are spares again after a while."""
        self._admitting = [(role, role.admit) for role in roles if role.admit]
        self._new: set[str] = set()
        """Nodes that take work and have no seat, and were not there or not usable when the job began."""
        self._admitted_at = now

    def adopt(
        self, held: Iterable[Granted], failures: Iterable[Failure], now: float, known: Mapping[str, Seat]
    ) -> None:
        """Go on with the containers of an earlier attempt, and with what it had to note; `known` are their seats."""
        self._known = dict(known)
        for failure in failures:
            for place in self._on(failure.node_name):
                if not place.role.stands:
                    self._blame(place, failure)
        for granted in held:
            if vacant := self._vacant(granted, known.get(granted.container_id)):
                self._begin_work(granted, vacant, now)
            else:
                self._session.release(granted.container_id)
        for role in {place.role.name: place.role for place in self._places if place.role.stands}.values():
            self._seat_again(role)

    def step(self, now: float, progress: float) -> None:
        """One exchange with YARN; JobError when no node is left that could do anything.

        `progress` runs from 0 to 1, and at 1 nothing is asked for any more.
        """
        if progress >= 1:
            self._say_goodbye(self._session.heartbeat(1.0))
            return
        for place in self._places:
            if place.state == "waiting":
                self._ask(place)
        news = self._session.heartbeat(progress)
        self._unhealthy = (self._unhealthy | set(news.unhealthy_nodes)) - set(news.back_nodes)
        for granted in news.granted:
            self._take(granted, now)
        done = self._count_done()
        for ended in news.ended:
            self._end(ended, now)
        self._look_at_nodes(news, now)
        self._look_at_new_nodes(news, now)
        self._look_at_silent(now)
        self._keep_seats(now)
        self._use_spares(now)
        self._forgive(now)
        if self._count_done() == done:  # else that may have been the last of the work, which nobody has looked at yet
            self._refuse_hopeless(now)

    def excuse(self, seconds: float) -> None:
        """Time in which YARN did not answer is not a delay of the nodes that wait for a container."""
        for place in self._places:
            if not place.container:
                place.since += seconds

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing that YARN is to do."""
        return all(place.state in ("working", "left out", "done") for place in self._places)

    def running(self) -> int:
        """Containers that have been started and have not ended."""
        return sum(place.container is not None for place in self._places)

    def states(self) -> dict[str, NodeState]:
        """By node; of several seats on a node, that of the last."""
        return {place.seat.node_name: NodeState(place.state, place.failures, place.said) for place in self._places}

    def release(self) -> None:
        """Have YARN end what still runs."""
        for place in self._places:
            if place.container:
                self._session.release(place.container.container_id)

    def _count_done(self) -> int:
        return sum(place.state == "done" for place in self._places)

    def _on(self, node_name: str) -> list[_Place]:
        return [place for place in self._places if place.seat.node_name == node_name]

    def _vacant(self, granted: Granted, seat: Seat | None) -> _Place | None:
        """The place that a container of an earlier attempt has, by what is recorded of it, or by its node."""
        if seat:
            found = [one for one in self._places if (one.seat.role, one.seat.index) == (seat.role, seat.index)]
        else:
            found = self._on(granted.node_name)
        place = next((one for one in found if not one.container and one.state not in ("left out", "done")), None)
        if place and seat and seat != place.seat:
            place.begin_again(seat, place.since)
        return place

    def _seat_again(self, role: Role) -> None:
        """Each node has one seat or is a spare, wherever the containers of an earlier attempt are."""
        places = [place for place in self._places if place.role is role]
        held = {place.seat.node_name for place in places if place.container}
        free = [node for node in (*role.nodes, *role.spares) if node not in held]
        for place in places:
            if not place.container:
                place.seat = replace(place.seat, node_name=free.pop(0))
        self._spares[role.name] = free

    def _say_goodbye(self, news: Heartbeat) -> None:
        """All is done: who ends now is not a failure, and who comes now is not needed."""
        for granted in news.granted:
            self._session.release(granted.container_id)
        gone = {ended.container_id for ended in news.ended}
        for place in self._places:
            self._session.withdraw(place.request)
            place.state = "done"
            if place.container and place.container.container_id in gone:
                place.container = None

    def _ask(self, place: _Place) -> None:
        self._asked += 1
        place.request, place.state = self._asked, "starting"
        self._session.ask(place.request, place.seat.node_name, place.role.launch(place.seat))

    def _take(self, granted: Granted, now: float) -> None:
        place = next((one for one in self._places if one.request == granted.request), None)
        if place is None:  # withdrawn while it was on its way
            self._session.release(granted.container_id)
            return
        try:
            self._session.launch(granted, place.role.launch(place.seat))
        except Unprepared as error:  # whatever node it is on: asked for again until it has waited too long
            self._session.release(granted.container_id)
            place.request, place.state, place.said = 0, "waiting", str(error)
        except HadoopError as error:
            self._session.release(granted.container_id)
            container = Container(place.seat, granted.container_id, granted.log_address)
            self._fail(place, container, End(Exit.NODE_LOST, 0, str(error)), now)
        else:
            self._begin_work(granted, place, now)

    def _begin_work(self, granted: Granted, place: _Place, now: float) -> None:
        container = Container(place.seat, granted.container_id, granted.log_address)
        place.container, place.since, place.request, place.state = container, now, 0, "working"
        self._work.on_start(container)

    def _end(self, ended: Ended, now: float) -> None:
        place, container = self._holder(ended.container_id)
        if place is None or container is None:
            return  # released by us, or of an earlier attempt and of no use
        said = tell_missing(ended.diagnostics) or tell_end(ended.diagnostics)
        reason = self._reasons.get(ended.container_id) or said
        kind = exit_of(ended.exit_status)
        if kind is Exit.NODE_LOST and place.seat.node_name in self._unhealthy:
            kind = Exit.DISK  # YARN takes the node's containers away before it would say so of one of them
        self._fail(place, container, End(kind, ended.exit_status, reason), now)

    def _holder(self, container_id: str) -> tuple[_Place | None, Container | None]:
        for place in self._places:
            if place.container and place.container.container_id == container_id:
                return place, place.container
        seat = self._known.get(container_id)
        for place in self._places:  # a program that needs no application master may have ended while there was none
            if place.seat == seat and not place.container and place.role.ends_alone and place.state != "done":
                self._session.withdraw(place.request)
                return place, Container(seat, container_id, "")
        return None, None

    def _fail(self, place: _Place, container: Container, end: End, now: float) -> None:
        self._known.pop(container.container_id, None)  # its end is told once
        then = self._work.on_end(container, end)
        place.container, place.request, place.since, place.state = None, 0, now, "waiting"
        if then is Then.DONE:
            place.state, place.said = "done", end.text
            return
        counts = end.exit.counts and then is Then.AGAIN
        node, container_id = container.seat.node_name, container.container_id
        failure = Failure(node, container_id, end.exit.value, now, end.said, counts=counts)
        self._blame(place, failure)
        self._note(failure)

    def _blame(self, place: _Place, failure: Failure) -> None:
        place.said = f"{failure.kind}: {failure.said}" if failure.said else failure.kind
        place.blamed += [failure.container_id] * failure.counts
        if place.failures >= self._patience.failures:
            place.state = "left out"

    def _look_at_nodes(self, news: Heartbeat, now: float) -> None:
        for place in (one for node in news.lost_nodes for one in self._on(node)):
            if place.state == "starting":
                self._session.withdraw(place.request)
                self._fail(place, Container(place.seat, "", ""), End(Exit.NODE_LOST, 0, BEFORE), now)
            if place.state == "waiting":
                place.state, place.since = "lost", now
        for place in (one for node in news.back_nodes for one in self._on(node)):
            if place.state == "lost":
                place.state, place.since = "waiting", now

    def _look_at_new_nodes(self, news: Heartbeat, now: float) -> None:
        if not self._admitting:
            return
        seated = {place.seat.node_name for place in self._places}
        self._new = (self._new | set(news.back_nodes)) - set(news.lost_nodes) - seated
        if self._new and now >= self._admitted_at + ADMIT_SECONDS:
            self._admitted_at = now
            for role, admit in self._admitting:
                self._admit(role, admit, now)

    def _admit(self, role: Role, admit: Callable[[Sequence[str]], Sequence[str]], now: float) -> None:
        """Seats and spares for new nodes."""
        spares = self._spares[role.name]
        new = sorted(self._new.difference(spares))
        taken = admit(new) if new else ()
        seats = sum(place.role is role for place in self._places)
        free = max(0, role.most - seats)
        self._places += [
            _Place(Seat(role.name, seats + number, node), role, now) for number, node in enumerate(taken[:free])
        ]
        spares += taken[free:]

    def _look_at_silent(self, now: float) -> None:
        for place in self._places:
            if not place.container or place.role.silence is None:
                continue
            heard = self._work.last_heard(place.seat)
            silent = now - max(heard, place.since)
            # What a program needs is laid out and loaded before its first word.
            first_word = max(self._patience.container_wait, place.role.silence)
            if silent > (place.role.silence if heard >= place.since else first_word):
                self._session.release(place.container.container_id)
                self._fail(place, place.container, End(Exit.SILENT, 0, f"for {silent:.0f} s"), now)

    def _keep_seats(self, now: float) -> None:
        """Nodes whose container is on its way or has just been started are not taken for slow ones."""
        for place in self._places:
            asked = place.state == "starting" and now - place.since <= self._patience.container_wait
            if asked or (place.container and self._work.last_heard(place.seat) < place.since):
                self._work.starting(place.seat)

    def _use_spares(self, now: float) -> None:
        """Give the seats of nodes that are left out or late to others."""
        for place in self._places:
            spares = self._spares[place.role.name]
            if spares and place.state != "done" and self._is_hopeless(place, now):
                self._session.withdraw(place.request)
                place.request = 0
                if place.role.stands:
                    self._resting.append((now, place.role.name, place.seat.node_name))
                place.begin_again(replace(place.seat, node_name=spares.pop(0)), now)

    def _is_hopeless(self, place: _Place, now: float) -> bool:
        """Whether nobody would wait for this node: it failed too often, or is lost or full for long."""
        late = not place.container and now - place.since > self._patience.container_wait
        return late or place.state == "left out"

    def _forgive(self, now: float) -> None:
        """Give nodes of roles that stand another chance."""
        while self._resting and now - self._resting[0][0] >= TRY_AGAIN_SECONDS:
            _, role_name, node_name = self._resting.pop(0)
            self._spares[role_name].append(node_name)
        standing = [place for place in self._places if place.role.stands]
        excused = self._work.pop_excused() if standing else ()
        for place in standing:
            place.blamed = [one for one in place.blamed if one not in excused]
            if place.state == "left out" and place.failures < self._patience.failures:
                place.state, place.since = "waiting", now
            elif place.state == "left out" and now - place.since >= min(
                TRY_AGAIN_SECONDS * 2**place.rests, LATEST_SECONDS
            ):
                place.begin_again(place.seat, now)
                place.rests = min(place.rests + 1, 9)
            elif place.container and now - place.since >= FORGET_SECONDS:
                place.blamed, place.rests = [], 0

    def _refuse_hopeless(self, now: float) -> None:
        left = [place for place in self._places if place.state != "done" and not place.role.stands]
        hopeless = [place for place in left if self._is_hopeless(place, now)]
        if left and (len(hopeless) == len(left) or any(place.role.all_needed for place in hopeless)):
            raise self._nothing_left_error(hopeless)

    def _nothing_left_error(self, places: Sequence[_Place]) -> JobError:
        late = f"no container within {self._patience.container_wait:.0f} s, the node is full or lost"
        nodes = "; ".join(f"{place.seat.node_name}: {place.said or late}" for place in places)
        explain = places[0].role.explain
        return JobError(
            explain(nodes) if explain else f"no node is left that could go on ({nodes})",
            remedy=(
                "`nodewise job logs` shows what the containers printed, `nodewise cluster status` which nodes are up"
            ),
        )
