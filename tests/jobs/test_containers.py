"""One container per planned node: what is asked, when it is asked again, and when a node is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hadoop.client.master import Ended, Granted, Heartbeat, Unprepared
from hadoop.client.yarn import Launch
from hadoop.errors import HadoopError
from jobs.application.containers import (
    ADMIT_SECONDS,
    FORGET_SECONDS,
    TRY_AGAIN_SECONDS,
    Containers,
    NodeState,
    Patience,
)
from jobs.application.coordinator import Container, End, Role, Seat, Then
from jobs.application.exits import Exit, exit_of
from jobs.errors import JobError
from jobs.reports.report import Failure

NOTHING = Heartbeat((), (), ())
LAUNCH = Launch(argv=["true"], environment={}, files={}, memory_mb=1, vcores=1)
PATIENCE = Patience(container_wait=30.0, failures=3)
SILENCE = 60.0


class ScriptedSession:
    """A ResourceManager that answers as the test says: losing nodes on command needs one that is not a real one."""

    def __init__(self) -> None:
        self.answers: list[Heartbeat] = []
        self.asked: list[tuple[int, str]] = []
        self.launched: list[str] = []
        self.released: list[str] = []
        self.withdrawn: list[int] = []
        self.refusal: HadoopError | None = None

    def ask(self, request: int, node_name: str, launch: Launch) -> None:
        self.asked.append((request, node_name))

    def heartbeat(self, progress: float) -> Heartbeat:
        return self.answers.pop(0) if self.answers else NOTHING

    def launch(self, granted: Granted, launch: Launch) -> None:
        if self.refusal:
            raise self.refusal
        self.launched.append(granted.container_id)

    def release(self, container_id: str) -> None:
        self.released.append(container_id)

    def withdraw(self, request: int) -> None:
        self.withdrawn.append(request)


class Noted:
    """What the work was told, and when its workers were heard."""

    def __init__(self) -> None:
        self.joins: list[tuple[str, str]] = []
        self.ends: list[tuple[str, str, bool, str]] = []
        self.last: dict[str, float] = {}
        self.kept: list[str] = []
        self.suspected: set[str] = set()
        self.excused: list[str] = []
        self.zero_is_done = False

    def on_start(self, container: Container) -> None:
        self.joins.append((container.seat.node_name, container.container_id))

    def starting(self, seat: Seat) -> None:
        self.kept.append(seat.node_name)

    def on_end(self, container: Container, end: End) -> Then:
        self.ends.append((container.seat.node_name, container.container_id, end.exit.blames, end.text))
        if end.status == 0 and end.exit is Exit.FINISHED and self.zero_is_done:
            return Then.DONE
        return Then.EXPECTED if container.container_id in self.suspected else Then.AGAIN

    def pop_excused(self) -> list[str]:
        found, self.excused = self.excused, []
        return found

    def last_heard(self, seat: Seat) -> float:
        return self.last.get(seat.node_name, float("-inf"))


def role(*nodes: str, silence: float | None = SILENCE, spares: Sequence[str] = (), all_needed: bool = False) -> Role:
    """Workers on these nodes."""
    return Role("worker", nodes, lambda _: LAUNCH, silence, silence is None, spares, all_needed)


class Scene:
    """Containers on nodes a and b, told by the test what happens; `step` says what the ResourceManager answers."""

    def __init__(self, *roles: Role, begun: float = 0.0, patience: Patience = PATIENCE) -> None:
        self.session, self.work, self.failures = ScriptedSession(), Noted(), list[Failure]()
        self.reasons: dict[str, str] = {}
        self.containers = Containers(
            self.session,  # type: ignore[arg-type]
            roles,
            self.work,
            patience,
            self.failures.append,
            self.reasons,
            begun,
        )
        self.now = begun

    def step(self, news: Heartbeat = NOTHING, seconds: float = 1.0) -> None:
        self.now += seconds
        self.session.answers = [news]
        self.containers.step(self.now, 0.0)

    def grant(self, node: str) -> str:
        """Give what was asked for last on a node; the container's id."""
        request = next(number for number, name in reversed(self.session.asked) if name == node)
        container_id = f"c{request}"
        self.step(Heartbeat((Granted(container_id, node, f"{node}:8042", None, request),), (), ()))
        return container_id

    def end(self, container_id: str, status: int, said: str = "") -> None:
        self.step(Heartbeat((), (Ended(container_id, status, said),), ()))

    def state(self, node: str) -> str:
        return self.containers.states()[node].state


