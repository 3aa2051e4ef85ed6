"""Data service: the latest values."""

from __future__ import annotations

from typing import Any

from flask import current_app, g, request

from infosvc.access.audit import digest
from infosvc.access.roles import about_one_node, needs
from infosvc.core.service import components_of
from infosvc.data import arrow
from infosvc.data.agent_report import check_text
from infosvc.data.cluster_hour import ClusterHours
from infosvc.data.curves import Curves
from infosvc.data.history import summary
from infosvc.data.values import delete_value, put_value
from infosvc.http.api import values
from infosvc.http.api.body import Fields, body, read
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import latest, query_flag, query_number, write
from infosvc.http.api.paging import AFTER, LINK
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.openapi.document import DATA_NAME, NODE_NAME, SECONDS
from infosvc.http.openapi.schemas import answer_model, body_model
from infosvc.settings import Settings
from infosvc.state.current_values import STEP
from infosvc.state.database import Most
from infosvc.state.transaction import Transaction
from infosvc.wire import answers
from infosvc.wire.bodies import ValueBody
from infosvc.wire.errors import Forbidden, InvalidInput
from infosvc.wire.records import NAME, Datum, Kind, Role, check_node_name

ns = Namespace("data", "Data: the latest values", path="/data")
calls = CallGroup("data", ns)

TAG = {"_in": "header", "x-example": '"0f0f0f0f-1-1-0"'}
TAG_ASKED = "answer 304 when the values still have this ETag, or one of a list; not with max_age"
TAGS = {"ETag": "the tag of these values, for If-None-Match; missing with max_age, because ages always change"} | LINK

value_body = body_model(ns, ValueBody)
datum_said = answer_model(ns, Datum)
values_said = answer_model(ns, answers.Values)
many_said = answer_model(ns, answers.ManyValues)
history_said = answer_model(ns, answers.History)
hour_said = answer_model(ns, answers.Hour)
cluster_hour_said = answer_model(ns, answers.ClusterHour)


@ns.route("")
class Data(Resource):
    """Several names in one call."""

    @ns.doc(security=[])
    @ns.param(
        "name",
        "a data name; may stand several times",
        required=True,
        type="array",
        items={"type": "string", "pattern": NAME.pattern},
        minItems=1,
        collectionFormat="multi",
        **{"x-example": ["load_1m"]},
    )
    @ns.param("node", "only this node's values", **NODE_NAME)
    @ns.param("max_age", "leave out values older than this, seconds", **SECONDS)
    @ns.param("after", "leave out the nodes up to this one, of the first name", **AFTER)
    @ns.param(
        "skip_unknown", "leave out names under which nothing is registered", default="false", enum=["true", "false"]
    )
    @ns.param("If-None-Match", TAG_ASKED, **TAG)
    @ns.produces(["application/json", arrow.MEDIA_TYPE])
    @ns.response(304, "nothing has changed since the answer with the ETag of If-None-Match")
    @ns.response(200, "one answer for each name", many_said, headers=TAGS)
    @ns.response(404, "nothing is registered under one of the names, without skip_unknown")
    @ns.response(422, "no name was asked for, or max_age or skip_unknown is wrong")
    @about_one_node
    @needs(Role.READER)
    def get(self) -> Any:
        """Read several names; the field data holds a list with one answer per name.

        Names in an answer stand in the order in which they were asked for. An answer of more than about 8 MiB comes in
        parts: follow the header Link, which may name some nodes of a name in one part and the others in the next.
        """
        names = list(dict.fromkeys(request.args.getlist("name")))
        if not names:
            raise InvalidInput("no name was asked for", "name", remedy="use /data?name=A&name=B")
        if query_flag("skip_unknown"):
            names = [name for name in names if name in latest().configuration.producers]
        return values.answer(names, several=True)


@ns.route("/<data_name>")
@ns.param("data_name", "a registered name", **DATA_NAME)
class OneName(Resource):
    """One name on all nodes."""

    @ns.doc(security=[])
    @ns.param("node", "only this node's value", **NODE_NAME)
    @ns.param("max_age", "leave out values older than this, seconds", **SECONDS)
    @ns.param("after", "leave out the nodes up to this one, of the first name", **AFTER)
    @ns.param("If-None-Match", TAG_ASKED, **TAG)
    @ns.produces(["application/json", arrow.MEDIA_TYPE])
    @ns.response(200, "its values", values_said, headers=TAGS)
    @ns.response(304, "nothing has changed since the answer with the ETag of If-None-Match")
    @ns.response(404, "nothing is registered under this name")
    @ns.response(422, "max_age is wrong")
    @about_one_node
    @needs(Role.READER)
    def get(self, data_name: str) -> Any:
        """Read the latest values by node, each with age and ttl in seconds and a state: fresh, stale, failed.

        A failed run leaves the old value and its age, and says so in state, outcome and reason. An answer of more than
        about 8 MiB comes in parts: follow the header Link.
        """
        return values.answer([data_name], several=False)


