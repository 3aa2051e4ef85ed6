"""Tunnels through a real service: what one end sends the other hears, for whom, and for how long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import TYPE_CHECKING

import pytest

from infosvc.core.service import components_of
from infosvc.http import server
from infosvc.http.api.tasks import tunnel_calls
from infosvc.settings import Clock
from infosvc.tasks import tunnels
from infosvc.tasks.tunnels import MOST_OF_ONE, MOST_WAITING_BYTES, End, OpenTunnel, Tunnels
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Conflict, Forbidden, InfoError, InvalidInput, NotFound, NotReady, TooLarge
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskNews, TaskProgress, TaskState
from infosvc.wire.tunnel import tunnel_end
from infosvc.wire.tunnel.described import Tunnel
from infosvc.wire.tunnel.frames import CLOSE, DATA, IDLE, LONGEST_CONTENT, Frame, line_frame
from infosvc.wire.tunnel.tunnel_end import TunnelCalls, TunnelEnd
from tests.infosvc.conftest import TOKEN
from tests.infosvc.task_users import as_user

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

Eventually = Callable[[Callable[[], bool]], None]
TASK = "task_999855bdfa6921b4"


def runner_token(service: Served, task: Task) -> str:
    """What the runner of a task shows."""
    with as_user(service, f"submitter of {task.task_id}", Role.SUBMITTER) as submitter:
        return submitter.task_token(task.task_id)


@contextmanager
def running(service: Served, user: InfoClient) -> Iterator[tuple[Task, InfoClient]]:
    """A task of this user whose program runs, and its runner."""
    task = user.submit_task(TaskSpec(["train"]))
    runner = InfoClient(service.url, runner_token(service, task))
    runner.put_task_progress(task.task_id, TaskProgress(1, running=True))
    yield user.task(task.task_id), runner


@contextmanager
def joined(service: Served, user: InfoClient) -> Iterator[tuple[TunnelEnd, TunnelEnd]]:
    """Both ends of a tunnel: the user's and the runner's."""
    with running(service, user) as (task, runner), TunnelCalls(user).open(task.task_id) as near:
        waiting = TunnelCalls(runner).waiting(task.task_id)
        assert [one.tunnel_id for one in waiting] == [near.tunnel.tunnel_id]
        with TunnelCalls(runner).join(waiting[0]) as far:
            yield near, far


def frames_of(end: TunnelEnd) -> Iterator[Frame]:
    """Those that say something, until the tunnel is over."""
    return (frame for frames in end for frame in frames if frame.kind)


def data(content: bytes) -> list[Frame]:
    """Bytes of a line, as many frames as they need."""
    pieces = (content[begin : begin + LONGEST_CONTENT] for begin in range(0, len(content), LONGEST_CONTENT))
    return [Frame(DATA, 1, piece) for piece in pieces]


def test_what_one_end_sends_the_other_hears_in_order(service: Served) -> None:
    with as_user(service, "maria") as maria, joined(service, maria) as (near, far):
        for_near, for_far = frames_of(near), frames_of(far)
        near.send(data(b"typed"))
        assert next(for_far) == Frame(DATA, 1, b"typed")
        far.send([Frame(DATA, 2, b"%d" % number) for number in range(100)])
        assert [next(for_near).content for _ in range(100)] == [b"%d" % number for number in range(100)]


def test_what_is_sent_before_the_runner_comes_waits_for_it(service: Served) -> None:
    with running(service, service.client) as (task, runner), TunnelCalls(service.client).open(task.task_id) as near:
        near.send([line_frame(CLOSE, 3, {"code": 1})])

        with TunnelCalls(runner).join(TunnelCalls(runner).waiting(task.task_id)[0]) as far:
            assert next(frames_of(far)) == Frame(CLOSE, 3, b'{"code": 1}')
            assert TunnelCalls(runner).waiting(task.task_id) == []


def test_a_tunnel_ends_for_both_when_one_end_is_closed(service: Served) -> None:
    with joined(service, service.client) as (near, far):
        far.close()

        assert list(frames_of(near)) == []
        with pytest.raises(NotFound, match="has ended"):
            near.send(data(b"typed"))


def test_much_comes_whole_past_a_reader_that_is_slow(service: Served) -> None:
    content = bytes(range(256)) * (16 << 12)
    with joined(service, service.client) as (near, far):
        sender = threading.Thread(target=near.send, args=(data(content),))
        sender.start()

        came = bytearray()
        while len(came) < len(content):
            came += b"".join(frame.content for frame in next(far))
        sender.join(30)

        assert bytes(came) == content


def test_what_an_end_does_not_take_leaves_no_room_for_more() -> None:
    tunnel = open_one(Tunnels(Clock(), 128), "maria")
    content = b"".join(frame.encode() for frame in data(bytes(MOST_WAITING_BYTES)))
    came = tunnel.read(End.RUNNER)
    assert next(came)
    tunnel.write(End.USER, 0, content)
    with pytest.raises(NotReady, match="the other end of the tunnel reads too slowly: send it again"):
        tunnel.write(End.USER, len(content), content)

    assert next(came) == content
    tunnel.write(End.USER, len(content), content)


def test_a_moment_without_room_costs_no_second_each_time(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    write, tries = OpenTunnel.write, count(1)

    def write_at_second_try(self: OpenTunnel, end: End, begin: int, content: bytes) -> None:
        if next(tries) % 2:
            raise NotReady("the other end of the tunnel reads too slowly")
        write(self, end, begin, content)

    monkeypatch.setattr(OpenTunnel, "write", write_at_second_try)
    # Whoever counted all failures, and not those in a row, would wait for long from the fourth piece on.
    monkeypatch.setattr(tunnel_end, "AGAIN_SECONDS", (*tunnel_end.AGAIN_SECONDS[:3], 10.0))
    with joined(service, service.client) as (near, far):
        begun, came, frames = time.monotonic(), 0, frames_of(far)
        near.send(data(bytes(3_000_000)))
        while came < 3_000_000:
            came += len(next(frames).content)

        assert next(tries) > 20
        assert time.monotonic() - begun < 60


def test_the_same_call_again_sends_nothing_twice(service: Served) -> None:
    with joined(service, service.client) as (near, far):
        calls, content = TunnelCalls(service.client), Frame(DATA, 1, b"once").encode()
        calls.write(near.tunnel, 0, content)
        calls.write(near.tunnel, 0, content)
        with pytest.raises(Conflict, match=f"begin=99 is not where this end stopped: {len(content)} bytes came"):
            calls.write(near.tunnel, 99, content)

        calls.write(near.tunnel, len(content), Frame(DATA, 1, b"then").encode())
        came = frames_of(far)
        assert [next(came).content, next(came).content] == [b"once", b"then"]


@pytest.mark.parametrize(
    ("begin", "content", "error", "sentence"),
    [
        (0, b"abc", InvalidInput, "in the middle of a frame"),
        (0, b"\xff" * 20, InvalidInput, "not made of frames"),
        (-1, b"", InvalidInput, "begin='-1' is not allowed"),
        (0, Frame(DATA, 1, bytes(60_000)).encode() * 5, TooLarge, "it may have 262144"),
    ],
)
def test_what_cannot_be_sent_is_refused(
    service: Served, begin: int, content: bytes, error: type[InfoError], sentence: str
) -> None:
    with joined(service, service.client) as (near, _), pytest.raises(error, match=sentence):
        TunnelCalls(service.client).write(near.tunnel, begin, content)


def test_only_the_owner_of_a_task_and_admins_have_tunnels_to_it(service: Served) -> None:
    with as_user(service, "maria") as maria, as_user(service, "tom") as tom, joined(service, maria) as (near, far):
        with pytest.raises(NotFound):
            TunnelCalls(tom).open(near.tunnel.task_id)
        with pytest.raises(NotFound):
            TunnelCalls(tom).join(near.tunnel)
        with pytest.raises(Conflict, match="this end of the tunnel is read already"):
            TunnelCalls(service.client).join(near.tunnel)
        TunnelCalls(service.client).end(near.tunnel)
        assert list(frames_of(far)) == []


def test_the_runner_of_another_task_hears_of_none(service: Served) -> None:
    with running(service, service.client) as (_, stranger), joined(service, service.client) as (near, _):
        with pytest.raises(Forbidden, match="may not ask for other tunnels than its own"):
            TunnelCalls(stranger).waiting(near.tunnel.task_id)
        with pytest.raises(Forbidden):
            TunnelCalls(stranger).waiting()
        with pytest.raises(NotFound):
            TunnelCalls(stranger).join(near.tunnel)


def test_submitters_hear_of_all_that_wait_as_soon_as_there_is_one(service: Served) -> None:
    with running(service, service.client) as (task, _), as_user(service, "hands", Role.SUBMITTER) as submitter:
        assert TunnelCalls(submitter).waiting(seconds=0.1) == []
        opening = threading.Timer(0.3, lambda: opened.append(TunnelCalls(service.client).open(task.task_id)))
        opened: list[TunnelEnd] = []
        opening.start()

        while not (found := TunnelCalls(submitter).waiting(seconds=5)):
            pass  # on a busy machine it is opened later
        opening.join()

        assert [one.task_id for one in found] == [task.task_id]
        opened[0].close()


def test_one_with_less_patience_than_it_asks_for_is_answered_in_time(service: Served) -> None:
    with as_user(service, "hands", Role.SUBMITTER, timeout=8.0) as submitter:
        assert TunnelCalls(submitter).waiting(seconds=10) == []


def test_a_task_whose_program_does_not_run_has_none(service: Served) -> None:
    task = service.client.submit_task(TaskSpec(["train"]))

    with pytest.raises(Conflict, match=f"{task.task_id} is queued: wait until its program runs"):
        TunnelCalls(service.client).open(task.task_id)


def test_seconds_to_wait_are_as_the_document_says(service: Served) -> None:
    said = service.ask("GET", "/api/v1/swagger.json").json["paths"]["/tunnels"]["get"]["parameters"]
    most = next(one["maximum"] for one in said if one["name"] == "seconds")
    with running(service, service.client) as (task, _), TunnelCalls(service.client).open(task.task_id):
        assert service.ask("GET", f"/api/v1/tunnels?seconds={most}").status == 200
        refused = service.ask("GET", f"/api/v1/tunnels?seconds={most + 0.5}")

    assert (refused.status, refused.error["field"]) == (422, "seconds")
    assert refused.error["message"] == "seconds=10.5 is not allowed: 0 to 10"


def test_one_user_has_only_so_many_with_all_tokens(service: Served, eventually: Eventually) -> None:
    with as_user(service, "maria") as maria, as_user(service, "maria") as again, ExitStack() as many:
        task, _ = many.enter_context(running(service, maria))
        for number in range(MOST_OF_ONE):
            many.enter_context(TunnelCalls((maria, again)[number % 2]).open(task.task_id))

        for client in (maria, again):
            with pytest.raises(Conflict, match=f"maria has {MOST_OF_ONE} tunnels: close one of them"):
                TunnelCalls(client).open(task.task_id)
        many.close()
        eventually(lambda: service.ask("POST", "/api/v1/tunnels", {"task_id": task.task_id}).status == 201)


def test_one_whose_reader_goes_away_leaves_its_place(service: Served, eventually: Eventually) -> None:
    with running(service, service.client) as (task, _):
        for _ in range(MOST_OF_ONE):
            TunnelCalls(service.client).open(task.task_id).close()

        def is_opened_again() -> bool:
            try:
                TunnelCalls(service.client).open(task.task_id).close()
            except Conflict:
                return False
            return True

        eventually(is_opened_again)


def open_one(all_of_them: Tunnels, opener: str) -> OpenTunnel:
    """A new one of this user's."""
    return all_of_them.open(TASK, opener, opener)


