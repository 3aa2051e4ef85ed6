"""What the board makes of what it reads, without any Hadoop."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hadoop.client.blocks import BlockState
from infosvc.wire.errors import InvalidInput
from infosvc.wire.fields import answer_of
from jobs.dashboard.listing import as_snapshot, stored_file
from jobs.dashboard.path_answers import PolicyPlan, ReplicaCount
from jobs.dashboard.planning import matrix, plans, replicas
from jobs.dashboard.showing import report_answer, row
from jobs.dashboard.sources.hdfs import plain_path
from jobs.dashboard.sources.lines import whole_lines
from jobs.dashboard.sources.yarn import parse_known
from locality.cost import AccessCost
from locality.policies import POLICIES
from locality.types import Terms
from tests.jobs.decisions import WEIGHTS, make_blocks
from tests.jobs.played import JOB, make_report

PATHS = {"hdfs:///a/b/": "/a/b", "hdfs://host:8020/a": "/a", " /a ": "/a", "/": "/"}


@pytest.mark.parametrize(("said", "path"), PATHS.items(), ids=list(PATHS))
def test_paths_lose_their_scheme_and_host(said: str, path: str) -> None:
    assert plain_path(said) == path


@pytest.mark.parametrize("said", ["", "a", "s3:///a", "/a/../b"])
def test_what_is_no_path_is_refused(said: str) -> None:
    with pytest.raises(InvalidInput):
        plain_path(said)


def test_an_application_without_times_or_tags_has_none() -> None:
    known = parse_known({"id": JOB, "state": "ACCEPTED", "finalStatus": "UNDEFINED", "progress": 0, "startedTime": 0})

    assert (known.started_at, known.finished_at, known.application.tags) == (None, None, frozenset())


def test_the_list_tells_which_file_a_node_could_not_fetch() -> None:
    told = {"id": JOB, "state": "FAILED", "finalStatus": "FAILED", "progress": 0, "startedTime": 1}
    file = "{ { hdfs://a:8020/env/part.sqfs, 1, FILE, null },pending,[(container_1)],5,DOWNLOADING}"
    why = f"Application {JOB} failed 2 times\n[now]Failed to download resource {file} java.io.IOException: No space"

    assert row(parse_known(told | {"diagnostics": why})).said == "its node cannot fetch part.sqfs: No space"
    assert row(parse_known(told | {"diagnostics": "no room\nat all"})).said == "no room"


STATES = {
    "live": ({}, {"hosts": ["alpha"]}, BlockState.LIVE, ("alpha",)),
    "missing": ({}, {"hosts": []}, BlockState.MISSING, ()),
    "corrupt": ({}, {"hosts": ["alpha"], "corrupt": True}, BlockState.CORRUPT, ()),
    "coded": ({"ecPolicy": "RS-6-3-1024k"}, {"hosts": ["alpha"]}, BlockState.ERASURE_CODED, ("alpha",)),
}


@pytest.mark.parametrize(("more", "row", "state", "hosts"), STATES.values(), ids=STATES)
def test_a_block_is_read_as_webhdfs_tells_it(
    more: dict[str, Any], row: dict[str, Any], state: BlockState, hosts: tuple[str, ...]
) -> None:
    file = stored_file("/f", {"length": 10, **more}, [{"offset": 0, "length": 10, **row}])

    assert (file.blocks[0].state, file.blocks[0].hosts) == (state, hosts)
    assert list(as_snapshot("/", [file], {}).files()) == [file]
    assert replicas([file]) == (ReplicaCount(len(hosts), 1),)


def test_every_policy_is_tried() -> None:
    found = plans(make_blocks(), WEIGHTS, Terms())

    assert [plan.policy for plan in found] == list(POLICIES)
    assert all(plan.makespan_over_bound >= 1 for plan in found if isinstance(plan, PolicyPlan))
    assert any(isinstance(plan, PolicyPlan) for plan in found)


def test_a_matrix_of_too_many_nodes_is_left_out() -> None:
    nodes = [f"n{number}" for number in range(100)]

    assert matrix(AccessCost(), nodes).entries == ()
    assert len(matrix(AccessCost(), nodes[:3]).entries) == 9


PIECES = {
    "whole": (b"a\nb\n", 100, False, b"a\nb\n"),
    "begun": (b"a\nb", 100, False, b"a\n"),
    "nothing yet": (b"a", 100, False, b""),
    "last": (b"a\nb", 100, True, b"a\nb"),
    "more": (b"aa\nbb\n", 4, True, b"aa\n"),
    "endless line": (b"aaaaaaaa", 4, False, b"aaaa"),
}


@pytest.mark.parametrize(("content", "most", "ended", "shown"), PIECES.values(), ids=PIECES)
def test_a_piece_ends_with_a_line(content: bytes, most: int, ended: bool, shown: bytes) -> None:
    assert whole_lines(content, most, ended) == shown


def test_what_a_node_stole_is_counted_and_leases_become_bars() -> None:
    body = answer_of(report_answer(make_report()))

    assert {node["node_name"]: node["stolen_images"] for node in body["nodes"]} == {"alpha": 1, "beta": 0}
    assert [bar["kind"] for bar in body["timeline"]["lanes"][0]["bars"]] == ["local", "stolen"]
    assert "leases" not in body
    assert json.dumps(body)