@ns.route("/<data_name>/<node_name>/history")
@ns.param("data_name", "a registered name with keep > 0", **DATA_NAME)
@ns.param("node_name", "the node it is about", **NODE_NAME)
class OneHistory(Resource):
    """What one name was on one node."""

    @ns.doc(security=[])
    @ns.param("since", "Unix seconds; the whole kept history if left out, or if that is shorter", **SECONDS)
    @ns.param("until", "Unix seconds; now if left out", **SECONDS)
    @ns.response(200, "the history", history_said)
    @ns.response(404, "nothing is registered under this name")
    @ns.response(422, "since or until is wrong")
    @ns.response(503, "the database, which keeps the history, does not answer")
    @about_one_node
    @needs(Role.READER)
    def get(self, data_name: str, node_name: str) -> Any:
        """Read the kept history with min, max, mean, p50, p90 and p99 of the numbers in the window.

        Only names with keep > 0 have one. When the oldest points are left out, `since` is the time of the first that
        is not.
        """
        check_node_name(node_name)
        producer, now = latest().configuration.producer(data_name), latest().clock.wall()
        until = query_number("until")
        until = now if until is None else until
        since = query_number("since")
        since = max(now - producer.keep, since or 0.0)  # what is older may still wait for its removal
        settings: Settings = components_of(current_app).settings
        most = Most(settings.max_rows, settings.max_body)
        points, cut = components_of(current_app).store.history(data_name, node_name, (since, until), most)
        since = points[0][0] if cut else since
        return summary(data_name, node_name, producer.unit, (since, until), points).to_json()


@ns.route("/<data_name>/*/hour")
@ns.param("data_name", "a registered name", **DATA_NAME)
class HourOfCluster(Resource):
    """What one number was lately on all nodes together."""

    @ns.doc(security=[])
    @ns.param("of", "answer shares of the sum of this name; of ratios, their mean weighted by it", **DATA_NAME)
    @ns.response(200, "the last hour", cluster_hour_said)
    @ns.response(404, "nothing is registered under one of these names")
    @needs(Role.READER)
    def get(self, data_name: str) -> Any:
        """Read the last hour of a number summed over all nodes, as 120 steps of 30 s.

        A node counts from its first number on, and as long as its last one is not older than the ttl. With `of`, only
        nodes count that have both. The answer may be 5 s old.
        """
        configuration, of = latest().configuration, request.args.get("of")
        hours: ClusterHours = components_of(current_app).cluster_hours
        producer = configuration.producer(data_name)
        return hours.hour(producer, None if of is None else configuration.producer(of)).to_json()


@ns.route("/<data_name>/<node_name>/hour")
@ns.param("data_name", "a registered name", **DATA_NAME)
@ns.param("node_name", "the node it is about", **NODE_NAME)
class OneHour(Resource):
    """What one number was lately."""

    @ns.doc(security=[])
    @ns.response(200, "the last hour", hour_said)
    @ns.response(404, "nothing is registered under this name, or it has no value there")
    @about_one_node
    @needs(Role.READER)
    def get(self, data_name: str, node_name: str) -> Any:
        """Read the last hour of a number as 120 steps of 30 s.

        The service keeps it in memory, so a restart empties it. The list is empty for a value that is not a number, and
        for one that came when the service held as many curves as it may.
        """
        unit = latest().datum(data_name, check_node_name(node_name)).unit
        curves: Curves = components_of(current_app).curves
        since, found, full = curves.last_hour(node_name, data_name)
        return answers.Hour(data_name, unit, found.get(data_name, ()), node_name, since, STEP, full).to_json()


@ns.route("/<data_name>/<node_name>")
@ns.param("data_name", "a registered name", **DATA_NAME)
@ns.param("node_name", "the node it is about", **NODE_NAME)
class OneValue(Resource):
    """One name on one node."""

    @ns.doc(security=[])
    @ns.response(200, "the value", datum_said)
    @ns.response(404, "nothing is registered under this name, or it has no value there")
    @about_one_node
    @needs(Role.READER)
    def get(self, data_name: str, node_name: str) -> Any:
        """Read one value.

        Its state is fresh, stale when it is older than its ttl, or failed when the last run went wrong.
        """
        return latest().datum(data_name, node_name).to_json()

    @ns.expect(value_body)
    @ns.response(200, "written", datum_said)
    @ns.response(201, "written, the first there", datum_said)
    @ns.response(400, "the body is not a JSON object")
    @ns.response(404, "nothing is registered under this name; or no node has this name, which an admin may still write")
    @ns.response(409, "a slot brings this value, or the name has values of too many nodes")
    @ns.response(413, "the values of the name, or all values, would have too many bytes; or the body has")
    @ns.response(422, "a field is wrong; the answer names it")
    @ns.response(429, "the token has called too often, or written too many bytes in an hour; Retry-After says how long")
    @needs(Role.PROCESSOR, Role.SUBMITTER)
    def put(self, data_name: str, node_name: str) -> Any:
        """Write one value of a registered name.

        It is stored when the answer comes. Admins write values of any node, other tokens those of enrolled nodes, and
        submitters those of names of kind program alone.
        """
        check_node_name(node_name)
        value, now, caller = _value(body()), latest().clock.monotonic(), g.caller
        if caller.role is Role.SUBMITTER and latest().configuration.producer(data_name).kind is not Kind.PROGRAM:
            raise Forbidden(f"a submitter writes values of kind program alone, and {data_name} is of another")
        admission = components_of(current_app).admission
        admission.spend(caller, data_name, value)

        def change(transaction: Transaction) -> bool:
            admission.check(transaction, caller, data_name, node_name, value)
            return put_value(transaction, data_name, node_name, value, now)

        first = write(change, digest(request.get_data()))
        return latest().datum(data_name, node_name).to_json(), 201 if first else 200

    @ns.response(204, "forgotten")
    @ns.response(404, "nothing is registered under this name, or it has no value there")
    @needs(Role.PROCESSOR)
    def delete(self, data_name: str, node_name: str) -> Any:
        """Forget one value, and the history that is kept of it.

        The slot that measures it goes on, and its next run brings a value again.
        """
        write(lambda transaction: delete_value(transaction, data_name, node_name))
        return "", 204


def _value(given: Fields) -> str:
    """A value as text; a number is taken as its text."""
    given.refuse_others({"data_value"})
    value = given.get("data_value")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return check_text(repr(value), "data_value")
    return check_text(read(ValueBody, given).data_value, "data_value")