@pytest.fixture
def scene() -> Scene:
    made = Scene(role("a", "b"))
    made.step()
    return made


def test_every_node_is_asked_for_once_with_a_number_of_its_own() -> None:
    scene = Scene(role("a", "b"))
    scene.step()
    scene.step()

    assert scene.session.asked == [(1, "a"), (2, "b")]


def test_a_container_that_is_given_is_started_and_may_work(scene: Scene) -> None:
    given = scene.grant("a")

    assert scene.session.launched == [given]
    assert scene.work.joins == [("a", given)]
    assert (scene.state("a"), scene.state("b")) == ("working", "starting")
    assert scene.containers.running() == 1


def test_nothing_is_left_for_yarn_once_every_node_works_or_is_left_out(scene: Scene) -> None:
    scene.grant("a")
    assert not scene.containers.is_settled
    for _ in range(PATIENCE.failures):
        scene.end(scene.grant("b"), 1)
        assert scene.containers.is_settled == (scene.state("b") == "left out")


@pytest.mark.parametrize(
    ("status", "kind", "blame"),
    [
        (1, "crashed", True),
        (137, "killed", True),
        (143, "ended from outside", False),
        (154, "ended from outside", False),
        (-100, "lost node", False),
        (-101, "failed disk", False),
        (-1000, "not started", False),
        (-102, "preempted", False),
        (-104, "memory kill", True),
        (-106, "ended by YARN", False),
    ],
)
def test_ends_are_told_apart_and_the_node_is_asked_again(scene: Scene, status: int, kind: str, blame: bool) -> None:
    given = scene.grant("a")

    scene.end(given, status, "said YARN\nand more")
    scene.step()

    assert [(one.node_name, one.kind, one.said) for one in scene.failures] == [("a", kind, "said YARN")]
    assert scene.work.ends == [("a", given, blame, f"{kind}: said YARN")]
    assert scene.session.asked[-1] == (3, "a")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            "/opt/worker/bin/python",
            "its node has no /opt/worker/bin/python: name a Python of the nodes with --worker-python, "
            "or an environment with --env NAME@VERSION",
        ),
        ("convert", "its node has no convert"),
    ],
)
def test_a_program_that_a_node_does_not_have_is_named(scene: Scene, program: str, said: str) -> None:
    stderr = f"Last 4096 bytes of stderr :\n/bin/bash: line 1: {program}: No such file or directory\n\n"
    diagnostics = f"[now]Exception from container-launch.\nContainer id: c\nExit code: 127\n\n{stderr}"
    scene.end(scene.grant("a"), 127, diagnostics)
    scene.end(scene.grant("b"), 1, diagnostics.replace("127", "1"))
    assert [one.said for one in scene.failures] == [said, "[now]Exception from container-launch."]


def test_a_node_that_calls_itself_unhealthy_has_a_failed_disk(scene: Scene) -> None:
    given = scene.grant("a")

    scene.step(Heartbeat((), (Ended(given, -100, "Container released on a *lost* node"),), ("a",), (), ("a",)))

    assert [failure.kind for failure in scene.failures] == ["failed disk"]
    assert scene.state("a") == "lost"


def test_what_the_worker_said_counts_more_than_what_yarn_says(scene: Scene) -> None:
    given = scene.grant("a")
    scene.reasons[given] = "no space left"

    scene.end(given, 1, "Exception from container-launch")

    assert scene.failures[0].said == "no space left"


def test_a_node_that_fails_three_times_is_left_out(scene: Scene) -> None:
    scene.grant("b")
    for _ in range(3):
        scene.end(scene.grant("a"), 1)
        scene.step()

    assert scene.state("a") == "left out"
    assert len([name for _, name in scene.session.asked if name == "a"]) == 3


def test_suspected_pictures_that_end_containers_do_not_speak_against_the_node(scene: Scene) -> None:
    scene.grant("b")
    for _ in range(5):
        given = scene.grant("a")
        scene.work.suspected.add(given)
        scene.end(given, 137)
        scene.step()

    assert scene.state("a") == "starting"
    assert {failure.counts for failure in scene.failures} == {False}


def test_seconds_in_which_yarn_did_not_answer_are_no_delay_of_a_node(scene: Scene) -> None:
    scene.containers.excuse(600.0)
    scene.step(seconds=620.0)

    assert scene.state("a") == "starting"
    with pytest.raises(JobError, match="no container within 30 s"):
        scene.step(seconds=20.0)