@pytest.mark.parametrize(("threads", "most"), [(1, 1), (8, 1), (16, 2), (31, 3), (128, 16)])
def test_there_are_as_many_as_the_threads_allow(threads: int, most: int) -> None:
    all_of_them = Tunnels(Clock(), threads)
    for number in range(most):
        open_one(all_of_them, f"user{number}")

    with pytest.raises(Conflict, match=f"{most} of {most} tunnels are open: try again later"):
        open_one(all_of_them, "late")


def test_the_last_quarter_is_for_users_who_have_none() -> None:
    all_of_them = Tunnels(Clock(), 128)
    for number in range(12):
        open_one(all_of_them, f"user{number // MOST_OF_ONE}")

    for late in ("d", "e", "f"):
        open_one(all_of_them, late)
        with pytest.raises(Conflict, match="of 16 tunnels are open, and the rest is for users who have none: try"):
            open_one(all_of_them, late)
    open_one(all_of_them, "g")
    with pytest.raises(Conflict, match="16 of 16 tunnels are open: try again later"):
        open_one(all_of_them, "h")


def test_one_that_has_ended_keeps_its_place_while_its_readers_have_threads() -> None:
    all_of_them = Tunnels(Clock(), 8)
    tunnel = open_one(all_of_them, "maria")
    for end in End:
        tunnel.read(end)
    all_of_them.end(tunnel)
    for end in End:
        with pytest.raises(Conflict, match="1 of 1 tunnels are open"):
            open_one(all_of_them, "tom")
        with pytest.raises(NotFound):
            all_of_them.find(tunnel.told.tunnel_id)
        all_of_them.leave(tunnel, end)

    open_one(all_of_them, "tom")


