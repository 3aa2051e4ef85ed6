"""Alerts: when they go on and off, what is told once, and who may see and add what; with a real receiver over https."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infosvc.alerts import outside, watching
from infosvc.alerts.findings import KEPT_SECONDS, Finding
from infosvc.alerts.outside import ClusterFacts, FailedJob
from infosvc.alerts.turns import turns_of
from infosvc.commands.serve import serve as serve_command
from infosvc.core.service import components_of
from infosvc.management import watchdog
from infosvc.posting import outbox, sending
from infosvc.posting.addresses import check_address
from infosvc.posting.sending import send, signature
from infosvc.state.configuration import Configuration, StoredAlert
from infosvc.state.transaction import Transaction
from infosvc.wire.alerts.alert_client import AlertClient
from infosvc.wire.errors import Conflict, Forbidden, InvalidInput, NotFound
from infosvc.wire.records import Kind, Outcome, Producer, Report, Role, Run
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskState
from tests.infosvc.conftest import PATIENCE_SECONDS, Hands
from tests.infosvc.receiver import Receiver, authority_in, receiving
from tests.infosvc.task_users import as_user
from tests.ports import free_port

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving

Eventually = Callable[[Callable[[], bool]], None]

LOW = "free / total < 0.05"


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at alerts but these tests: who looked while hands are turned could take old times for new values."""
    monkeypatch.setattr(watching, "STEP_SECONDS", 3600.0)
    monkeypatch.setattr(watchdog, "STEP_SECONDS", 3600.0)