@pytest.mark.parametrize("status", [143, 154])
def test_ends_from_outside_speak_against_the_node(scene: Scene, status: int) -> None:
    for _ in range(3):
        scene.end(scene.grant("a"), status)
        scene.step()

    assert scene.state("a") == "left out"


def test_a_failure_has_the_second_of_the_work_and_not_of_the_attempt() -> None:
    scene = Scene(role("a"), begun=100.0)
    scene.step()

    scene.end(scene.grant("a"), 1)

    assert [failure.seconds for failure in scene.failures] == [103.0]


def test_preemption_is_no_failure_of_the_node(scene: Scene) -> None:
    for _ in range(5):
        scene.end(scene.grant("a"), -102)
        scene.step()

    assert scene.state("a") == "starting"


def test_the_job_ends_with_a_sentence_when_every_node_is_left_out(scene: Scene) -> None:
    for _ in range(3):
        scene.end(scene.grant("a"), 1, "no luck")
        scene.step()
    for _ in range(2):
        scene.end(scene.grant("b"), 1, "no luck either")
        scene.step()

    with pytest.raises(JobError, match="a: crashed: no luck; b: crashed: no luck either"):
        scene.end(scene.grant("b"), 1, "no luck either")


def test_a_node_lost_before_its_container_started_is_asked_again_when_it_is_back(scene: Scene) -> None:
    scene.grant("b")
    scene.step(Heartbeat((), (), ("a",)))
    assert scene.state("a") == "lost"
    assert scene.session.withdrawn == [1]
    scene.step()
    assert len(scene.session.asked) == 2

    scene.step(Heartbeat((), (), (), ("a",)))
    scene.step()

    assert scene.session.asked[-1] == (3, "a")


def test_the_last_container_that_is_done_may_end_a_job_that_has_lost_a_node(scene: Scene) -> None:
    """What does the work tells only afterwards that nothing is left; if it does not, the job has no hope."""
    scene.work.zero_is_done = True
    container = scene.grant("a")
    scene.step(seconds=31)  # b is late

    scene.end(container, 0)

    with pytest.raises(JobError, match=r"\(b: no container within 30 s"):
        scene.step()


def test_full_nodes_are_waited_for_while_others_work_and_no_longer(scene: Scene) -> None:
    given = scene.grant("b")
    for _ in range(5):
        scene.work.last["b"] = scene.now
        scene.step(seconds=20)
    assert scene.state("a") == "starting"

    with pytest.raises(JobError, match="a: no container within 30 s"):
        for _ in range(3):
            scene.end(given, 1, "gone")
            scene.step(seconds=31)


def test_a_container_that_comes_after_its_request_was_withdrawn_is_given_back(scene: Scene) -> None:
    scene.step(Heartbeat((), (), ("a",)))

    scene.step(Heartbeat((Granted("late", "a", "a:8042", None, 1),), (), ()))

    assert scene.session.released == ["late"]
    assert scene.work.joins == []


def test_a_nodemanager_that_cannot_start_a_container_counts_against_the_node(scene: Scene) -> None:
    scene.session.refusal = HadoopError("no NodeManager there")

    given = scene.grant("a")

    assert scene.session.released == [given]
    assert [failure.kind for failure in scene.failures] == ["lost node"]


def test_a_container_whose_files_hdfs_does_not_tell_of_is_asked_for_again(scene: Scene) -> None:
    scene.session.refusal = Unprepared("HDFS is away")
    for _ in range(5):
        given = scene.grant("a")
        assert scene.session.released[-1] == given
        scene.step()

    assert (scene.failures, scene.work.ends, scene.state("a")) == ([], [], "starting")
    assert scene.containers.states()["a"] == NodeState("starting", 0, "HDFS is away")
    scene.session.refusal = None
    assert scene.work.joins == [("a", scene.grant("a"))]


def test_files_that_are_not_there_are_not_asked_for_without_end(scene: Scene) -> None:
    scene.session.refusal = Unprepared("code.zip is gone")

    with pytest.raises(JobError, match=r"a: code\.zip is gone"):
        for _ in range(20):
            scene.grant("a")
            scene.step(seconds=2)


@pytest.mark.parametrize(("silence", "limit"), [(60.0, 60.0), (6.0, 30.0)])
def test_a_worker_has_as_long_for_its_first_word_as_for_its_container(silence: float, limit: float) -> None:
    scene = Scene(role("a", silence=silence))
    scene.step()
    scene.work.last["a"] = 0.5  # said by the one before
    given = scene.grant("a")
    scene.step(seconds=limit - 1)
    assert scene.session.released == []

    scene.step(seconds=2)

    assert scene.session.released == [given]