def test_tunnels_leave_threads_to_other_calls(serve: Serving, sqlite_url: str, stack: ExitStack) -> None:
    with serve(sqlite_url, threads=16) as service, running(service, service.client) as (task, _):
        with pytest.raises(Conflict, match="2 of 2 tunnels are open"):
            for number in range(16):
                admin = stack.enter_context(as_user(service, f"admin{number}", Role.ADMIN))
                stack.enter_context(TunnelCalls(admin).open(task.task_id))

        assert service.ask("GET", "/api/v1/nodes").status == 200
        stack.close()


@pytest.mark.parametrize(("threads", "most"), [(1, 1), (32, 1), (128, 4)])
def test_only_so_many_calls_wait(threads: int, most: int, eventually: Eventually) -> None:
    all_of_them = Tunnels(Clock(), threads)
    waiting = [threading.Thread(target=all_of_them.waiting, args=("", 60)) for _ in range(most)]
    for one in waiting:
        one.start()

    eventually(lambda: all_of_them._waiting == most)  # who asks for it waits too, and could take the place of one
    assert is_refused(all_of_them, f"{most} of {most} callers wait for tunnels already: try again later")
    assert all_of_them.waiting("", 0) == []
    all_of_them.close()
    for one in waiting:
        one.join(60)
        assert not one.is_alive()