@pytest.fixture
def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver whose authority this process trusts."""
    authority = authority_in(tmp_path / "authority")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with receiving(authority) as found:
        yield found


@pytest.fixture
def filled(service: Served) -> Served:
    """A service with a node and what is free on it."""
    for name in ("free", "total"):
        service.client.put_producer(Producer(name, "", 5.0, Kind.PROGRAM, ttl=1e6))
    service.client.put_node("n1", "127.0.0.1:9")
    write(service, 50)
    return service


def write(service: Served, free: float) -> None:
    """Say what is free of 100."""
    service.client.put_value("total", "n1", 100)
    service.client.put_value("free", "n1", free)


def look(service: Served) -> None:
    """Look at all alerts now, as their thread does each second."""
    components_of(service.server.app).alerts.step()


def configuration(service: Served) -> Configuration:
    """What the service knows."""
    found: Configuration = components_of(service.server.app).latest.configuration
    return found


def states(service: Served) -> list[tuple[str, bool]]:
    """What the only alert is on for, or its condition holds for."""
    found = configuration(service).alert_states.values()
    return [(about, state.is_on) for one in found for about, state in one.items()]


def arrived(service: Served, receiver: Receiver, expected: list[tuple[str, bool]]) -> bool:
    """Whether this was told, and the service has stored that: turned hands make a commit under way look hung."""
    return told(receiver) == expected and configuration(service).deliveries == {}


def told(receiver: Receiver) -> list[tuple[str, bool]]:
    """What was told of alerts, in order."""
    return [(one["about"], one["on"]) for one in receiver.got]


def test_each_change_of_state_is_told_once_after_it_has_lasted(
    filled: Served, hands: Hands, receiver: Receiver, eventually: Eventually
) -> None:
    made = AlertClient(filled.client).add(LOW, 300, receiver.url)
    look(filled)
    assert configuration(filled).alert_states == {}
    write(filled, 4)
    look(filled)
    assert states(filled) == [("n1", False)]
    hands.turn(299)
    look(filled)
    assert states(filled) == [("n1", False)]
    hands.turn(1)
    look(filled)
    look(filled)
    eventually(lambda: arrived(filled, receiver, [("n1", True)]))
    (on,) = AlertClient(filled.client).find(made.alert_id).on
    assert (on.about, on.said) == ("n1", "free 4, total 100")

    write(filled, 50)  # and back again before it has lasted
    look(filled)
    hands.turn(200)
    write(filled, 3)
    look(filled)
    hands.turn(200)
    write(filled, 50)
    look(filled)
    hands.turn(299)
    look(filled)
    assert AlertClient(filled.client).find(made.alert_id).on
    hands.turn(1)
    look(filled)
    eventually(lambda: arrived(filled, receiver, [("n1", True), ("n1", False)]))
    assert AlertClient(filled.client).find(made.alert_id).on == ()
    first, second = receiver.got
    assert first["event_id"] != second["event_id"]
    assert (first["type"], first["alert_id"], first["condition"]) == ("alert", made.alert_id, LOW)
    eventually(lambda: configuration(filled).deliveries == {})
    assert len(receiver.calls) == 2


def test_a_value_that_flaps_tells_nothing(filled: Served, hands: Hands, receiver: Receiver) -> None:
    AlertClient(filled.client).add(LOW, 300, receiver.url)
    for turn in range(10):
        write(filled, 4 if turn % 2 else 50)
        look(filled)
        hands.turn(200)
    assert receiver.calls == []
    assert not any(is_on for _, is_on in states(filled))


def test_what_is_stale_neither_begins_nor_ends_an_alert(filled: Served, hands: Hands) -> None:
    AlertClient(filled.client).add(LOW)
    write(filled, 4)
    look(filled)
    assert states(filled) == [("n1", True)]
    hands.turn(2e6)
    look(filled)
    assert states(filled) == [("n1", True)]
    filled.client.delete_node("n1")
    look(filled)
    assert states(filled) == []


def test_a_restart_tells_nothing_twice_and_forgets_nothing(
    database: str, serve: Serving, hands: Hands, receiver: Receiver, eventually: Eventually
) -> None:
    receiver.answers = [503] * 10_000
    with serve(database, hands) as service:
        for name in ("free", "total"):
            service.client.put_producer(Producer(name, "", 5.0, Kind.PROGRAM, ttl=1e6))
        service.client.put_node("n1", "127.0.0.1:9")
        write(service, 4)
        slow = AlertClient(service.client).add("free < 5", 300)
        AlertClient(service.client).add(LOW, 0, receiver.url)
        look(service)
        eventually(lambda: bool(receiver.calls))
    receiver.answers = []
    with serve(database, hands) as service:
        look(service)
        eventually(lambda: arrived(service, receiver, [("n1", True)]))
        eventually(lambda: configuration(service).deliveries == {})
        hands.turn(300)
        look(service)
        assert AlertClient(service.client).find(slow.alert_id).on, "the time before the restart counts"
        assert len(receiver.got) == 1
    keys = {headers["Idempotency-Key"] for headers, _ in receiver.calls}
    assert keys == {receiver.got[0]["event_id"]}, "each try has the id of its event"


def test_what_does_not_arrive_is_sent_again_and_given_up_after_a_day(
    filled: Served, hands: Hands, receiver: Receiver, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [500, 302]
    alert_id = AlertClient(filled.client).add(LOW, 0, receiver.url).alert_id
    write(filled, 4)
    look(filled)

    def trouble() -> str:
        return AlertClient(filled.client).find(alert_id).trouble

    eventually(lambda: trouble() == "it answered 500")
    hands.turn(2)
    rouse(filled)
    eventually(lambda: "302, a redirect, which is not followed" in trouble())
    assert AlertClient(filled.client).find(alert_id).undelivered == 1
    hands.turn(4)
    rouse(filled)
    eventually(lambda: arrived(filled, receiver, [("n1", True)]))
    eventually(lambda: trouble() == "")
    assert len(receiver.calls) == 3, "a redirect is not followed"

    receiver.answers = [500, 500]
    write(filled, 50)
    look(filled)
    eventually(lambda: trouble() == "it answered 500")
    hands.turn(90_000)
    with caplog.at_level(logging.ERROR):
        rouse(filled)
        eventually(lambda: configuration(filled).deliveries == {})
    assert "given up after a day" in caplog.text and "s3cret" not in caplog.text


def rouse(service: Served) -> None:
    """Let the postman look at its clock, which a test has turned."""
    components_of(service.server.app).postman._news.set()


def test_a_receiver_that_hangs_holds_up_no_other(
    filled: Served, receiver: Receiver, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send_in_time(url: str, event_id: str, body: str, secret: str) -> None:
        monkeypatch.setattr(sending, "SECONDS", 0.5 if url == other.url else PATIENCE_SECONDS)
        send(url, event_id, body, secret)

    monkeypatch.setattr("infosvc.posting.postman.send", send_in_time)
    with receiving() as other:
        other.server.shutdown()  # it still accepts connections
        AlertClient(filled.client).add("free < 5", 0, other.url)
        AlertClient(filled.client).add(LOW, 0, receiver.url)
        write(filled, 4)
        look(filled)
        eventually(lambda: told(receiver) == [("n1", True)])
        eventually(lambda: "no answer" in "".join(one.trouble for one in AlertClient(filled.client).all()))


def test_many_addresses_of_a_host_that_is_away_hold_up_another_host_for_one_message(
    filled: Served, receiver: Receiver, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def note(url: str, event_id: str, body: str, secret: str) -> None:
        tried.append(url)
        send(url, event_id, body, secret)

    monkeypatch.setattr("infosvc.posting.postman.send", note)
    away = f"http://127.0.0.1:{free_port()}"
    urls = [f"{away}/{number}" for number in range(5)] + [receiver.url]

    def tell(transaction: Transaction) -> None:
        for at, url in enumerate(urls):
            outbox.add(transaction, url, float(at), type="task")

    components_of(filled.server.app).writer.write(tell)
    eventually(lambda: receiver.url in tried)
    assert tried.index(receiver.url) == 1


def test_what_has_waited_for_a_day_at_an_address_is_given_up_at_once(
    filled: Served, hands: Hands, receiver: Receiver, eventually: Eventually
) -> None:
    receiver.answers = [500, 500]
    now = components_of(filled.server.app).latest.clock.wall()

    def tell(transaction: Transaction) -> None:
        for number in range(3):
            outbox.add(transaction, receiver.url, now, type="task", name=str(number))

    components_of(filled.server.app).writer.write(tell)
    eventually(lambda: len(receiver.calls) == 1)
    hands.turn(90_000)
    rouse(filled)
    eventually(lambda: configuration(filled).deliveries == {})
    assert receiver.got == []


def test_an_alert_without_messages_that_wait_tells_no_trouble(
    filled: Served, receiver: Receiver, eventually: Eventually
) -> None:
    receiver.answers = [500]
    parts = components_of(filled.server.app)
    AlertClient(filled.client).add(LOW, 0, receiver.url)
    parts.writer.write(lambda transaction: outbox.add(transaction, receiver.url, 1e12, type="task"))
    eventually(lambda: parts.postman.trouble(receiver.url) != "")
    [alert] = AlertClient(filled.client).all()
    assert (alert.undelivered, alert.trouble) == (0, "")


def test_hosts_are_allowed_in_large_letters_too() -> None:
    context = serve_command.make_context("serve", ["--notify-host", "Hooks.Example.ORG"])
    check_address("https://Hooks.example.org/x", "notify", False, context.params["notify_hosts"])


def test_messages_about_tasks_leave_room_for_those_about_alerts(
    filled: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MOST_OF_TASKS", 1)

    def tell(transaction: Transaction) -> list[str]:
        for of_alert in ("", "", "alert_1", ""):
            outbox.add(transaction, "http://127.0.0.1:9/", 1.0, of_alert, type="task")
        return [one.alert_id for one in transaction.configuration.deliveries.values()]

    assert components_of(filled.server.app).writer.write(tell) == ["", "alert_1"]


def test_a_failed_job_is_told_once_where_the_clock_of_yarn_is_ahead() -> None:
    alert = StoredAlert("job failed", 0.0, None, "admin", 0.0)
    found = {"job_1": Finding(True, "it failed")}
    [first] = turns_of("alert_1", alert, {}, found, 1_000.0)
    assert first.after is not None
    states = {"job_1": first.after}
    assert list(turns_of("alert_1", alert, states, found, 1_000.0 + KEPT_SECONDS)) == []
    [last] = turns_of("alert_1", alert, states, {}, 1_000.0 + KEPT_SECONDS)
    assert last.after is None


def test_a_certificate_of_nobody_who_is_trusted_gets_nothing(
    filled: Served, receiver: Receiver, tmp_path: Path, eventually: Eventually
) -> None:
    with receiving(authority_in(tmp_path / "other")) as stranger:
        alert_id = AlertClient(filled.client).add(LOW, 0, stranger.url).alert_id
        found = AlertClient(filled.client).test(alert_id)
        assert not found.delivered and "certificate verify failed" in found.trouble
        assert stranger.calls == []


def test_messages_are_signed_with_the_secret(
    sqlite_url: str, serve: Serving, receiver: Receiver, eventually: Eventually
) -> None:
    with serve(sqlite_url, notify_secret="a-secret-for-the-tests") as service:
        alert_id = AlertClient(service.client).add("node lost", 0, receiver.url).alert_id
        assert AlertClient(service.client).test(alert_id).delivered
    ((headers, content),) = receiver.calls
    assert headers["X-Nodewise-Signature"] == signature(content, "a-secret-for-the-tests")
    assert (json.loads(content)["type"], headers["Content-Type"]) == ("test", "application/json")
    with pytest.raises(NotFound), serve(sqlite_url) as service:
        AlertClient(service.client).test("alert_0000000000000000")


def test_a_lost_node_is_told_and_a_pause_of_the_service_is_none(
    database: str, serve: Serving, hands: Hands, receiver: Receiver, eventually: Eventually
) -> None:
    with serve(database, hands) as service:
        service.client.put_node("n1", "127.0.0.1:9")
        service.client.report("n1", Report("b", 1))
        AlertClient(service.client).add("node lost", 0, receiver.url)
    hands.turn(100)  # the service is away
    with serve(database, hands) as service:
        watchdog = components_of(service.server.app).watchdog
        look(service)
        assert configuration(service).alert_states == {}
        for _ in range(4):
            hands.turn(4)
            watchdog.step()
        look(service)
        eventually(lambda: arrived(service, receiver, [("n1", True)]))
    with serve(database, hands) as service:
        look(service)
        assert states(service) == [("n1", True)], "it was lost before and has not reported since"
        service.client.report("n1", Report("b", 2))
        look(service)
        eventually(lambda: arrived(service, receiver, [("n1", True), ("n1", False)]))


def test_a_queue_in_which_nothing_moves_is_stuck(service: Served, hands: Hands) -> None:
    AlertClient(service.client).add("queue stuck", 600)
    first = service.client.submit_task(TaskSpec(["x"], queue="small")).task_id
    second = service.client.submit_task(TaskSpec(["x"], queue="small")).task_id
    look(service)
    hands.turn(600)
    look(service)
    assert states(service) == [("small", True)]
    assert configuration(service).alert_states.popitem()[1]["small"].said.startswith("2 of its tasks are queued")
    service.client.put_task_news(first, TaskNews(TaskState.RUNNING, attempt=1))
    look(service)
    hands.turn(600)
    look(service)
    assert states(service) == []
    service.client.put_task_news(second, TaskNews(TaskState.RUNNING, attempt=1))
    look(service)
    assert states(service) == []


def test_a_job_that_failed_is_told_once_and_to_those_who_may_know(
    service: Served, hands: Hands, receiver: Receiver, eventually: Eventually
) -> None:
    maria, peter = as_user(service, "maria"), as_user(service, "peter")
    before = maria.submit_task(TaskSpec(["x"])).task_id
    service.client.put_task_news(before, TaskNews(TaskState.FAILED, "long ago"))
    hands.turn(1)
    alert_id = AlertClient(service.client).add("job failed", 0, receiver.url).alert_id
    hands.turn(1)
    task_id = maria.submit_task(TaskSpec(["train"])).task_id
    service.client.put_task_news(task_id, TaskNews(TaskState.FAILED, "exit status 1", exit_code=1))
    fine = maria.submit_task(TaskSpec(["x"])).task_id
    service.client.put_task_news(fine, TaskNews(TaskState.SUCCEEDED))
    look(service)
    look(service)
    eventually(lambda: arrived(service, receiver, [(task_id, True)]))
    assert receiver.got[0]["said"] == "train of maria failed: exit status 1"
    assert [one.about for one in AlertClient(maria).find(alert_id).on] == [task_id]
    assert AlertClient(peter).find(alert_id).on == AlertClient(service.reader).find(alert_id).on == ()
    assert AlertClient(maria).find(alert_id).notify == f"https://127.0.0.1:{receiver.port}/..."
    hands.turn(90_000)
    look(service)
    assert AlertClient(service.client).find(alert_id).on == ()
    assert len(receiver.calls) == 1


def test_half_characters_in_what_a_job_has_said_keep_no_alert_from_being_stored(
    filled: Served, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "LOOK_SECONDS", 0.02)
    AlertClient(filled.client).add("job failed")
    parts = components_of(filled.server.app)
    facts = ClusterFacts([FailedJob("application_1_0001", parts.latest.clock.wall() + 1.0, "died: \ud83d")])
    parts.alerts.outside.start(lambda: facts)
    eventually(lambda: facts.failed_jobs == parts.alerts.outside.facts().failed_jobs)
    look(filled)
    [alert] = AlertClient(filled.client).all()
    assert [(on.about, on.said) for on in alert.on] == [("application_1_0001", "died: ?")]


def test_a_task_tells_its_end_once(service: Served, hands: Hands, receiver: Receiver, eventually: Eventually) -> None:
    task = service.client.submit_task(TaskSpec(["train"], notify=receiver.url))
    after = service.client.submit_task(TaskSpec(["x"], after=[task.task_id], notify=receiver.url))
    service.client.put_task_news(task.task_id, TaskNews(TaskState.RUNNING, attempt=1))
    news = TaskNews(TaskState.FAILED, "exit status 3", exit_code=3)
    service.client.put_task_news(task.task_id, news)
    eventually(lambda: len(receiver.got) == 2)
    first, second = sorted(receiver.got, key=lambda one: one["task_id"] != task.task_id)
    assert (first["type"], first["state"], first["exit_code"], first["owner"]) == ("task", "failed", 3, "admin")
    assert (second["task_id"], second["state"]) == (after.task_id, "failed")
    too_late = service.client.submit_task(TaskSpec(["x"], after=[task.task_id], notify=receiver.url))
    eventually(lambda: len(receiver.got) == 3)
    assert receiver.got[2]["task_id"] == too_late.task_id


def test_users_name_only_hosts_that_an_admin_allowed(
    sqlite_url: str, serve: Serving, receiver: Receiver, eventually: Eventually
) -> None:
    with serve(sqlite_url) as service:
        maria = as_user(service, "maria")
        with pytest.raises(Forbidden, match=r"127\.0\.0\.1: an admin has allowed none.*--notify-host 127\.0\.0\.1"):
            maria.submit_task(TaskSpec(["x"], notify=receiver.url))
        with pytest.raises(Forbidden):
            AlertClient(maria).add("node lost")
        with pytest.raises(Forbidden):
            AlertClient(maria).remove("alert_0000000000000000")
    with serve(sqlite_url, notify_hosts=("127.0.0.1",)) as service:
        maria = as_user(service, "maria")
        task = maria.submit_task(TaskSpec(["x"], notify=receiver.url))
        maria.stop_task(task.task_id)
        eventually(lambda: [one["state"] for one in receiver.got] == ["stopped"])
        with pytest.raises(Forbidden, match=r"to example\.org: an admin has allowed 127\.0\.0\.1"):
            maria.submit_task(TaskSpec(["x"], notify="https://example.org/"))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"notify": "http://example.org/s3cret"}, r"http://example\.org/\.\.\. is not https.*begins with https://"),
    ({"notify": "ftp://example.org/s3cret"}, "notify is not a web address"),
    ({"notify": "https://"}, "notify is not a web address"),
    ({"notify": "https://example.org:99999/"}, "notify is not a web address"),
    ({"notify": "https://me:s3cret@example.org/"}, r"https://example\.org/\.\.\. has a user"),
    ({"condition": "free <"}, "'free <' is wrong at its end: a number or a data name must stand here"),
    ({"condition": "free < 1 or total < 2"}, "wrong before 'or total < 2': 'and' must stand"),
    ({"condition": "1 < 2"}, "it names no data name"),
    ({"condition": "job failed", "seconds": 5}, "a job fails at one moment: leave the time"),
    ({"seconds": 1e20}, "at most"),
]


@pytest.mark.parametrize(("said", "complaint"), WRONG, ids=lambda one: str(one)[:40])
def test_bad_input_is_refused_in_one_sentence_without_secrets(
    shared_service: Served, said: dict[str, Any], complaint: str
) -> None:
    for name in ("free", "total"):
        shared_service.client.put_producer(Producer(name, "", 5.0, Kind.PROGRAM))
    asked: dict[str, Any] = {"condition": "free < 1", "seconds": 0.0, "notify": None} | said
    with pytest.raises(InvalidInput, match=complaint) as refused:
        AlertClient(shared_service.client).add(**asked)
    assert "s3cret" not in str(refused.value)
    audit = shared_service.client.audit(0, 1000)
    assert "s3cret" not in "".join(entry.detail for entry in audit)
    assert AlertClient(shared_service.client).all() == []


def test_unknown_names_and_doubles_are_refused(filled: Served) -> None:
    with pytest.raises(NotFound, match=r"no producer is registered under 'fre'.*close to it: free"):
        AlertClient(filled.client).add("fre < 1")
    made = AlertClient(filled.client).add("free  <  1", 0, "https://example.org/s3cret")
    assert made.condition == "free < 1"
    with pytest.raises(Conflict, match=f"{made.alert_id} has this condition and address: remove it first"):
        AlertClient(filled.client).add("free < 1", 0, "https://example.org/s3cret")
    AlertClient(filled.client).remove(made.alert_id)
    with pytest.raises(NotFound, match="nodewise alert list"):
        AlertClient(filled.client).find(made.alert_id)
    assert "s3cret" not in "".join(entry.detail for entry in filled.client.audit(0, 1000))


def test_what_an_alert_still_had_to_tell_goes_with_it(
    filled: Served, receiver: Receiver, eventually: Eventually
) -> None:
    receiver.answers = [500] * 1000
    alert_id = AlertClient(filled.client).add(LOW, 0, receiver.url).alert_id
    write(filled, 4)
    look(filled)
    eventually(lambda: bool(receiver.calls))
    AlertClient(filled.client).remove(alert_id)
    found = configuration(filled)
    assert (found.alerts, found.deliveries) == ({}, {})
    assert not any(found.alert_states.values())


def test_a_reported_number_counts_as_one_that_a_program_writes(service: Served) -> None:
    service.client.put_producer(Producer("load_1m", "scripts/load_1m.sh", 5.0, ttl=1e6))
    service.client.put_node("n1", "127.0.0.1:9")
    service.client.put_slot("n1", "load_1m", True)
    AlertClient(service.client).add("load_1m >= 8 and load_1m * 2 != 3")
    service.client.report("n1", Report("b", 1, "", (Run("load_1m", Outcome.OK, 0.1, "8"),)))
    look(service)
    assert states(service) == [("n1", True)]
    service.client.report("n1", Report("b", 2, "", (Run("load_1m", Outcome.OK, 0.1, "no number"),)))
    look(service)
    assert states(service) == [("n1", True)], "what is no number is not known"


def test_admins_alone_add_alerts(service: Served) -> None:
    for role in (Role.READER, Role.SCHEDULER, Role.SUBMITTER):
        with pytest.raises(Forbidden):
            AlertClient(as_user(service, f"as_{role}", role)).add("node lost")
