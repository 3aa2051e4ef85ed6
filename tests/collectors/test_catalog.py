"""The catalogue and the files that ship are one and the same."""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from collectors.processors import perf_history
from infosvc.wire.records import Kind, Producer, check_name

COLLECTORS = Path(__file__).resolve().parents[2] / "collectors"
TABLES: dict[str, dict[str, Any]] = tomllib.loads((COLLECTORS / "catalog.toml").read_text())["producer"]
ROWS = [{"data_name": name, **table} for name, table in TABLES.items()]
BY_KIND = {kind: [row for row in ROWS if row["kind"] == kind.value] for kind in Kind}
IN_SLOTS = BY_KIND[Kind.COLLECTOR] + BY_KIND[Kind.PROCESSOR]
REGISTERED = {row["data_name"] for row in ROWS}
# A unit stands in the name: what a name ends with and the unit that it then has.
TEXTS = ("_architecture", "_cards", "_digest", "_flags", "_missing", "_model", "_name", "_version")
UNITS = {
    "_ratio": "ratio",
    "_bytes": "bytes",
    "_bytes_per_second": "bytes/second",
    "_bits_per_second": "bits/second",
    "_packets_per_second": "packets/second",
    "_seconds": "seconds",
    "_hertz": "hertz",
    "_celsius": "celsius",
}


def by_name(row: dict[str, Any]) -> str:
    return str(row["data_name"])


def test_every_file_that_ships_is_the_command_of_one_entry_of_its_name() -> None:
    scripts = {f"scripts/{path.name}" for path in (COLLECTORS / "scripts").glob("[!_]*")}
    processors = {f"processors/{path.name}" for path in (COLLECTORS / "processors").glob("[!_]*.py")}
    commands = [row["cmd"].split()[0] for row in IN_SLOTS]

    assert sorted(commands) == sorted(scripts | processors)
    assert [Path(command).stem for command in commands] == [row["data_name"] for row in IN_SLOTS]


def test_there_is_one_library_beside_the_scripts() -> None:
    assert [path.name for path in (COLLECTORS / "scripts").glob("_*")] == ["_lib.sh"]


@pytest.mark.parametrize("script", sorted((COLLECTORS / "scripts").glob("[!_]*")), ids=lambda path: path.name)
def test_a_script_can_be_executed_and_finds_its_library(script: Path) -> None:
    lines = script.read_text().splitlines()

    assert os.access(script, os.X_OK)
    assert lines[0] == "#!/bin/sh"
    assert '. "${LIB:-${0%/*}/_lib.sh}"' in lines
    assert len(lines) <= 40


def test_every_emitted_name_belongs_to_one_collector_and_every_name_of_a_collector_is_described() -> None:
    promised = Counter(name for row in ROWS for name in row.get("emits", []))
    described = Counter(row["data_name"] for row in BY_KIND[Kind.EMITTED])

    assert promised == described
    assert set(promised.values()) == {1}


@pytest.mark.parametrize("row", BY_KIND[Kind.EMITTED], ids=by_name)
def test_an_emitted_name_says_only_what_is_its_own(row: dict[str, Any]) -> None:
    assert set(row) <= {"data_name", "kind", "unit", "help", "ttl", "keep"}


def test_names_are_allowed() -> None:
    assert [check_name(name) for name in TABLES] == list(TABLES)


def test_a_node_brings_fifty_values_and_more_from_few_runs() -> None:
    running = [row for row in BY_KIND[Kind.COLLECTOR] if row["autostart"]]

    assert sum(len(row.get("emits", [None])) for row in running) >= 50
    assert sum(1 / row["time_max"] for row in running) <= 2  # runs a second


@pytest.mark.parametrize("row", ROWS, ids=by_name)
def test_every_name_is_explained_and_has_the_unit_that_it_names(row: dict[str, Any]) -> None:
    longest = max((end for end in UNITS if row["data_name"].endswith(end)), key=len, default=None)

    assert row["help"]
    assert row["unit"] or row["data_name"].endswith(TEXTS), "only a text has no unit"
    assert longest is None or row["unit"] == UNITS[longest]


@pytest.mark.parametrize("row", [row for row in ROWS if row["kind"] != "emitted"], ids=by_name)
def test_every_entry_is_a_producer_that_can_be_run_in_time(row: dict[str, Any]) -> None:
    producer = Producer.from_json(row)

    assert 0 < producer.timeout <= max(producer.time_max, 10)
    # What its inputs run may be young long before its own time comes.
    assert (producer.ttl or 0) >= (producer.time_max + producer.timeout if producer.inputs else 3 * producer.time_max)
    assert row["autostart"] in (True, False)
    assert set(producer.inputs) <= REGISTERED - {producer.data_name}


def test_a_processor_runs_when_what_it_reads_changes() -> None:
    inputs = {row["data_name"]: row.get("inputs", []) for row in BY_KIND[Kind.PROCESSOR]}

    assert inputs["perf_cpu"] == ["cpu_free_ratio"]
    assert inputs["perf_history"] == ["images_per_second:mxnet.alexnet:32"]


def test_what_reads_the_values_of_all_nodes_on_every_node_seldom_does() -> None:
    [row] = [row for row in ROWS if row["data_name"] == "perf_history"]

    assert row["time_max"] >= 60
    assert row["timeout"] >= 2 * perf_history.PATIENCE_SECONDS


@pytest.mark.parametrize("name", ["perf_even", "perf_cpu", "perf_history"])
def test_a_capability_carries_its_confidence(name: str) -> None:
    confidence = next(row for row in BY_KIND[Kind.EMITTED] if row["data_name"] == f"{name}.confidence")
    capability = next(row for row in BY_KIND[Kind.PROCESSOR] if row["data_name"] == name)

    assert confidence["unit"] == "ratio"
    assert confidence["data_name"] in capability["emits"]


def test_speeds_are_kept_for_as_long_as_they_live() -> None:
    speeds = next(row for row in BY_KIND[Kind.PROGRAM] if row["data_name"].startswith("images_per_second:"))

    assert speeds["keep"] == speeds["ttl"] == 30 * 86_400