def test_a_worker_that_has_spoken_may_not_be_silent_for_so_long() -> None:
    scene = Scene(role("a", silence=6.0))
    scene.step()
    given = scene.grant("a")
    scene.step()
    scene.work.last["a"] = scene.now

    scene.step(seconds=7)

    assert scene.session.released == [given]


def test_a_node_keeps_its_part_until_its_worker_speaks_or_has_had_its_time(scene: Scene) -> None:
    scene.work.kept.clear()
    scene.step()
    assert scene.work.kept == ["a", "b"]
    scene.grant("a")
    scene.work.kept.clear()
    scene.step()
    assert scene.work.kept == ["a", "b"]
    scene.work.last["a"] = scene.now

    scene.work.kept.clear()
    scene.step()
    assert scene.work.kept == ["b"]
    scene.work.kept.clear()
    scene.step(seconds=30)
    assert scene.work.kept == []


def test_a_silent_worker_is_ended_and_asked_for_again(scene: Scene) -> None:
    given = scene.grant("a")
    scene.work.last["a"] = scene.now
    scene.step(seconds=59)
    assert scene.session.released == []

    scene.step(seconds=2)

    assert scene.session.released == [given]
    assert [failure.kind for failure in scene.failures] == ["silent"]
    scene.step()
    assert scene.session.asked[-1] == (3, "a")


@pytest.mark.parametrize("before", [0, 2])
def test_a_later_attempt_goes_on_with_the_containers_of_the_earlier_one(before: int) -> None:
    scene = Scene(role("a", "b"))
    held = [Granted("old", "a", "a:8042", None), Granted("odd", "elsewhere", "x:8042", None)]
    earlier = [Failure("b", "c", "crashed", 1.0)] * before

    scene.containers.adopt(held, earlier, 0.0, {})
    scene.step()

    assert scene.work.joins == [("a", "old")]
    assert scene.session.released == ["odd"]
    assert scene.session.asked == [(1, "b")]
    assert scene.containers.states()["b"].failures == before


def test_nothing_is_forgotten_of_a_node_that_was_left_out_before() -> None:
    scene = Scene(role("a", "b"))
    scene.containers.adopt([], [Failure("b", "c", "crashed", 1.0)] * 3, 0.0, {})

    scene.step()

    assert scene.session.asked == [(1, "a")]


def test_when_all_is_done_ends_are_no_failures_and_nothing_is_asked_for(scene: Scene) -> None:
    given = scene.grant("a")
    scene.session.answers = [Heartbeat((Granted("late", "b", "b:8042", None, 2),), (Ended(given, 0, ""),), ())]

    scene.containers.step(scene.now, 1.0)
    scene.containers.step(scene.now, 1.0)

    assert scene.containers.running() == 0
    assert scene.failures == []
    assert scene.session.released == ["late"]
    assert len(scene.session.asked) == 2


def test_what_still_runs_is_released_in_the_end(scene: Scene) -> None:
    given = scene.grant("a")

    scene.containers.release()

    assert scene.session.released == [given]


def test_yarn_s_own_numbers_and_signals_are_known() -> None:
    check: Callable[[int], Exit] = exit_of
    assert [check(status) for status in (0, 1, 139, -103)] == [Exit.FINISHED, Exit.CRASHED, Exit.KILLED, Exit.MEMORY]


def test_a_container_that_is_done_is_not_asked_for_again(scene: Scene) -> None:
    scene.work.zero_is_done = True

    scene.end(scene.grant("a"), 0)
    scene.step()

    assert (scene.state("a"), scene.failures) == ("done", [])
    assert scene.session.asked == [(1, "a"), (2, "b")]


def test_a_number_that_an_earlier_attempt_has_done_needs_no_container() -> None:
    scene = Scene(replace(role("a", "b"), done=frozenset({0})))
    scene.step()

    assert scene.session.asked == [(1, "b")]


def test_a_node_that_is_late_gives_its_seat_to_the_next_best_one() -> None:
    scene = Scene(role("a", spares=("c",), all_needed=True))
    scene.step()
    scene.step(seconds=31)
    scene.step()

    assert scene.session.withdrawn == [1]
    assert scene.session.asked == [(1, "a"), (2, "c")]
    assert scene.work.joins == []
    assert scene.grant("c") == "c2"


