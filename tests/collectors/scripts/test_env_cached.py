"""What the collector of environments finds in the local folders of a NodeManager."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Collect = Callable[..., Any]
Tree = Callable[[Path, dict[str, str]], Path]
TORCH, ONNX, HALF = "a1" * 32, "b2" * 32, "c3" * 32
FILES = {
    f"filecache/10/sha256-{TORCH}.sqfs": "12345",
    f"filecache/0/11/sha256-{ONNX}.sqfs": "123",
    f"filecache/12_tmp/sha256-{HALF}.sqfs": "1",
    "filecache/13/code.zip": "1",
    "filecache/14/sha256-short.sqfs": "1",
}


def site(folders: str) -> str:
    name = "<name>yarn.nodemanager.local-dirs</name>"
    return f"<configuration>\n  <property>{name}\n<value>{folders}</value></property>\n</configuration>\n"


def test_it_finds_whole_parts_and_none_that_are_on_their_way(
    collect: Collect, tools: dict[str, str], tmp_path: Path, tree: Tree
) -> None:
    one, other = tree(tmp_path / "a disk", FILES), tree(tmp_path / "other", {f"filecache/1/sha256-{HALF}.sqfs": "12"})
    yarn_site = tmp_path / "yarn-site.xml"
    yarn_site.write_text(site(f"file://{one}, {other}"))
    found = {TORCH[:16]: 5, ONNX[:16]: 3, HALF[:16]: 2}

    assert json.loads(collect("env_cached", str(one), str(other), **tools).stdout) == found
    assert json.loads(collect("env_cached", proc="bare", YARN_SITE=str(yarn_site), **tools).stdout) == found


def test_a_node_without_any_part_says_so_and_one_without_yarn_has_no_data(
    collect: Collect, tools: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "local" / "filecache").mkdir(parents=True)

    assert collect("env_cached", str(tmp_path / "local"), **tools).stdout == "{}\n"
    assert collect("env_cached", str(tmp_path / "none"), **tools).is_no_data
    assert collect("env_cached", proc="bare", YARN_SITE=str(tmp_path / "none"), **tools).is_no_data


def test_of_several_nodemanagers_on_a_machine_it_takes_that_of_its_node(
    collect: Collect, tools: dict[str, str], tmp_path: Path, tree: Tree
) -> None:
    processes: dict[str, str] = {}
    for number, node in ((1, "127.0.1.11"), (2, "127.0.1.1")):
        folder = tree(tmp_path / str(number) / "local", {f"filecache/1/sha256-{str(number) * 64}.sqfs": "1"})
        tree(tmp_path / str(number) / "conf", {"yarn-site.xml": site(str(folder))})
        words = ["java", f"-Dnodewise.daemon=nodemanager@{node}", "-cp", f"/jars/*:{tmp_path}/{number}/conf", "Main"]
        processes[f"{number}/cmdline"] = "\0".join([*words, ""])
    proc = tree(tmp_path / "proc", processes)

    for number, node in ((1, "127.0.1.11"), (2, "127.0.1.1")):
        run = collect("env_cached", proc=proc, NODE_NAME=node, **tools)
        assert json.loads(run.stdout) == {str(number) * 16: 1}


def test_a_nodemanager_of_the_same_name_in_another_network_is_passed_over(
    collect: Collect, tools: dict[str, str], tmp_path: Path, tree: Tree
) -> None:
    processes = {"self/ns/net": "here"}
    for number, network in ((1, "there"), (2, "here")):
        folder = tree(tmp_path / network / "local", {f"filecache/1/sha256-{str(number) * 64}.sqfs": "1"})
        tree(tmp_path / network / "conf", {"yarn-site.xml": site(str(folder))})
        words = ["java", "-Dnodewise.daemon=nodemanager@n1", "-cp", f"{tmp_path}/{network}/conf", "Main", ""]
        processes |= {f"{number}/cmdline": "\0".join(words), f"{number}/ns/net": network}
    proc = tree(tmp_path / "proc", processes)
    (proc / "2" / "ns" / "net").unlink()
    os.link(proc / "self" / "ns" / "net", proc / "2" / "ns" / "net")

    run = collect("env_cached", proc=proc, NODE_NAME="n1", **tools)

    assert json.loads(run.stdout) == {"2" * 16: 1}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to another user")
def test_what_another_user_says_on_a_command_line_counts_for_nothing(
    collect: Collect, tools: dict[str, str], tmp_path: Path, tree: Tree
) -> None:
    folder = tree(tmp_path / "local", {f"filecache/1/sha256-{TORCH}.sqfs": "1"})
    tree(tmp_path / "conf", {"yarn-site.xml": site(str(folder))})
    words = ["java", "-Dnodewise.daemon=nodemanager@n1", "-cp", f"{tmp_path}/conf", "Main", ""]
    proc = tree(tmp_path / "proc", {"1/cmdline": "\0".join(words)})
    asked = {"proc": proc, "NODE_NAME": "n1", "YARN_SITE": str(tmp_path / "none"), **tools}

    assert json.loads(collect("env_cached", **asked).stdout) == {TORCH[:16]: 1}
    os.chown(proc / "1" / "cmdline", 1, 1)
    assert collect("env_cached", **asked).is_no_data


def test_the_largest_thousand_are_told(collect: Collect, tools: dict[str, str], tmp_path: Path, tree: Tree) -> None:
    local = tree(tmp_path, {f"filecache/{i}/sha256-{i:016x}{'0' * 48}.sqfs": "x" * (i + 1) for i in range(1002)})
    run = collect("env_cached", str(local), **tools)

    told = json.loads(run.stdout)
    assert len(told) == 1000 and min(told.values()) == 3
    assert len(run.stdout) < 65_535


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_cache_that_it_may_not_read_is_a_failure(collect: Collect, tmp_path: Path) -> None:
    cache = tmp_path / "filecache"
    cache.mkdir(mode=0o000)

    run = collect("env_cached", str(tmp_path))
    cache.chmod(0o700)

    assert run.status == 1 and "cannot be read" in run.stderr
