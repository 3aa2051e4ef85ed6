"""What the service is told when a node comes, and what is undone when its agent does not work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from infosvc.shipping import bundle
from infosvc.shipping.catalog import register
from infosvc.shipping.enrolment import Admission, Roster
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotFound, Unreachable
from infosvc.wire.records import Kind, Producer, Role

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served

SHIPPED = {entry.producer.data_name: entry.producer for entry in bundle.catalog()}


class Disturbed(InfoClient):
    """A client beside whom others are at work, or to whom one call is not answered."""

    after_look: Callable[[], object] = staticmethod(lambda: None)
    lost = ""

    def producers(self) -> list[Producer]:
        """What is there, before `after_look` changes it."""
        found = super().producers()
        self.after_look()
        return found

    def revoke_token(self, token_id: str) -> None:
        """Revoke, unless the answer is to be lost."""
        if self.lost == "revoke_token":
            raise Unreachable("gone")
        super().revoke_token(token_id)


@pytest.fixture
def disturbed(served: Served) -> Disturbed:
    """An admin's client."""
    return Disturbed(served.url, "a-token-for-the-tests")


def test_what_somebody_registers_meanwhile_is_not_overwritten(served: Served, disturbed: Disturbed) -> None:
    own = replace(SHIPPED["load_1m"], cmd="scripts/mine.sh")
    disturbed.after_look = lambda: served.client.put_producer(own)

    done = register(disturbed)

    assert done.differing == ["load_1m"]
    assert served.reader.producer("load_1m").cmd == own.cmd
    assert {item.data_name for item in served.reader.producers()} == set(SHIPPED)


def test_an_update_tells_which_own_producers_it_forgot(served: Served) -> None:
    parent = next(item for item in SHIPPED.values() if len(item.emits) > 1)
    taken = sorted(parent.emits)[:2]
    served.client.put_producer(replace(parent, emits=()))
    for name in taken:
        served.client.put_producer(Producer(name, "scripts/mine.sh", 5))

    assert set(register(served.client).refused) == set()
    done = register(served.client, update=True)

    assert sorted(done.forgotten) == taken
    assert done.refused == {}
    assert {served.reader.producer(name).kind for name in taken} == {Kind.EMITTED}
    assert register(served.client, update=True).forgotten == []


def test_a_node_gets_its_address_back_even_when_its_new_token_cannot_be_revoked(
    served: Served, disturbed: Disturbed
) -> None:
    served.client.put_node("n1", "127.0.0.1:1")
    disturbed.lost = "revoke_token"

    with pytest.raises(NotFound), Admission(disturbed, Roster.of(disturbed), "n1") as admission:
        admission.admit("n1", "127.0.0.1:2")
        raise NotFound("the agent did not start")

    assert [node.address for node in served.reader.nodes()] == ["127.0.0.1:1"]


def test_the_new_token_is_revoked_even_when_the_address_cannot_be_put_back(
    served: Served, disturbed: Disturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_self: InfoClient, _node_name: str, _address: str) -> None:
        raise Unreachable("gone")

    served.client.put_node("n1", "127.0.0.1:1")
    with pytest.raises(InfoError), Admission(disturbed, Roster.of(disturbed), "n1") as admission:
        admission.admit("n1", "127.0.0.1:2")
        monkeypatch.setattr(Disturbed, "put_node", lost)
        raise NotFound("the agent did not start")

    [token] = served.client.tokens()
    assert token.role is Role.AGENT
    assert token.revoked_at is not None