def test_a_job_that_needs_all_its_containers_ends_with_the_first_that_cannot_be_had(scene: Scene) -> None:
    scene = Scene(role("a", "b", silence=None, all_needed=True))
    scene.step()
    scene.grant("a")

    with pytest.raises(JobError, match=r"\(b: no container within 30 s"):
        scene.step(seconds=31)


def test_a_role_explains_why_it_ends_once_those_that_could_go_on_have_ended() -> None:
    scene = Scene(replace(role("a", "b", silence=None), explain=lambda nodes: f"not on {nodes}"))
    scene.work.zero_is_done = True
    scene.step()
    container = scene.grant("a")
    scene.step(seconds=31)  # b is late, and a goes on

    scene.end(container, 0)
    with pytest.raises(JobError, match=r"^not on b: no container within 30 s, the node is full or lost:"):
        scene.step(seconds=1)


@pytest.mark.parametrize(("silence", "joined"), [(None, "done"), (60.0, "starting")])
def test_a_program_that_ended_while_there_was_no_application_master_is_not_run_twice(
    silence: float | None, joined: str
) -> None:
    scene = Scene(role("a", silence=silence))
    scene.work.zero_is_done = True
    scene.containers.adopt([], [], 0.0, {"old": Seat("worker", 0, "a")})

    scene.end("old", 0)

    assert scene.state("a") == joined


def test_the_end_of_a_container_of_an_earlier_attempt_is_told_once() -> None:
    scene = Scene(replace(role("a", silence=6.0), ends_alone=True))
    scene.containers.adopt([Granted("old", "a", "a:8042", None)], [], 0.0, {"old": Seat("worker", 0, "a")})
    scene.step(seconds=40)
    assert scene.session.released == ["old"]

    scene.end("old", -100)

    assert [end[1] for end in scene.work.ends] == ["old"]


def test_a_container_of_an_earlier_attempt_keeps_the_seat_that_it_was_moved_to() -> None:
    scene = Scene(role("a", spares=("c",), silence=None))
    scene.containers.adopt([Granted("old", "c", "c:8042", None)], [], 0.0, {"old": Seat("worker", 0, "c")})
    scene.step()

    assert (scene.work.joins, scene.session.asked, scene.session.released) == ([("c", "old")], [], [])


def make_growing(*nodes: str, most: int) -> Role:
    """Workers on these nodes, and on all that are added, but not on one that is called late before its third time."""
    asked = [0]

    def admit(new: Sequence[str]) -> Sequence[str]:
        asked[0] += 1
        return [node for node in new if node != "late" or asked[0] > 2]

    return replace(role(*nodes), most=most, admit=admit)


def test_nodes_that_are_added_get_free_seats_and_are_spares_then() -> None:
    scene = Scene(make_growing("a", most=2))
    scene.step()
    scene.step(Heartbeat((), (), (), back_nodes=("a", "b", "c")), seconds=ADMIT_SECONDS)
    scene.step()
    assert scene.session.asked == [(1, "a"), (2, "b")]

    scene.grant("a")
    scene.step(seconds=PATIENCE.container_wait + 1.0)
    scene.step()
    assert scene.session.asked[2:] == [(3, "c")]
    assert scene.session.withdrawn == [2]


def test_a_new_node_is_asked_about_until_it_is_taken_or_lost() -> None:
    scene = Scene(make_growing("a", most=3))
    scene.step(Heartbeat((), (), (), back_nodes=("late", "gone")))
    scene.step(Heartbeat((), (), lost_nodes=("gone",)))
    for _ in range(3):
        scene.step(seconds=ADMIT_SECONDS)
    scene.step()

    assert scene.session.asked == [(1, "a"), (2, "late")]


def test_a_role_that_takes_no_new_nodes_goes_on_as_it_is(scene: Scene) -> None:
    scene.step(Heartbeat((), (), (), back_nodes=("c",)), seconds=ADMIT_SECONDS)
    scene.step()

    assert scene.session.asked == [(1, "a"), (2, "b")]


def standing(*nodes: str) -> Scene:
    """A role that stands."""
    made = Scene(replace(role(*nodes), stands=True))
    made.step()
    return made


def test_a_role_that_stands_waits_for_its_nodes_however_long_these_are_full() -> None:
    scene = standing("a")

    for _ in range(5):
        scene.step(seconds=10 * PATIENCE.container_wait)

    assert scene.state("a") == "starting"
    assert scene.session.asked == [(1, "a")]


