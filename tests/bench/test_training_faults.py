"""The bench of faults while a run trains: its network, its program, what counts, and how parts are told.

The runs on a cluster are by hand.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.stage import until
from bench.training.progress import Row, count_wrong_samples, read_pieces, read_rows
from bench.training.settings import Settings
from bench.training_faults import table
from bench.training_faults.__main__ import main
from bench.training_faults.faults import FAULTS
from bench.training_faults.network import Network, network
from bench.training_faults.shape import BATCH, EPOCHS, ORDER, SEED, STEPS
from bench.training_faults.trial import find_pauses, train_alone

ONE, OTHER, THIRD = "127.77.0.11", "127.77.0.12", "127.77.0.13"
# Once it is in its control group: connects from one node to another, says a word on its input, and hears the answer.
ECHO = """
import socketserver, sys

class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while said := self.request.recv(9):
            self.request.sendall(said)

sys.stdin.readline()
with socketserver.ThreadingTCPServer((sys.argv[1], 0), Echo) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""
ASK = """
import socket, sys
sys.stdin.readline()
asked = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
asked.settimeout(0.4)
for number, _ in enumerate(sys.stdin):
    word, answer = b"%08d" % number, b""
    try:
        asked.sendall(word)
        while not answer.endswith(word):  # answers to earlier words may come first
            answer += asked.recv(99)
        print("heard", flush=True)
    except TimeoutError:
        print("lost", flush=True)
"""


class Program:
    """A program on a node, which is told lines and answers each."""

    def __init__(self, cuttable: Network, node: str, text: str, *words: str) -> None:
        argv = [sys.executable, "-c", text, *words]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cuttable.enter(node, self.process.pid)

    def tell(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()


@pytest.fixture
def cuttable() -> Iterator[Network]:
    if os.geteuid() or not shutil.which("nft"):
        pytest.skip("only root with nft can cut a network")
    with network([ONE, OTHER, THIRD]) as made:
        yield made


def test_what_a_node_sends_another_is_lost_whoever_has_opened_the_connection(cuttable: Network) -> None:
    programs = []

    def start(node: str, text: str, *words: str) -> Program:
        programs.append(Program(cuttable, node, text, *words))
        return programs[-1]

    try:
        echoing = {node: start(node, ECHO, node) for node in (ONE, OTHER)}
        for one in echoing.values():
            one.tell()
        ports = {node: one.hear() for node, one in echoing.items()}
        asking = {
            (here, there): start(here, ASK, there, ports[there])
            for here, there in ((ONE, OTHER), (OTHER, ONE), (THIRD, ONE), (ONE, ONE))
        }
        for one in asking.values():
            one.tell()

        def hear_each_other(left: set[tuple[str, str]]) -> bool:
            """These, if not at the first word, and nobody else at any."""
            for one in asking.values():
                one.tell()
            found = {pair for pair, one in asking.items() if one.hear() == "heard"}
            assert found <= left
            return found == left

        own, third = (ONE, ONE), (THIRD, ONE)
        for ways, left in (
            ([], set(asking)),
            ([(ONE, OTHER)], {own, third}),
            ([(OTHER, ONE)], {own, third}),
            ([(ONE, "*")], {own}),
            ([("*", ONE)], {own}),
            ([(OTHER, "*"), ("*", OTHER)], {own, third}),
        ):
            with cuttable.cut(*ways):
                until(partial(hear_each_other, left), 60, f"those that are left hear each other: {ways}")
            until(partial(hear_each_other, set(asking)), 60, "all hear each other again")
    finally:
        for one in programs:
            one.process.kill()
            one.process.communicate()


def test_the_program_alone_uses_each_sample_once_a_step(tmp_path: Path) -> None:
    out = tmp_path / "alone"

    found = train_alone(out)

    assert len(found) > 100
    settings = Settings.read(str(out / "settings.json"))
    assert (settings.batch, settings.epochs, settings.seed) == (BATCH, EPOCHS, SEED)
    steps = {row.pid: row.steps for row in read_rows(out)}
    assert [*steps.values()] == [STEPS]
    assert count_wrong_samples(read_pieces(out), steps, ORDER, STEPS) == 0


ROWS = [Row(0, 1, steps, at, 4) for steps, at in ((1, 0.0), (2, 1.0), (3, 4.0), (4, 5.0), (5, 11.0))]


@pytest.mark.parametrize(
    ("hits", "pauses"),
    [
        ([], []),
        ([("member", 0.5)], [("member", 6.0)]),
        ([("member", 0.5), ("store", 4.5)], [("member", 3.0), ("store", 6.0)]),
        ([("member", 0.5), ("store", 12.0)], [("member", 6.0)]),
    ],
    ids=["nothing to hit", "one", "two", "after the last step"],
)
def test_pauses_are_from_each_fault_to_the_next(hits: list[tuple[str, float]], pauses: list[tuple[str, float]]) -> None:
    assert find_pauses(hits, ROWS) == pauses


def record(*wrong: str, of: int = 1) -> dict[str, Any]:
    """A part with one run for each kind of fault."""
    trials: list[dict[str, Any]] = [
        {"number": number, "faults": [kind], "missed": [], "pause_seconds": [(kind, float(number))], "wrong": []}
        | {"difference": 2e-15, "wrong_samples": 0, "generations": 3, "seconds": 60.0}
        for number, kind in enumerate(FAULTS, 1)
    ]
    trials[0]["wrong"] = list(wrong)
    return {"seed": 1, "part": [1, of], "on": "local", "commit": "c", "trials": trials}


def test_what_was_not_measured_or_came_out_wrong_is_named() -> None:
    found = table.find_missing_goals([record("2 samples were missed or used twice", of=2)])

    assert "not measured: seed 1, local: 2/2" in found
    assert f"{len(FAULTS)} of 100 faults were done" in found
    assert f"peers: 1 of {table.OF_EACH}" in found
    assert "1 runs went wrong" in found


def test_each_kind_has_a_line_and_so_has_each_run_that_went_wrong() -> None:
    said = table.markdown([record("nobody came to the end")], "HEAD")

    first, *_ = FAULTS
    assert f"| {first}: {FAULTS[first].__doc__} | 1 | 1 | 1.0 | 1.0 |" in said
    assert f"- seed 1, part 1/1, run 1 ({first}): nobody came to the end" in said
    assert "differ by 2.0e-15 at most" in said


def test_a_sum_of_nothing_names_the_goals(tmp_path: Path) -> None:
    said = CliRunner().invoke(main, ["--sum", "HEAD", "--output", str(tmp_path), "--json"])

    assert said.exit_code == 1
    assert "0 of 100 faults were done" in json.loads(said.output)["missing"]
