"""Why YARN prefers which nodes: each node's score and its parts, as the plug-in works them out.

What `neutral` gives is the mean of all nodes here, and in YARN that of the nodes of one partition.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from flask import Response, current_app
from flask_restx import fields

from infosvc.access.roles import needs
from infosvc.core.service import parts_of
from infosvc.http.api.call_group import CallGroup, Route
from infosvc.http.api.document import or_null
from infosvc.http.api.exchange import latest
from infosvc.http.api.restx import Namespace, Resource
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.records import Datum, Role
from infosvc.yarn_score import Judgement, Scored, Values, parse

ns = Namespace("explain", "Explain: how YARN's plug-in judges nodes", path="/explain")

part_said = ns.model(
    "Part",
    {
        "data_name": fields.String(required=True, example="cpu_free_ratio"),
        "data_value": or_null(fields.String(required=True, description="null without any", example="0.93")),
        "age": or_null(fields.Float(required=True, description="seconds; null without any", example=1.5)),
        "state": or_null(fields.String(required=True, description="null without any", example="fresh")),
        "part": fields.Float(required=True, description="between 0 and 1", example=0.93),
        "weight": fields.Float(required=True, example=1.0),
    },
)
condition_said = ns.model(
    "Condition",
    {
        "condition": fields.String(required=True, example="cpu_free_ratio >= 0.1"),
        "holds": fields.Boolean(required=True, example=True),
    },
)
node_said = ns.model(
    "ScoredNode",
    {
        "node_name": fields.String(required=True, example="127.0.1.11"),
        "score": fields.Float(required=True, description="between 0 and 1", example=0.87),
        "last": fields.Boolean(required=True, description="whether it goes behind all others", example=False),
        "parts": fields.List(fields.Nested(part_said), required=True),
        "conditions": fields.List(fields.Nested(condition_said), required=True),
    },
)
policy_said = ns.model(
    "ExplainedPolicy",
    {
        "policy": fields.String(required=True, example="first"),
        "nodes": fields.List(fields.Nested(node_said), required=True, description="from best to worst"),
    },
)
explained = ns.model("Explained", {"policies": fields.List(fields.Nested(policy_said), required=True)})


@ns.route("")
class Explain(Resource):
    """The order of nodes by what is known now."""

    @ns.doc(security=[])
    @ns.response(200, "every policy of the settings file", explained)
    @ns.response(404, "the service was started without --policy-file, or a data name in it is not registered")
    @ns.response(422, "the settings file cannot be used")
    @needs(Role.READER)
    def get(self) -> Any:
        """Read each node's score and its parts.

        What was placed on a node since its values were measured counts against it in YARN, and is not known here.
        """
        return {"policies": [_policy(one) for one in _judgements()]}


def _show_page() -> Response:
    """The same as a page."""
    return Response(_page([_policy(one) for one in _judgements()]), mimetype="text/html")


calls = CallGroup("explain", ns, (Route("/explain", "page", _show_page, Role.READER),))


def _judgements() -> list[Judgement]:
    file = parts_of(current_app).settings.policy_file
    if file is None:
        raise NotFound("no policy is known here: start the service with --policy-file nodewise-policy.properties")
    try:
        return parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}", "policy_file") from error


def _policy(judgement: Judgement) -> dict[str, Any]:
    found = latest()
    values: Values = {name: {one.node_name: one for one in found.data(name)} for name in judgement.data_names}
    nodes = sorted({node for data in values.values() for node in data} | {node.node_name for node in found.nodes()})
    return {
        "policy": judgement.name,
        "nodes": [_node(judgement, scored, values) for scored in judgement.order(nodes, values)],
    }


def _node(judgement: Judgement, scored: Scored, values: Values) -> dict[str, Any]:
    terms = zip(judgement.terms, scored.parts, strict=True)
    return {
        "node_name": scored.node_name,
        "score": scored.score,
        "last": scored.last,
        "parts": [
            {
                "data_name": term.data_name,
                **_datum(values[term.data_name].get(scored.node_name)),
                "part": part,
                "weight": term.weight,
            }
            for term, part in terms
        ],
        "conditions": [
            {"condition": str(condition), "holds": holds}
            for condition, holds in zip(judgement.conditions, scored.holds, strict=True)
        ],
    }


def _datum(datum: Datum | None) -> dict[str, Any]:
    if datum is None:
        return {"data_value": None, "age": None, "state": None}
    return {"data_value": datum.data_value, "age": datum.age, "state": datum.state.value}


def _page(policies: list[dict[str, Any]]) -> str:
    tables = "".join(f"<h2>{escape(one['policy'])}</h2>{_table(one['nodes'])}" for one in policies)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<meta http-equiv=refresh content=5><title>How YARN orders nodes</title><style>"
        ":root{color-scheme:light dark;font:15px system-ui}td,th{padding:.2em .8em;text-align:left}"
        "tr.last{opacity:.6}</style><h1>How YARN orders nodes</h1>"
        "<p>From best to worst. What was placed on a node since its values were measured counts against it there.</p>"
        f"{tables}</html>"
    )


def _table(nodes: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr{' class=last' if node['last'] else ''}><td>{escape(node['node_name'])}<td>{node['score']:.3f}"
        f"<td>{'<br>'.join(map(_part, node['parts']))}<td>{'<br>'.join(map(_condition, node['conditions']))}"
        for node in nodes
    )
    return f"<table><tr><th>node<th>score<th>parts<th>goes last unless{rows}</table>"


def _part(part: dict[str, Any]) -> str:
    known = "no value" if part["age"] is None else f"{part['data_value']}, {part['age']:.1f} s old, {part['state']}"
    return f"{part['part']:.3f} x {part['weight']:g} of {escape(part['data_name'])} ({escape(known)})"


def _condition(condition: dict[str, Any]) -> str:
    return f"{'&#10003;' if condition['holds'] else '&#10007;'} {escape(condition['condition'])}"
