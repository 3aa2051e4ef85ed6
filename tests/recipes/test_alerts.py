"""What the page of alerts shows, with a receiver over https."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from infosvc.wire.alerts.alert_client import AlertClient
from infosvc.wire.records import Kind, Producer
from tests.infosvc.conftest import TOKEN, Served, serving
from tests.infosvc.receiver import Receiver, authority_in, receiving
from tests.recipes.pages import block
from tests.recipes.shell import Shell, changed

SHOWN = "https://hooks.example.org/nodewise"
NAMES = ("disk_free_bytes", "disk_total_bytes", "memory_available_bytes", "memory_pressure_full_ratio")


@dataclass(frozen=True)
class Told:
    """A service, a shell that knows it, and who receives its messages."""

    service: Served
    shell: Shell
    receiver: Receiver


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """A service that knows the names of the page, and trusts the receiver's authority."""
    authority = authority_in(tmp_path / "authority")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    with serving(f"sqlite:///{tmp_path / 'infosvc.db'}") as service, receiving(authority) as receiver:
        for name in NAMES:
            service.client.put_producer(Producer(name, "", 60.0, Kind.PROGRAM))
        environment = {"NODEWISE_URL": service.url, "NODEWISE_TOKEN_FILE": str(token)}
        yield Told(service, Shell(tmp_path / "reader", tmp_path / "work", environment), receiver)


def until_told(receiver: Receiver, kind: str) -> dict[str, object]:
    """The first message of a type, at most a minute later."""
    deadline = time.monotonic() + 60
    while not (found := [one for one in receiver.got if one["type"] == kind]):
        assert time.monotonic() < deadline, receiver.got
        time.sleep(0.05)
    return found[0]


@pytest.mark.timeout(900)
def test_alerts_are_added_tried_and_removed_as_the_page_shows(told: Told) -> None:
    said = told.shell.run(changed(block("alerts"), (SHOWN, told.receiver.url)))

    made = AlertClient(told.service.client).all()
    assert len(made) == 5 and all(one.alert_id in said for one in made)
    assert [one.seconds for one in made] == [300, 600, 120, 1800, 0]
    assert [bool(one.notify) for one in made] == [True, False, True, True, True]

    said = told.shell.run(changed(block("alert-one"), ("alert_0f0f0f0f0f0f0f0f", made[0].alert_id)))

    assert "delivered" in said and "on for nothing" in said and "removed" in said
    assert until_told(told.receiver, "test")["alert_id"] == made[0].alert_id
    assert AlertClient(told.service.client).all() == made[1:]


@pytest.mark.timeout(900)
def test_a_task_tells_its_end_as_the_page_shows(told: Told) -> None:
    told.shell.run(changed(block("task-notify"), (SHOWN, told.receiver.url)))
    (task,) = told.service.client.tasks()
    told.service.client.stop_task(task.task_id)

    message = until_told(told.receiver, "task")

    assert (message["task_id"], message["name"], message["state"]) == (task.task_id, "mnist", "stopped")