def is_refused(all_of_them: Tunnels, sentence: str) -> bool:
    """Whether no further call may wait, as this tells."""
    try:
        all_of_them.waiting("", 0.001)
    except NotReady as error:
        return str(error) == sentence
    return False


def test_none_is_opened_or_waited_for_when_the_service_ends() -> None:
    all_of_them = Tunnels(Clock(), 128)
    tunnel = open_one(all_of_them, "maria")
    all_of_them.close()

    assert tunnel.is_over
    with pytest.raises(NotReady, match=f"the service ends: there is no tunnel to {TASK}: try again later"):
        open_one(all_of_them, "maria")
    begun = time.monotonic()
    assert all_of_them.waiting("", 60) == []
    assert time.monotonic() - begun < 30


def test_the_service_ends_at_once_while_tunnels_are_open_and_waited_for(
    serve: Serving,
    sqlite_url: str,
    stack: ExitStack,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # So long would the end take if anybody were waited for, which a busy machine is not mistaken for.
    for module, name in (
        (tunnels, "HEARTBEAT_SECONDS"),
        (tunnel_end, "SILENCE_SECONDS"),
        (tunnel_calls, "LONGEST_WAIT"),
        (server, "DRAIN_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 40.0)
    found: list[list[Tunnel]] = []
    with serve(sqlite_url, threads=32) as service:
        _, token = service.client.create_token("hands", Role.SUBMITTER)
        submitter = stack.enter_context(InfoClient(service.url, token, timeout=120))
        ends = [stack.enter_context(end) for end in stack.enter_context(joined(service, service.client))]
        poll = threading.Thread(target=lambda: found.append(TunnelCalls(submitter).waiting(seconds=40)))
        poll.start()
        eventually(lambda: components_of(service.server.app).tunnels._waiting == 1)
        assert service.ask("GET", "/api/v1/tunnels?seconds=0.001").status == 503
        begun = time.monotonic()
        service.server.stop()
        assert [list(frames_of(end)) for end in ends] == [[], []]
        poll.join(60)
    took = time.monotonic() - begun

    assert found == [[]]
    assert took < 30, f"{took:.1f} s: somebody was waited for"


@pytest.mark.parametrize("end", End)
def test_head_only_looks(service: Served, end: End) -> None:
    with running(service, service.client) as (task, runner):
        made = service.ask("POST", "/api/v1/tunnels", {"task_id": task.task_id}).json
        path, client, token = f"/api/v1/tunnels/{made['tunnel_id']}", service.client, TOKEN
        if end is End.RUNNER:
            client, token = runner, runner_token(service, task)
        for _ in range(2):
            assert service.ask("HEAD", path, token=token).status == 200
        assert [one.to_json() for one in TunnelCalls(runner).waiting(task.task_id)] == [made]

        with TunnelCalls(client).join(Tunnel.from_json(made)) as joining:
            assert service.ask("HEAD", path, token=token).status == 409
            joining.send(data(b"typed"))
            assert service.ask("HEAD", path, token=token).status == 409
        assert service.ask("HEAD", path, token=token).status == 404


def test_a_tunnel_that_no_runner_joins_ends(service: Served, hands: Hands) -> None:
    with running(service, service.client) as (task, _), TunnelCalls(service.client).open(task.task_id) as near:
        hands.turn(tunnels.JOIN_SECONDS + 1)

        assert list(frames_of(near)) == []


def test_a_token_that_is_revoked_ends_its_tunnels(service: Served) -> None:
    with as_user(service, "maria") as maria, joined(service, maria) as (near, far):
        for token in service.client.tokens():
            if token.name == "maria":
                service.client.revoke_token(token.token_id)

        assert list(frames_of(near)) == []
        assert list(frames_of(far)) == []


def test_who_opened_a_tunnel_is_in_the_audit_log(service: Served) -> None:
    with as_user(service, "maria") as maria, joined(service, maria) as (near, _):
        near.send(data(b"a secret"))

    lines = [entry for entry in service.client.audit() if "/tunnels" in entry.call]
    opened = [entry for entry in lines if entry.call.startswith("POST")]
    assert [(entry.who.split()[0], entry.call) for entry in opened] == [("maria", "POST /api/v1/tunnels")]
    assert near.tunnel.task_id in opened[0].detail
    assert all("a secret" not in entry.detail for entry in lines)


def test_a_tunnel_that_is_refused_is_not_in_the_audit_log_as_opened(service: Served) -> None:
    with running(service, service.client) as (task, _), ExitStack() as many:
        for _ in range(MOST_OF_ONE):
            many.enter_context(TunnelCalls(service.client).open(task.task_id))
        with pytest.raises(Conflict):
            TunnelCalls(service.client).open(task.task_id)

    lines = [entry.status for entry in service.client.audit() if entry.call == "POST /api/v1/tunnels"]
    assert lines.count(201) == MOST_OF_ONE
    assert set(lines) <= {201, 409}


def test_a_tunnel_that_cannot_be_noted_is_not_opened(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise NotReady("the database does not answer")

    monkeypatch.setattr(tunnel_calls, "record_call", fail)
    with running(service, service.client) as (task, runner):
        assert service.ask("POST", "/api/v1/tunnels", {"task_id": task.task_id}).status == 503

        assert TunnelCalls(runner).waiting(task.task_id) == []


def test_a_tunnel_whose_runner_has_not_come_ends_with_the_task(service: Served) -> None:
    with running(service, service.client) as (task, _), TunnelCalls(service.client).open(task.task_id) as near:
        service.client.put_task_news(task.task_id, TaskNews(TaskState.FAILED, exit_code=127))
        begun = time.monotonic()
        # One for every five seconds: on a busy machine there may have been more than the first.
        assert {frame for frames in near for frame in frames} == {Frame(IDLE)}
        assert time.monotonic() - begun < tunnels.JOIN_SECONDS
