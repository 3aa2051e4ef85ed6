"""The arithmetic of the processors, and their ends without a service; in slots they run in test_agent.py."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.processors import perf_cpu, perf_even
from collectors.run import lines

PROCESSORS = Path(__file__).resolve().parents[2] / "collectors" / "processors"


def run(name: str, *arguments: str, url: str = "http://127.0.0.1:9") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "NODE_NAME": "n1", "INFOSVC_URL": url}
    command = [sys.executable, str(PROCESSORS / f"{name}.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("free", "needed", "perf"),
    [
        (0.5, 0.5, 1.0),
        (0.9, 0.5, 1.0),
        (0.25, 0.5, 0.5),
        (0.0, 0.5, 0.0),
        (1.0, 1.0, 1.0),
        (0.3, 1.0, 0.3),
    ],
)
def test_equation_1(free: float, needed: float, perf: float) -> None:
    assert perf_cpu.capability(free, needed) == pytest.approx(perf)


@given(st.floats(0, 1), st.floats(0.001, 1))
def test_free_cpu_never_judges_above_one_and_never_below_the_free_share(free: float, needed: float) -> None:
    assert min(free, 1) <= perf_cpu.capability(free, needed) <= 1


@pytest.mark.parametrize("needed", [0.0, -0.5, 1.5, float("nan"), float("inf")])
def test_a_need_that_is_no_share_of_the_cpu_is_refused(needed: float) -> None:
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        perf_cpu.capability(0.5, needed)


@pytest.mark.parametrize(
    ("node", "arguments", "weight"),
    [
        ("n1", ["1"], 1.0),
        ("n1", ["1", "n1=0.5"], 0.5),
        ("n2", ["2", "n1=0.5"], 2.0),
        ("127.0.1.11", ["1", "127.0.1.11=3"], 3.0),
    ],
)
def test_a_configured_weight_is_the_node_s_own_or_everybody_s(
    node: str, arguments: Sequence[str], weight: float
) -> None:
    assert perf_even.capability(node, arguments) == weight


@pytest.mark.parametrize(
    "arguments", [[], ["x"], ["0"], ["-1"], ["nan"], ["inf"], ["1", "n1"], ["1", "=2"], ["1", "n1=x"]]
)
def test_a_weight_that_is_none_is_refused(arguments: Sequence[str]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        perf_even.capability("n1", arguments)


EMITS = ["perf.confidence", "perf.count", "perf.spread"]


def test_what_stands_beside_a_value_is_printed_under_the_name_of_the_producer() -> None:
    printed = lines("12.5", {"confidence": 0.25, "count": 3, "spread": 1 / 3}, "perf", EMITS)

    assert printed.split("\n") == ["perf 12.5", "perf.confidence 0.25", "perf.count 3", "perf.spread 0.333333"]


@pytest.mark.parametrize(
    ("data_name", "emits", "printed"),
    [
        ("perf", [], "12.5"),
        ("perf", EMITS[:2], "perf 12.5\nperf.confidence 0.25"),
        ("mine", ["mine.confidence"], "mine 12.5\nmine.confidence 0.25"),
        ("mine", ["other"], "mine 12.5"),
    ],
)
def test_only_what_the_producer_emits_and_what_there_is_stands_beside(
    data_name: str, emits: list[str], printed: str
) -> None:
    assert lines("12.5", {"confidence": 0.25, "count": None}, data_name, emits) == printed


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("perf_even", [], "give a weight"),
        ("perf_cpu", [], "perf_cpu.py 0.5"),
        ("perf_cpu", ["2"], "at most 1"),
        ("perf_cpu", ["0.5"], "does not answer"),
        ("perf_history", [], "data name"),
        ("perf_history", ["images_per_second:x"], "does not answer"),
    ],
)
def test_a_processor_that_cannot_work_says_why_in_one_sentence(name: str, arguments: Sequence[str], said: str) -> None:
    ran = run(name, *arguments)

    assert (ran.stdout, ran.returncode) == ("", 1)
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_every_processor_is_short() -> None:
    assert all(len(path.read_text().splitlines()) <= 60 for path in PROCESSORS.glob("*.py"))
