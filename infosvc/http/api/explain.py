"""Why YARN prefers which nodes: each node's score and its parts, as the plug-in works them out.

What `neutral` gives is the mean of all nodes here, and in YARN that of the nodes of one partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from flask import Response, current_app, request

from infosvc.access.roles import needs
from infosvc.core.service import components_of
from infosvc.http.api.call_group import CallGroup, Route
from infosvc.http.api.exchange import latest
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.openapi.schemas import answer_model
from infosvc.wire.answers import Condition, Explained, ExplainedPolicy, Part, ScoredNode
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.fields import PROGRAM_NAME
from infosvc.wire.records import Datum, Role
from infosvc.wire.scoring.yarn_score import Scored, ScoringPolicy, Term, Values, parse, parse_program

ns = Namespace("explain", "Explain: how YARN's plug-in judges nodes", path="/explain")

explained = answer_model(ns, Explained)


@ns.route("")
class Explain(Resource):
    """The order of nodes by what is known now."""

    @ns.doc(security=[])
    @ns.param(
        "program", "only the order of this program", pattern=f"^{PROGRAM_NAME.pattern}$", **{"x-example": "my_training"}
    )
    @ns.response(200, "every policy of the settings file, or the order of the program", explained)
    @ns.response(404, "no --policy-file was given, nothing is registered under a name in it, or it lacks the program")
    @ns.response(422, "the settings file cannot be used")
    @needs(Role.READER)
    def get(self) -> Any:
        """Read each node's score and its parts.

        What was placed on a node since its values were measured counts against it in YARN, and is not known here.
        """
        return Explained(_explain()).to_json()


def _show_page() -> Response:
    """The same as a page."""
    return Response(_page(_explain()), mimetype="text/html")


calls = CallGroup("explain", ns, (Route("/explain", "page", _show_page, Role.READER),))


def _text() -> str:
    file = components_of(current_app).settings.policy_file
    if file is None:
        raise NotFound(
            "no policy is known here", remedy="start the service with --policy-file nodewise-policy.properties"
        )
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}", "policy_file") from error


def _explain() -> tuple[ExplainedPolicy, ...]:
    program = request.args.get("program")
    if program is None:
        return tuple(_policy(one, one.data_names) for one in parse(_text()))
    policy = parse_program(_text(), program)
    return (_policy(policy, [name for name in policy.data_names if name in latest().configuration.producers]),)


def _policy(policy: ScoringPolicy, data_names: Sequence[str]) -> ExplainedPolicy:
    """By these values: of a program that has not run yet, some may not be registered."""
    view = latest()
    values: Values = {name: {one.node_name: one for one in view.data(name)} for name in data_names}
    nodes = sorted({node for data in values.values() for node in data} | {node.node_name for node in view.nodes()})
    scored = tuple(_node(policy, one, values) for one in policy.order(nodes, values))
    return ExplainedPolicy(policy.name, scored)


def _node(policy: ScoringPolicy, scored: Scored, values: Values) -> ScoredNode:
    parts = tuple(
        _part(term, values.get(term.data_name, {}).get(scored.node_name), part)
        for term, part in zip(policy.terms, scored.parts, strict=True)
    )
    conditions = tuple(
        Condition(condition.data_name, str(condition), holds)
        for condition, holds in zip(policy.conditions, scored.holds, strict=True)
    )
    return ScoredNode(scored.node_name, scored.score, scored.last, parts, conditions)


def _part(term: Term, datum: Datum | None, part: float) -> Part:
    if datum is None:
        return Part(term.data_name, None, None, None, part, term.weight)
    return Part(term.data_name, datum.data_value, datum.age, datum.state.value, part, term.weight)


def _page(policies: Sequence[ExplainedPolicy]) -> str:
    tables = "".join(f"<h2>{escape(one.policy)}</h2>{_table(one.nodes)}" for one in policies)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<meta http-equiv=refresh content=5><title>How YARN orders nodes</title><style>"
        ":root{color-scheme:light dark;font:15px system-ui}td,th{padding:.2em .8em;text-align:left}"
        "tr.last{opacity:.6}</style><h1>How YARN orders nodes</h1>"
        "<p>From best to worst. What was placed on a node since its values were measured counts against it there.</p>"
        f"{tables}</html>"
    )


def _table(nodes: Sequence[ScoredNode]) -> str:
    rows = "".join(
        f"<tr{' class=last' if node.last else ''}><td>{escape(node.node_name)}<td>{node.score:.3f}"
        f"<td>{'<br>'.join(map(_show_part, node.parts))}<td>{'<br>'.join(map(_show_condition, node.conditions))}"
        for node in nodes
    )
    return f"<table><tr><th>node<th>score<th>parts<th>goes last unless{rows}</table>"


def _show_part(part: Part) -> str:
    known = "no value" if part.age is None else f"{part.data_value}, {part.age:.1f} s old, {part.state}"
    return f"{part.part:.3f} x {part.weight:g} of {escape(part.data_name)} ({escape(known)})"


def _show_condition(condition: Condition) -> str:
    return f"{'&#10003;' if condition.holds else '&#10007;'} {escape(condition.condition)}"
