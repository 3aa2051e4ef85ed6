"""A job that has nodes fetch an environment ahead, and what the service knows of those that have it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path, PurePosixPath
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

import pytest

from environments.ready import Way
from hadoop.client.filesystem import FileSystem
from infosvc.wire.client import InfoClient
from jobs.application.coordinator import Attempt, Container, End, Knowledge, Seat, Then
from jobs.application.environments.cached import find_ways
from jobs.application.exits import Exit
from jobs.application.job_spec import JobOptions
from jobs.application.journal import Record
from jobs.application.submit import InfoAccess, Submitter
from jobs.errors import JobError
from jobs.kinds.warm.coordinator import Warm
from jobs.kinds.warm.request import choose, order
from locality.cost import AccessCost, Figure, Rate, Side
from tests.jobs.kept_environments import keep_environment
from tests.jobs.kept_images import played_hdfs
from tests.jobs.stored import SPEC

AWAY = InfoClient("http://127.0.0.1:1", retries=0)
PART = f"/nodewise/env/blobs/sha256-{'a1' * 32}.sqfs"
SETTINGS: dict[str, Any] = {"environment": "torch@1.13", "nodes": ["n1", "n2"], "parts": {"/opt/env": PART}}
NOTHING = cast("FileSystem", None)
KNOWLEDGE = Knowledge(NOTHING, AWAY)


class Kept(list[Record]):
    """A journal."""


def warm(kept: Kept) -> Warm:
    spec = replace(SPEC, kind="warm", settings=SETTINGS)
    return Warm(Attempt(1, spec, NOTHING, AWAY, kept, "", list(kept), 0.0, lambda: 2.04))


def container(index: int) -> Container:
    return Container(Seat("copy", index, SETTINGS["nodes"][index]), f"container_{index}", "n:1")


def test_each_node_gets_the_parts_and_counts_once_its_container_ended_well() -> None:
    kept = Kept()
    job = warm(kept)
    (role,) = job.roles(KNOWLEDGE)

    launch = role.launch(Seat("copy", 0, "n1"))
    assert (list(launch.argv), launch.shared, launch.memory_mb) == (["true"], {PurePosixPath(PART).name: PART}, 64)
    assert (list(role.nodes), role.done) == (["n1", "n2"], frozenset())
    assert job.on_end(container(0), End(Exit.FINISHED, 0)) is Then.DONE
    assert job.on_end(container(1), End(Exit.CRASHED, 1, "no room")) is Then.AGAIN

    progress = job.progress()
    assert (progress.done, progress.of, progress.is_done) == (1, 2, False)
    assert (progress.nodes["n1"].said, progress.nodes["n1"].done) == ("2.0 s", 1)
    assert progress.nodes["n2"].done == 0 and "no room" in progress.nodes["n2"].said


def test_a_later_attempt_asks_for_the_other_nodes_alone() -> None:
    kept = Kept()
    warm(kept).on_end(container(1), End(Exit.FINISHED, 0))
    later = warm(kept)

    assert later.roles(KNOWLEDGE)[0].done == frozenset({1})
    assert later.on_end(container(0), End(Exit.FINISHED, 0)) is Then.DONE
    assert later.progress().is_done


def test_nodes_that_can_get_it_do_before_it_is_said_who_has_it_and_who_does_not() -> None:
    job = warm(Kept())
    (role,) = job.roles(KNOWLEDGE)
    assert role.explain and not role.all_needed

    assert role.explain("n1: full; n2: lost") == "torch@1.13 does not get to any of the nodes (n1: full; n2: lost)"
    job.on_end(container(1), End(Exit.FINISHED, 0))
    assert role.explain("n1: no room") == "torch@1.13 is on n2, and does not get to others (n1: no room)"


def test_nodes_are_all_that_are_able_or_those_that_are_named() -> None:
    assert choose([], ["n1", "n2"], "torch@1") == ["n1", "n2"]
    assert choose(["n2", "n2"], ["n1", "n2"], "torch@1") == ["n2"]
    with pytest.raises(JobError, match="n3 cannot have torch@1"):
        choose(["n1", "n3"], ["n1", "n2"], "torch@1")


def test_a_job_says_which_version_a_name_has_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hdfs = played_hdfs(tmp_path / "hdfs", monkeypatch)
    (tmp_path / "tree").mkdir()
    keep_environment(hdfs, tmp_path, {"/opt/env": tmp_path / "tree"}, version="7")
    submitter = cast("Submitter", SimpleNamespace(filesystem=hdfs, check=lambda _: ["n1"]))

    made = order(submitter, "words", [], JobOptions(), InfoAccess())

    assert (made.name, made.env, made.settings["environment"]) == ("nodewise env warm words@7", "words@7", "words@7")
    assert made.settings["nodes"] == ["n1"]


def test_a_node_fetches_at_the_median_rate_from_the_others() -> None:
    disks = {node: Rate(500e6, 0.0) for node in ("n1", "n2", "n3", "n4")}
    pairs = {("n1", peer): Rate(rate, 0.0) for peer, rate in (("n2", 10e6), ("n3", 40e6), ("n4", 90e6))}
    measured = find_ways(AccessCost(disks, pairs), ["n1"])

    assert measured == {"n1": Way(40e6, is_assumed=False)}
    few = {("n1", "n2"): Rate(10e6, 0.0), ("n1", "n3"): Rate(40e6, 0.0), ("n2", "n3"): Rate(90e6, 0.0)}
    more = {**disks, **{f"m{number}": Rate(500e6, 0.0) for number in range(4)}}
    assert find_ways(AccessCost(more, few), ["n1"])["n1"].bytes_per_second == 40e6, "as it was seen to receive"


def test_a_node_from_which_nothing_is_measured_fetches_as_others_send_and_as_it_receives() -> None:
    nodes = [f"n{number}" for number in range(9)]
    disks = {node: Rate(500e6, 0.0) for node in nodes}
    sends = {Side(node, True, True): Rate(10e6 * (1 + number), 0.0) for number, node in enumerate(nodes)}
    receives = {Side("n0", False, True): Rate(30e6, 0.0), Side("n1", False, True): Rate(70e6, 0.0)}
    cost = AccessCost(disks, sides=sends | receives)

    found = find_ways(cost, ["n0", "n1", "n2"])

    assert [one.bytes_per_second for one in found.values()] == [30e6, 50e6, 50e6]
    assert not any(one.is_assumed for one in found.values())
    others = [cost.entry("n1", node).bytes_per_second for node in nodes if node != "n1"]
    assert found["n1"].bytes_per_second == pytest.approx(median(others), rel=0.2), "as over each pair"


def test_the_way_to_a_node_whose_rack_is_small_leads_through_others() -> None:
    racks = {"n1": "/small", **{f"n{number}": "/large" for number in range(2, 9)}}
    ends = itertools.product(racks, (True, False), (True, False))
    sides = {Side(node, sends, near): Rate(90e6 if near else 20e6, 0.0) for node, sends, near in ends}
    found = find_ways(AccessCost({node: Rate(500e6, 0.0) for node in racks}, {}, racks, sides), ["n1", "n2"])

    assert found == {"n1": Way(20e6, is_assumed=False), "n2": Way(90e6, is_assumed=False)}


def test_where_no_way_is_measured_the_rate_is_assumed() -> None:
    disks = {"n1": Rate(500e6, 0.0), "n2": Rate(500e6, 0.0)}

    assert (
        find_ways(AccessCost(), ["n1"]) == find_ways(AccessCost(disks), ["n1"]) == {"n1": Way(100e6, is_assumed=True)}
    )


def test_a_thousand_nodes_are_not_looked_at_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [f"n{number}" for number in range(1000)]
    asked: list[str] = []
    disk = AccessCost.disk

    def count(cost: AccessCost, node: str) -> Figure:
        asked.append(node)
        return disk(cost, node)

    monkeypatch.setattr(AccessCost, "disk", count)
    find_ways(AccessCost({node: Rate(500e6, 0.0) for node in nodes}), nodes)

    assert len(asked) == 2 * len(nodes), "within a rack, and beyond"