def test_a_role_that_stands_tries_a_node_again_that_failed_too_often() -> None:
    scene = standing("a")
    for _ in range(PATIENCE.failures):
        scene.end(scene.grant("a"), 1)
        scene.step()
    assert scene.state("a") == "left out"

    scene.step(seconds=TRY_AGAIN_SECONDS)
    scene.step()

    assert scene.state("a") == "starting"
    assert scene.containers.states()["a"].failures == 0
    assert len(scene.session.asked) == PATIENCE.failures + 1


def test_an_end_that_turned_out_to_be_no_fault_of_its_node_counts_no_more_where_a_role_stands() -> None:
    scene = standing("a")
    ended = []
    for _ in range(PATIENCE.failures):
        ended.append(scene.grant("a"))
        scene.end(ended[-1], 1)
        scene.step()
    assert scene.state("a") == "left out"

    scene.work.excused = [ended[1], "another"]
    scene.step()
    scene.step()

    assert scene.state("a") == "starting"
    assert scene.containers.states()["a"].failures == PATIENCE.failures - 1
    scene.end(scene.grant("a"), 1)
    assert scene.state("a") == "left out", "what is its fault counts on"


def test_a_node_that_fails_for_ever_is_tried_less_and_less_often() -> None:
    scene = standing("a")
    tries = 0

    for _ in range(24 * 60):  # minutes of a day
        if scene.state("a") == "starting":
            scene.end(scene.grant("a"), 1)
            tries += 1
        scene.step(seconds=60.0)
        scene.step(seconds=0.0)

    assert 20 * PATIENCE.failures < tries < 40 * PATIENCE.failures, "each hour at last"


def test_what_failed_before_a_container_worked_for_long_counts_no_more_where_a_role_stands() -> None:
    scene = standing("a")
    for _ in range(PATIENCE.failures - 1):
        scene.end(scene.grant("a"), 1)
        scene.step()
    given = scene.grant("a")
    scene.work.last["a"] = scene.now + FORGET_SECONDS

    scene.step(seconds=FORGET_SECONDS)
    scene.end(given, 1)

    assert scene.state("a") != "left out"
    assert scene.containers.states()["a"].failures == 1


def test_a_role_that_stands_adopts_its_containers_whatever_failed_in_an_earlier_attempt() -> None:
    scene = Scene(replace(role("a"), stands=True))
    failures = [Failure("a", f"c{number}", "crashed", 1.0) for number in range(PATIENCE.failures)]

    scene.containers.adopt([Granted("c9", "a", "a:8042", None, 0)], failures, 0.0, {"c9": Seat("worker", 0, "a")})

    assert scene.state("a") == "working"
    assert scene.session.released == []


def test_a_node_that_lost_its_seat_in_a_role_that_stands_is_a_spare_after_a_while() -> None:
    scene = Scene(replace(role("a", spares=("b",)), stands=True))
    scene.step()
    for node in ("a", "b"):
        for _ in range(PATIENCE.failures):
            scene.end(scene.grant(node), 1)
            scene.step()
    assert scene.state("b") == "left out"

    scene.step(seconds=TRY_AGAIN_SECONDS)  # b may be tried again, too, which has failed later
    scene.step()
    for _ in range(PATIENCE.failures):
        if "b" in scene.containers.states():
            scene.end(scene.grant("b"), 1)
            scene.step()

    assert scene.state("a") == "starting"


def test_nodes_of_an_earlier_attempt_have_one_seat_each_or_are_spares() -> None:
    scene = Scene(replace(role("a", "b", spares=("c",)), stands=True))
    seats = {"c1": Seat("worker", 0, "b"), "c2": Seat("worker", 1, "c")}

    held = [Granted("c2", "c", "c:8042", None, 0)]
    scene.containers.adopt([*held, Granted("c1", "b", "b:8042", None, 0)], (), 0.0, seats)
    assert sorted(scene.containers.states()) == ["b", "c"]
    scene.end("c2", 1)
    scene.step(seconds=PATIENCE.container_wait + 1)
    scene.step(seconds=PATIENCE.container_wait + 1)
    assert sorted(scene.containers.states()) == ["a", "b"]


def test_a_node_whose_container_has_gone_with_an_earlier_attempt_gives_its_seat_where_another_has_taken_it() -> None:
    scene = Scene(replace(role("a", "b"), stands=True))

    scene.containers.adopt([Granted("c1", "b", "b:8042", None, 0)], (), 0.0, {"c1": Seat("worker", 0, "b")})

    assert {node: one.state for node, one in scene.containers.states().items()} == {"a": "waiting", "b": "working"}
