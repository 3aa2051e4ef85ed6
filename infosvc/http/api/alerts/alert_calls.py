"""Alerts: what is told to whom when it happens."""

from __future__ import annotations

import json
from typing import Any

from flask import current_app

from infosvc.access.roles import needs
from infosvc.alerts import rules
from infosvc.core.service import components_of
from infosvc.http.api.body import body, read
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import caller, latest, record_call, write
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.openapi.schemas import answer_model, body_model
from infosvc.posting.addresses import check_address, shown
from infosvc.posting.outbox import message, new_event_id
from infosvc.posting.sending import NotDelivered, send
from infosvc.wire.alerts.alert_records import ALERT_ID, EXAMPLE_ALERT, Alert, AlertBody, AlertList, AlertTest
from infosvc.wire.errors import Conflict
from infosvc.wire.records import Role

ns = Namespace("alerts", "Alerts: what is told to whom when it happens", path="/alerts")
calls = CallGroup("alerts", ns)

ID = {"pattern": ALERT_ID, "x-example": EXAMPLE_ALERT}

alert_body = body_model(ns, AlertBody)
alert_said = answer_model(ns, Alert)
alerts_said = answer_model(ns, AlertList)
test_said = answer_model(ns, AlertTest)


@ns.route("")
class Alerts(Resource):
    """All of them."""

    @ns.response(200, "all alerts", alerts_said)
    @ns.doc(security=[])
    @needs(Role.READER)
    def get(self) -> Any:
        """List alerts, and what each is on for.

        Of addresses only admins see more than the host, and of tasks users see their own.
        """
        return AlertList(tuple(_shown())).to_json()

    @ns.expect(alert_body)
    @ns.response(201, "the new alert", alert_said)
    @ns.response(400, "the body is not a JSON object")
    @ns.response(404, "a data name is not registered")
    @ns.response(409, "there is an alert with this condition and address, or there are too many")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.ADMIN)
    def post(self) -> Any:
        """Add an alert.

        Its address gets one POST when the condition has held for so many seconds, and one when it has not held for as
        long; each is sent again for a day until it has arrived, under the same event_id and Idempotency-Key.
        """
        asked, who = read(AlertBody, body()), caller()
        if asked.notify is not None:
            check_address(asked.notify, "notify", True, ())
        said = asked.to_json() | {"notify": asked.notify and shown(asked.notify)}
        now = latest().clock.wall()
        alert_id = write(lambda transaction: rules.add(transaction, asked, who.user_name, now), json.dumps(said))
        return _one(alert_id).to_json(), 201


@ns.route("/<alert_id>")
@ns.param("alert_id", "the id of the alert", **ID)
class OneAlert(Resource):
    """One of them."""

    @ns.response(200, "the alert", alert_said)
    @ns.response(404, "no alert has this id")
    @ns.doc(security=[])
    @needs(Role.READER)
    def get(self, alert_id: str) -> Any:
        """Show one alert, and what it is on for.

        Its address is shown as in the list.
        """
        return _one(alert_id).to_json()

    @ns.response(204, "removed")
    @ns.response(404, "no alert has this id")
    @needs(Role.ADMIN)
    def delete(self, alert_id: str) -> Any:
        """Remove an alert.

        What it still had to tell is not told.
        """
        write(lambda transaction: rules.remove(transaction, alert_id))
        return "", 204


@ns.route("/<alert_id>/test")
@ns.param("alert_id", "the id of the alert", **ID)
class Trial(Resource):
    """A message that tries the way."""

    @ns.response(200, "what became of the message", test_said)
    @ns.response(404, "no alert has this id")
    @ns.response(409, "the alert has no address")
    @needs(Role.ADMIN)
    def post(self, alert_id: str) -> Any:
        """Send a message to the address of an alert now, once, and say whether it arrived.

        Its type is test. It waits at most 8 s for the receiver.
        """
        stored = rules.find(latest().configuration, alert_id)
        if stored.url is None:
            raise Conflict(f"{alert_id} has no address", "alert_id", remedy="add one with an address (--notify)")
        record_call()
        event_id = new_event_id()
        said = message(event_id, latest().clock.wall(), type="test", alert_id=alert_id, condition=stored.condition)
        try:
            send(stored.url, event_id, said, components_of(current_app).settings.notify_secret)
        except NotDelivered as error:
            return AlertTest(False, str(error)).to_json()
        return AlertTest(True, "").to_json()


def _shown() -> list[Alert]:
    return rules.show(latest().configuration, caller(), components_of(current_app).postman.trouble)


def _one(alert_id: str) -> Alert:
    rules.find(latest().configuration, alert_id)
    return next(one for one in _shown() if one.alert_id == alert_id)
