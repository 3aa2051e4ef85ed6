"""`nodewise top`, run as people run it: on a terminal, and into a pipe, against a running service."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from infosvc.wire.records import Outcome, Producer, Report, Run
from tests.in_process import nodewise
from tests.infosvc.conftest import Hands, Served, Serving
from tests.infosvc.terminal import LEAVE_SCREEN, STYLE, Terminal, settings
from tests.ports import free_port

Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]

NAMES = ("cpu_free_ratio", "memory_available_bytes", "rack")


@pytest.fixture
def served(sqlite_url: str, serve: Serving, hands: Hands) -> Iterator[Served]:
    """A service with three enrolled nodes, one of them ready, and a value of a fourth."""
    with serve(sqlite_url, hands) as service:
        client = service.client
        client.put_producer(Producer("cpu_free_ratio", "x", 2.0, unit="ratio", ttl=6.0))
        client.put_producer(Producer("memory_available_bytes", "x", 2.0, unit="bytes", ttl=600.0))
        client.put_producer(Producer("rack", "x", 2.0, ttl=600.0))
        for name in ("n1", "n2", "n3"):
            client.put_node(name, "127.0.0.1:9")
        client.put_slot("n1", "cpu_free_ratio", True)
        client.report("n1", Report("b", 1, "1.0", (Run("cpu_free_ratio", Outcome.OK, 0.1, "0.25"),)))
        client.put_value("cpu_free_ratio", "n2", 0.9312)
        client.put_value("memory_available_bytes", "n2", 8123456789)
        client.put_value("memory_available_bytes", "n1", 950_000)
        client.put_value("rack", "other", "r7")
        yield service


@pytest.fixture
def command(served: Served) -> Command:
    """command(*WORDS): what `nodewise top` prints into a pipe."""

    def run(*words: str) -> Done:
        return nodewise("top", *words, env=settings(served.url))

    return run


def fine(done: Done) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def first_words(done: Done) -> list[str]:
    """The nodes, from the top."""
    return [line.split()[0] for line in fine(done).splitlines()[2:]]


@pytest.fixture
def terminal(stack: ExitStack) -> Callable[..., Terminal]:
    """terminal(URL, *WORDS, lines=20): one on which `nodewise top` runs."""

    def start(url: str, *words: str, **size: int) -> Terminal:
        made = Terminal(url, "top", "--every", "0.1", *words, **size)
        stack.callback(made.close)
        return made

    return start


def test_a_table_has_a_row_for_each_node_and_a_unit_for_each_name(command: Command) -> None:
    lines = fine(command(*NAMES)).splitlines()

    assert lines[0].split() == ["cpu_free_ratio", "memory_available_bytes", "rack"]
    assert lines[1].split() == ["node", "state", "ratio", "bytes"]
    assert [re.split(" {2,}", line.rstrip()) for line in lines[2:]] == [
        ["n1", "ready", "0.25", "950.0 kB", "-"],
        ["n2", "stale", "0.93", "8.1 GB", "-"],
        ["n3", "stale", "-", "-", "-"],
        ["other", "-", "-", "-", "r7"],
    ]


def test_without_names_the_usual_ones_are_shown_that_are_registered(command: Command, served: Served) -> None:
    assert fine(command()).splitlines()[0].split() == ["cpu_free_ratio", "memory_available_bytes"]
    for name in ("cpu_free_ratio", "memory_available_bytes"):
        served.client.delete_producer(name)
    refused = command()
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "name others, `nodewise producer list` shows them" in refused.stderr


@pytest.mark.parametrize(
    ("words", "nodes"),
    [
        ([], ["n1", "n2", "n3", "other"]),
        (["-r"], ["other", "n3", "n2", "n1"]),
        (["--sort", "cpu_free_ratio"], ["n1", "n2", "n3", "other"]),
        (["--sort", "cpu_free_ratio", "--reverse"], ["n2", "n1", "n3", "other"]),
        (["--sort", "memory_available_bytes"], ["n1", "n2", "n3", "other"]),
        (["--sort", "state", "-r"], ["n2", "n3", "n1", "other"]),
        (["--filter", "N", "--sort", "cpu_free_ratio", "-r"], ["n2", "n1", "n3"]),
        (["--filter", "2"], ["n2"]),
    ],
)
def test_rows_are_sorted_and_filtered_and_what_has_no_value_comes_last(
    command: Command, words: list[str], nodes: list[str]
) -> None:
    assert first_words(command(*NAMES, *words)) == nodes


def test_numbers_are_sorted_as_numbers_and_before_text(command: Command, served: Served) -> None:
    for name, value in {"n1": "10", "n2": "9", "n3": "much"}.items():
        served.client.put_value("rack", name, value)

    assert first_words(command("rack", "--sort", "rack")) == ["n2", "n1", "n3", "other"]


def test_a_filter_that_nothing_fits_and_a_service_without_nodes_say_what_to_do(
    command: Command, served: Served
) -> None:
    assert fine(command("--filter", "x9")) == "no node has 'x9' in its name: `nodewise node list` shows all\n"
    for name in ("n1", "n2", "n3"):
        served.client.delete_node(name)
    served.client.delete_value("rack", "other")
    assert "nodewise node add" in fine(command())


def test_json_is_one_document_with_every_node(command: Command) -> None:
    found = json.loads(fine(command("rack", "cpu_free_ratio", "--json", "-r")))

    assert [(row["node_name"], row["state"]) for row in found] == [
        ("other", None),
        ("n3", "stale"),
        ("n2", "stale"),
        ("n1", "ready"),
    ]
    assert found[0]["values"]["cpu_free_ratio"] is None
    assert found[0]["values"]["rack"]["data_value"] == "r7"
    assert found[3]["values"]["cpu_free_ratio"]["unit"] == "ratio"


def test_what_cannot_be_shown_is_refused_in_one_sentence(command: Command) -> None:
    near, far = command("cpu_fre_ratio"), command("nothing")
    for refused in (near, far):
        assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (1, "", 1)
        assert "`nodewise producer list` shows all" in refused.stderr
    assert "a name close to it: cpu_free_ratio" in near.stderr

    unsorted = command("rack", "--sort", "cpu_free_ratio")
    assert (unsorted.returncode, unsorted.stdout) == (2, "")
    assert unsorted.stderr.splitlines()[-1].endswith("sort by node, state, rack")
    for seconds in ("0", "nan", "2h"):
        assert command("--every", seconds).returncode == 2


def test_a_stale_value_tells_its_age_and_a_failed_one_that_it_failed(
    command: Command, served: Served, hands: Hands
) -> None:
    run = Run("cpu_free_ratio", Outcome.FAILED, 0.1, None, "no file")
    served.client.report("n1", Report("b", 2, "1.0", (run,)))
    hands.turn(10)
    rows = fine(command("cpu_free_ratio", "rack")).splitlines()[2:]

    assert re.fullmatch(r"n1 +stale +0\.25 \(10\.\d s, failed\) +-", rows[0].rstrip())
    assert re.fullmatch(r"n2 +stale +0\.93 \(10\.\d s\) +-", rows[1].rstrip())
    assert re.fullmatch(r"other +- +- +r7", rows[3].rstrip())
    hands.turn(10)
    assert "lost" in fine(command()).splitlines()[2]


def test_each_look_shows_what_is_new_and_ctrl_c_leaves_the_terminal_as_it_was(
    terminal: Callable[..., Terminal], served: Served
) -> None:
    shown = terminal(served.url, *NAMES)
    shown.until(lambda drawing: "0.93" in drawing and "4 nodes: 1 ready, 2 stale, 1 not enrolled" in drawing)
    served.client.put_value("cpu_free_ratio", "n2", 0.5)
    shown.until(lambda drawing: "0.50" in drawing and "0.93" not in drawing)
    served.client.put_node("n4", "127.0.0.1:9")
    shown.until(lambda drawing: "n4 " in drawing)
    shown.type("\x03")

    assert shown.ended() == 0
    assert shown.left_as_it_was()
    assert "Aborted" not in shown.text and "Traceback" not in shown.text


def test_a_value_that_becomes_stale_is_dim_on_the_terminal(
    terminal: Callable[..., Terminal], served: Served, hands: Hands
) -> None:
    shown = terminal(served.url, "--filter", "n2")
    # A look that is drawn late on a busy machine has grown old meanwhile: others follow.
    shown.until(lambda drawing: "0.93" in drawing and "(" not in drawing)
    hands.turn(10)
    stale = shown.until(lambda drawing: "0.93 (1" in drawing)

    assert re.search(r"\x1b\[2m *0\.93 \(1\d\.\d s\)", stale)
    assert not re.search(r"\x1b\[2m *8\.1 GB", stale)


def test_as_many_rows_are_shown_as_the_terminal_has(terminal: Callable[..., Terminal], served: Served) -> None:
    for number in range(30):
        served.client.put_node(f"many{number:02}", "127.0.0.1:9")
    shown = terminal(served.url, "--filter", "many", lines=10)
    few = shown.until(lambda drawing: "24 more:" in drawing)
    assert re.findall(r"many\d\d", few) == [f"many{number:02}" for number in range(6)]
    assert few.count("\n") == 9
    shown.resize(33)
    whole = shown.until(lambda drawing: "many29" in drawing)

    assert " more:" not in whole
    assert len(re.findall(r"many\d\d", whole)) == 30


def test_while_the_service_is_away_the_table_stays_and_goes_on_when_it_is_back(
    terminal: Callable[..., Terminal], serve: Serving, sqlite_url: str
) -> None:
    port = free_port()
    with serve(sqlite_url, port=port) as service:
        service.client.put_producer(Producer("rack", "x", 2.0, ttl=600.0))
        service.client.put_value("rack", "n1", "r7")
        shown = terminal(service.url, "rack")
        # On a busy machine a look may be drawn so late that nothing seems to have come since.
        shown.until(lambda drawing: "r7" in drawing and "nothing came" not in drawing)
    away = STYLE.sub("", shown.until(lambda drawing: " ago: " in drawing))
    assert re.search(r"nothing came since \d\d:\d\d:\d\d, .* s ago: the information service at .* does not", away)
    assert re.search(r"n1 +- +r7", away)
    with serve(sqlite_url, port=port) as service:
        service.client.put_value("rack", "n1", "r8")
        shown.until(lambda drawing: "r8" in drawing and "nothing came" not in drawing)


def test_a_name_that_is_forgotten_meanwhile_ends_it_in_one_sentence(
    terminal: Callable[..., Terminal], served: Served
) -> None:
    shown = terminal(served.url, "rack")
    shown.until(lambda drawing: "r7" in drawing)
    served.client.delete_producer("rack")

    assert shown.ended() == 1
    assert shown.left_as_it_was()
    assert shown.text.rpartition(LEAVE_SCREEN)[2].startswith("Error: no producer is registered under 'rack'")


def test_sigterm_leaves_the_terminal_as_it_was(terminal: Callable[..., Terminal], served: Served) -> None:
    shown = terminal(served.url)
    shown.until(lambda drawing: "0.93" in drawing)
    shown.process.send_signal(signal.SIGTERM)

    assert shown.ended() == 128 + signal.SIGTERM
    assert shown.left_as_it_was()


def test_a_service_that_is_not_there_is_refused_at_once(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    shown = terminal(f"http://127.0.0.1:{free_port()}")

    assert shown.ended() == 1
    assert shown.text.startswith("Error: the information service at ") and len(shown.text.splitlines()) <= 3
