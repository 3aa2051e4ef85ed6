"""Data service: the latest values."""

from __future__ import annotations

from typing import Any

from flask import request
from flask_restx import fields

from infosvc import changes
from infosvc.api.exchange import body, latest, query_number, write
from infosvc.api.nodes import read_value
from infosvc.api.restx import Namespace, Resource
from infosvc.errors import InvalidInput
from infosvc.records import Datum, check_node_name

ns = Namespace("data", "Data: the latest values", path="/data")

value_body = ns.model("ValueBody", {"data_value": fields.String(required=True, example="0.93")})


@ns.route("")
class Data(Resource):
    """Several names in one call."""

    @ns.doc(security=[])
    @ns.param("name", "a data name; may stand several times", required=True)
    @ns.param("node", "only this node's values")
    @ns.param("max_age", "leave out values older than this, seconds")
    @ns.response(404, "nothing is registered under one of the names")
    def get(self) -> Any:
        """Read several names; the field data holds a list with one answer per name."""
        names = list(dict.fromkeys(request.args.getlist("name")))
        if not names:
            raise InvalidInput("no name was asked for: use /data?name=A&name=B", "name")
        return {"data": [_asked(name) for name in names]}


@ns.route("/<data_name>")
@ns.param("data_name", "a registered name")
class OneName(Resource):
    """One name on all nodes."""

    @ns.doc(security=[])
    @ns.param("node", "only this node's value")
    @ns.param("max_age", "leave out values older than this, seconds")
    @ns.response(404, "nothing is registered under this name")
    def get(self, data_name: str) -> Any:
        """Read the latest values by node, each with age and ttl in seconds and a state: fresh, stale, failed."""
        return _asked(data_name)


@ns.route("/<data_name>/<node_name>")
@ns.param("data_name", "a registered name")
@ns.param("node_name", "the node it is about")
class OneValue(Resource):
    """One name on one node."""

    @ns.doc(security=[])
    @ns.response(404, "nothing is registered under this name, or it has no value there")
    def get(self, data_name: str, node_name: str) -> Any:
        """Read one value."""
        return latest().datum(data_name, node_name).to_json()

    @ns.expect(value_body)
    @ns.response(404, "nothing is registered under this name")
    def put(self, data_name: str, node_name: str) -> Any:
        """Write one value of a registered name."""
        check_node_name(node_name)
        value, now = read_value(body(), "data_value"), latest().clock.monotonic()
        first = write(lambda draft: changes.put_value(draft, data_name, node_name, value, now))
        return latest().datum(data_name, node_name).to_json(), 201 if first else 200

    @ns.response(204, "forgotten")
    def delete(self, data_name: str, node_name: str) -> Any:
        """Forget one value."""
        write(lambda draft: changes.delete_value(draft, data_name, node_name))
        return "", 204


def _asked(data_name: str) -> dict[str, Any]:
    found = latest().data(data_name, request.args.get("node"), query_number("max_age"))
    unit = latest().picture.producer(data_name).unit
    return {"data_name": data_name, "unit": unit, "time": latest().clock.wall(), "values": [_row(row) for row in found]}


def _row(datum: Datum) -> dict[str, Any]:
    shared = ("data_name", "unit")
    return {key: value for key, value in datum.to_json().items() if key not in shared}
