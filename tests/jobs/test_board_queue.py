"""The board's call for YARN's queues: what waits, in which order and for what, and who is told; Hadoop is played."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from infosvc.access.roles import Caller
from infosvc.wire.client import InfoClient
from infosvc.wire.queues import ClusterQueues, MastersLimit
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import EXAMPLE_ID
from jobs.dashboard.queue.reasons import waits_for
from tests.jobs.conftest import Values
from tests.jobs.decisions import NODES
from tests.jobs.played import INACTIVE, JOB, WAITING, Hadoop, ended_app, running_app
from tests.recipes.pages import block

ADMIN = Caller("first admin", Role.ADMIN, user_name="admin")
OWN = {"applicationTags": f"task:{EXAMPLE_ID},kind=task,program:train"}


def other(number: int, **also: Any) -> dict[str, Any]:
    """A further application that waits."""
    about = {
        "id": f"application_1700000000000_{number:04}",
        "name": "theirs",
        "applicationType": "SPARK",
        "user": "you",
    }
    return {**running_app(number, ""), **about, **WAITING, **also}


def ask(known: FlaskClient) -> ClusterQueues:
    answer = known.get("/api/v1/queue")
    assert answer.status_code == 200, answer.text
    return ClusterQueues.from_json(answer.get_json())


def test_each_leaf_queue_is_told_with_its_figures(known: FlaskClient) -> None:
    default, small = ask(known).queues

    assert (default.name, default.state, default.capacity, default.used, default.maximum) == (
        *("root.default", "RUNNING"),
        *(0.75, 0.375, 1.0),
    )
    assert (default.masters_mb, default.masters_most_mb, default.users[0].name) == (1152, 1536, "maria")
    assert default.masters == MastersLimit("memory-mb", 1152, 1536, is_full=False)
    assert (small.name, small.used, small.maximum) == ("root.small", 0.229167, 0.25)


def test_those_that_wait_stand_in_the_order_in_which_yarn_takes_them(
    known: FlaskClient, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Values, "viewer", lambda self: ADMIN)
    hadoop.app |= WAITING | OWN
    not_active = {"diagnostics": INACTIVE.format(limit="Queue's")}
    hadoop.others = [
        other(8, state="SUBMITTED", queue="default"),
        other(5, priority=1, **not_active),
        other(4, **not_active),
        other(3),
        other(7, priority=2),
        other(6, queue="root.small"),
        running_app(2, NODES[0]),
    ]

    found = ask(known)

    assert [(one.queue, one.position, str(one.job_id)[-1]) for one in found.waiting] == [
        ("root.default", 1, "7"),
        ("root.default", 2, "1"),
        ("root.default", 3, "3"),
        ("root.default", 4, "8"),
        ("root.default", 5, "5"),
        ("root.default", 6, "4"),
        ("root.small", 1, "6"),
    ]
    assert [(one.running, one.waiting) for one in found.queues] == [(1, 6), (0, 1)]


def test_users_see_their_own_tasks_and_of_others_the_position_alone(known: FlaskClient, hadoop: Hadoop) -> None:
    hadoop.app |= WAITING | OWN
    hadoop.others = [other(2, applicationTags="task:task_0123456789abcdef")]

    own, theirs = ask(known).waiting

    assert (own.own, own.job_id, own.task_id, own.kind, own.name, own.owner) == (
        *(True, JOB, EXAMPLE_ID),
        *("task", "mnist", "maria"),
    )
    assert (own.memory_mb, own.vcores, own.since) == (768, 1, 1_700_000_000.0)
    assert own.said and own.said.startswith("[Wed Nov 25 21:35:55")
    told = {name for name, value in theirs.to_json().items() if value not in (None, False)}
    assert told == {"queue", "position"}


def test_a_tag_that_another_application_took_makes_it_nobody_s_task(
    known: FlaskClient, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Values().task(EXAMPLE_ID)
    has_one = type(task)(**{**vars(task), "application_id": "application_1700000000000_0077"})
    monkeypatch.setattr(Values, "tasks", lambda self: {EXAMPLE_ID: has_one})
    hadoop.app |= WAITING | OWN

    (found,) = ask(known).waiting

    assert (found.own, found.task_id) == (False, None)


def test_one_that_has_its_place_does_not_wait_whatever_yarn_said_of_it_before(
    known: FlaskClient, hadoop: Hadoop
) -> None:
    hadoop.app |= WAITING | OWN | {"masterNodeId": f"{NODES[0]}:8041", "allocatedMB": 768, "runningContainers": 1}

    assert ask(known).waiting == ()


Change = Callable[[Hadoop], None]


def _queue(hadoop: Hadoop, **also: Any) -> None:
    (default, _) = hadoop.scheduler["scheduler"]["schedulerInfo"]["queues"]["queue"]
    default |= also


def _say(limit: str) -> Change:
    return lambda hadoop: hadoop.app.update(diagnostics=INACTIVE.format(limit=limit))


def _request(**also: Any) -> Change:
    (first,) = WAITING["resourceRequests"]
    return lambda hadoop: hadoop.app.update(resourceRequests=[{**first, **also}])


def _only(*hosts: str) -> Change:
    (first,) = WAITING["resourceRequests"]
    named = [{**first, "resourceName": name} for name in (*hosts, "/default-rack")]
    return lambda hadoop: hadoop.app.update(resourceRequests=[{**first, "relaxLocality": False}, *named])


def _asks_as_maria(hadoop: Hadoop) -> None:
    hadoop.app["user"] = "maria"
    _request(capability={"memory": 1500, "vCores": 1})(hadoop)


def _reserve(hadoop: Hadoop) -> None:
    hadoop.app["reservedMB"] = 768
    _queue(hadoop, maxEffectiveCapacity={"memory": 1536})


def _masters(limit: str, **used: int) -> Change:
    def change(hadoop: Hadoop) -> None:
        _say(limit)(hadoop)
        _queue(hadoop, usedAMResource=used)

    return change


REASONS: dict[str, tuple[Change, str]] = {
    "it is new": (lambda hadoop: hadoop.app.update(state="SUBMITTED"), "YARN to take it in"),
    "masters of the queue": (
        _say("Queue's"),
        "room for application masters in root.default, tasks included: they have 1,152 of at most 1,536 MB, "
        "and it asks for 768 MB",
    ),
    "masters of the user": (
        _say("User's"),
        "room for the application masters of me in root.default, tasks included: they have 0 of at most "
        "1,152 MB, and it asks for 768 MB",
    ),
    "masters have all their vcores": (
        _masters("Queue's", memory=512, vCores=4),
        "room for application masters in root.default, tasks included: they have 4 of at most 4 vcores, "
        "and it asks for 1 vcore",
    ),
    "masters have all of both": (
        _masters("Queue's", memory=1536, vCores=4),
        "room for application masters in root.default, tasks included: they have 1,536 of at most 1,536 MB "
        "and 4 of at most 4 vcores, and it asks for 768 MB and 1 vcore",
    ),
    "too many at once": (
        lambda hadoop: hadoop.app.update(diagnostics="Application is added and is not yet activated. "),
        "YARN to make it active: the queue or its user has as many applications as may run at once",
    ),
    "the queue is full": (
        lambda hadoop: _queue(hadoop, maxEffectiveCapacity={"memory": 1536}),
        "room in the queue root.default: it has 1,152 MB of at most 1,536 MB, and this asks for 768 MB",
    ),
    "its user has enough": (
        _asks_as_maria,
        "what maria runs in root.default to end: it has 1,152 MB of at most 2,304 MB there, and this asks for 1,500 MB",
    ),
    "a node is reserved for it, which counts as used": (
        _reserve,
        "room on a node: it asks for 768 MB and 1 vcore, and alpha has the most free, 512 MB and 6 vcores",
    ),
    "no node has room": (
        lambda hadoop: None,
        "room on a node: it asks for 768 MB and 1 vcore, and alpha has the most free, 512 MB and 6 vcores",
    ),
    "no node is large enough": (
        _request(capability={"memory": 1800, "vCores": 9}),
        "a node that is large enough: it asks for 1,800 MB and 9 vcores, and the largest that it may use, alpha, has "
        "2,048 MB and 8 vcores",
    ),
    "its nodes have no room": (
        _only("beta", "gamma"),
        "room on beta, gamma, the only nodes that it may use: it asks for 768 MB and 1 vcore, and beta has the most "
        "free, 512 MB and 6 vcores",
    ),
    "its nodes are away": (_only("nowhere"), "nowhere, the only node that it may use: none of them takes work"),
    "no node has its label": (
        lambda hadoop: hadoop.app.update(amNodeLabelExpression="gpu"),
        "a node with the label gpu: none of them takes work",
    ),
    "it is next": (
        _request(capability={"memory": 256, "vCores": 1}),
        "YARN to give it a place: there is room, and a node that has it says so once a second",
    ),
}


@pytest.mark.parametrize(("change", "said"), REASONS.values(), ids=REASONS)
def test_what_it_waits_for_is_said_in_words(known: FlaskClient, hadoop: Hadoop, change: Change, said: str) -> None:
    hadoop.app |= WAITING | OWN
    change(hadoop)

    (own,) = ask(known).waiting

    assert own.waits_for == said


def test_who_comes_later_waits_for_its_turn_while_there_is_room(known: FlaskClient, hadoop: Hadoop) -> None:
    _request(capability={"memory": 256, "vCores": 1})(hadoop)
    hadoop.app = {**hadoop.app, **WAITING, **OWN, "resourceRequests": hadoop.app["resourceRequests"]}
    hadoop.others = [other(0)]

    _, own = ask(known).waiting

    assert own.waits_for == "its turn: 1 before it in root.default"


def test_an_expected_start_lies_ahead_once_enough_have_ended(known: FlaskClient, hadoop: Hadoop) -> None:
    hadoop.app |= WAITING | OWN
    hadoop.others = [running_app(10 + number, node, 1536) for number, node in enumerate(NODES)]
    hadoop.ended = [ended_app(number, 40.0 + number) for number in range(40)]

    (own,) = ask(known).waiting
    now = 1_700_000_060.0

    assert own.no_start is None and own.start
    assert now <= own.start.earliest < own.start.latest < now + 60


@pytest.mark.parametrize(("limit", "waits"), [(3, True), (4, False)])
def test_vcores_of_masters_hold_up_an_expected_start(
    known: FlaskClient, hadoop: Hadoop, limit: int, waits: bool
) -> None:
    _request(capability={"memory": 256, "vCores": 1})(hadoop)
    hadoop.app = {**hadoop.app, **WAITING, **OWN, "resourceRequests": hadoop.app["resourceRequests"]}
    hadoop.app |= {"diagnostics": INACTIVE.format(limit="Queue's")}
    hadoop.others = [running_app(10 + number, node, 128) for number, node in enumerate(NODES)]
    hadoop.ended = [ended_app(number, 400.0 + number) for number in range(40)]
    most = {"memory": 768, "vCores": limit}
    _queue(hadoop, usedAMResource={"memory": 384, "vCores": 3}, AMResourceLimit=most, userAMResourceLimit=most)

    (own,) = ask(known).waiting

    assert own.start and (own.start.earliest > 1_700_000_060.0 + 60) == waits


def test_vcores_are_not_named_and_hold_up_nothing_where_yarn_goes_by_memory(known: FlaskClient, hadoop: Hadoop) -> None:
    _request(capability={"memory": 768, "vCores": 9})(hadoop)
    hadoop.app = {**hadoop.app, **WAITING, **OWN, "resourceRequests": hadoop.app["resourceRequests"]}
    hadoop.app |= {"diagnostics": INACTIVE.format(limit="Queue's")}
    hadoop.others = [running_app(10, NODES[0], 1024)]
    hadoop.ended = [ended_app(number, 40.0 + number) for number in range(40)]
    most = {"memory": 1536, "vCores": 1}  # of a DefaultResourceCalculator
    for queue in hadoop.scheduler["scheduler"]["schedulerInfo"]["queues"]["queue"]:
        queue |= {"usedAMResource": {"memory": 1024, "vCores": 1}, "AMResourceLimit": most, "userAMResourceLimit": most}

    (own,) = ask(known).waiting

    assert own.waits_for and own.waits_for.endswith("they have 1,024 of at most 1,536 MB, and it asks for 768 MB")
    assert own.start  # although no node has so many vcores


def test_without_enough_that_ended_it_is_said_that_nothing_is_known(known: FlaskClient, hadoop: Hadoop) -> None:
    hadoop.app |= WAITING | OWN
    hadoop.ended = [ended_app(number) for number in range(9)]

    (own,) = ask(known).waiting

    assert own.start is None
    assert own.no_start == "not known: fewer than 10 ended tasks and applications are remembered"


@pytest.mark.parametrize("kind", ["fair", "fifo"])
def test_another_scheduler_is_said_to_be_one_that_nothing_is_told_of(
    known: FlaskClient, hadoop: Hadoop, kind: str
) -> None:
    hadoop.scheduler = {"scheduler": {"schedulerInfo": {"type": f"{kind}Scheduler"}}}
    hadoop.app |= WAITING | OWN

    found = ask(known)

    assert (found.scheduler, found.queues, found.waiting, found.whole) == (kind, (), (), False)
    assert found.said.startswith(f"YARN uses its {kind} scheduler here")


def test_only_so_many_rows_are_answered(known: FlaskClient, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.dashboard.queue.shown.MOST_ROWS", 2)
    hadoop.app |= WAITING
    hadoop.others = [other(number) for number in (2, 3)]

    found = ask(known)

    assert (len(found.waiting), found.whole, found.queues[0].waiting) == (2, False, 3)


def test_an_application_of_which_yarn_tells_this_user_nothing_has_a_position(
    known: FlaskClient, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Values, "viewer", lambda self: ADMIN)
    hadoop.app |= WAITING | OWN
    hidden = {"id": "application_1700000000000_0002", "name": "theirs", "applicationType": "SPARK", "user": "you"}
    hadoop.others = [{**hidden, "queue": "root.default", "state": "ACCEPTED", "finalStatus": "UNDEFINED"}]

    _, theirs = ask(known).waiting

    assert (theirs.position, theirs.memory_mb, theirs.since) == (2, None, None)
    assert theirs.waits_for == "a place: YARN does not tell this user how much it asks for"


def test_a_client_and_the_command_read_it(
    users_client: InfoClient, queue_command: Callable[..., str], hadoop: Hadoop
) -> None:
    task = users_client.submit_task(TaskSpec(["train"], name="mnist"), "one")
    hadoop.app |= WAITING | {"applicationTags": f"task:{task.task_id},kind=task"}

    found = users_client.queues()
    printed = queue_command()

    assert [(one.task_id, one.own) for one in found.waiting] == [(task.task_id, True)]
    assert found.held_back == 1
    assert "root.default" in printed and "1,152 of 1,536 MB" in printed
    assert re.search("used +guaranteed +at most +application masters", printed), "as the page of the dashboard has it"
    assert re.search(rf"\*1 +root.default +{task.task_id}", printed)
    assert "alpha has the most free" in printed
    assert '"position": 1' in queue_command("--json")


def test_the_commands_of_the_page_show_it(queue_command: Callable[..., str]) -> None:
    for line in block("task-queue").splitlines():
        program, group, *words = shlex.split(line, comments=True)
        assert (program, group) == ("nodewise", "queue")
        assert "root.default" in queue_command(*words)


def test_nodes_that_take_no_work_are_named_first() -> None:
    from jobs.dashboard.queue.line import parse_row

    row = parse_row(other(2), 0.0)

    assert waits_for(row, 1, None, [], counts_all=True) == "nodes: none takes work"
