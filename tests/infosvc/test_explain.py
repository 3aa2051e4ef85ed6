"""Why YARN prefers which nodes, asked of a running service and looked at as a page."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import ProxyHandler, build_opener

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.fields import answer_of
from infosvc.wire.records import Outcome, Producer, Report, Role, Run
from infosvc.wire.scoring.yarn_score import KEYS, parse
from tests.infosvc import conftest

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

API, PAGE = "/api/v1/explain", "/explain"
FREE = "first.score = free higher 0..1"
JAVA = Path(__file__).resolve().parents[2] / "yarn-plugin" / "src" / "main" / "java" / "nodewise" / "yarn"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """The plug-in's settings file, whose one value is `free`."""
    file = tmp_path / "nodewise-policy.properties"
    file.write_text(f"service.url = http://127.0.0.1:8400\n{FREE}\n")
    return file


@pytest.fixture
def service(sqlite_url: str, serve: Serving, hands: Hands, policy: Path) -> Iterator[Served]:
    """A service that explains that file, with three nodes, and two names whose values count for 10 s."""
    with serve(sqlite_url, hands, policy_file=str(policy)) as served:
        for name in ("free", "load"):
            served.client.put_producer(Producer(name, "x", 5.0, ttl=10.0))
        for node in ("n1", "n2", "n3"):
            served.client.put_node(node, "127.0.0.1:9")
        yield served


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Path]]:
    """A service for tests whose file it can make nothing of, and that file."""
    folder = tmp_path_factory.mktemp("refusing")
    file = folder / "nodewise-policy.properties"
    with conftest.serving(f"sqlite:///{folder / 'infosvc.db'}", policy_file=str(file)) as served:
        yield served, file


def give(service: Served, name: str, **by_node: str | float) -> None:
    """Write values of one name."""
    for node, value in by_node.items():
        service.client.put_value(name, node, value)


def nodes(service: Served, policy: str = "first") -> list[Any]:
    """What is said of each node, in the order of the answer."""
    answer = service.ask("GET", API, token=None)
    assert answer.status == 200, answer.text
    (found,) = [one["nodes"] for one in answer.json["policies"] if one["policy"] == policy]
    return list(found)


def order(service: Served, policy: str = "first") -> list[tuple[str, Any, bool]]:
    """Node, score, and whether it goes last."""
    return [(one["node_name"], pytest.approx(one["score"]), one["last"]) for one in nodes(service, policy)]


def test_nodes_come_from_best_to_worst_with_the_parts_of_their_scores(service: Served, policy: Path) -> None:
    policy.write_text("first.score = free higher 0..1 weight 3; load lower 0..10\n")
    give(service, "free", n1=0.2, n2=0.6, n3=1)
    give(service, "load", n1=0, n2=5, n3=20)

    found = nodes(service)

    assert order(service) == [("n3", 0.75, False), ("n2", 0.575, False), ("n1", 0.4, False)]
    assert found[1]["parts"] == [
        {"data_name": "free", "data_value": "0.6", "age": 0, "state": "fresh", "part": 0.6, "weight": 3},
        {"data_name": "load", "data_value": "5", "age": 0, "state": "fresh", "part": 0.5, "weight": 1},
    ]
    assert found[1]["conditions"] == []


def test_a_node_for_which_the_filter_does_not_hold_keeps_its_score_and_goes_last(service: Served, policy: Path) -> None:
    policy.write_text(f"{FREE}\nfirst.filter = load < 8; free >= 0.1\n")
    give(service, "free", n1=0.2, n2=0.9, n3=0.5)
    give(service, "load", n1=1, n2=9)

    assert order(service) == [("n1", 0.2, False), ("n2", 0.9, True), ("n3", 0.5, True)]
    assert [one["conditions"] for one in nodes(service)] == [
        [
            {"data_name": "load", "condition": "load < 8", "holds": holds},
            {"data_name": "free", "condition": "free >= 0.1", "holds": True},
        ]
        for holds in (True, False, False)
    ]


def test_the_client_reads_the_same_and_names_all_that_nodes_are_judged_by(service: Served, policy: Path) -> None:
    policy.write_text(f"{FREE}\nfirst.filter = load < 8\nprogram.score = speed:{{program}} higher 0..1\n")
    give(service, "free", n1=0.2)
    service.client.put_producer(Producer("speed:net", "x", 5.0))

    found = service.client.explain()

    assert answer_of(found) == service.ask("GET", API, token=None).json
    assert found.data_names == {"free", "load"}
    assert service.client.explain("net").data_names == {"speed:net"}


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("", [("n2", 0.6, False), ("n1", 0.2, False), ("n3", 0.4, True)]),
        ("missing exclude-last", [("n2", 0.6, False), ("n1", 0.2, False), ("n3", 0.4, True)]),
        ("missing neutral", [("n2", 0.6, False), ("n3", 0.4, False), ("n1", 0.2, False)]),
        ("missing last-known", [("n2", 0.6, False), ("n3", 0.4, False), ("n1", 0.2, False)]),
    ],
)
def test_a_node_without_a_value_is_treated_as_the_policy_says(
    service: Served, policy: Path, missing: str, expected: list[tuple[str, float, bool]]
) -> None:
    policy.write_text(f"{FREE} {missing}\n")
    give(service, "free", n1=0.2, n2=0.6)

    assert order(service) == expected
    (part,) = next(one["parts"] for one in nodes(service) if one["node_name"] == "n3")
    assert (part["data_value"], part["age"], part["state"]) == (None, None, None)


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("exclude-last", [("n2", 0.6, False), ("n1", 0.2, False), ("n3", 0.4, True)]),
        ("neutral", [("n2", 0.6, False), ("n3", 0.4, False), ("n1", 0.2, False)]),
        ("last-known", [("n3", 0.9, False), ("n2", 0.6, False), ("n1", 0.2, False)]),
    ],
)
def test_a_value_that_went_stale_counts_only_where_the_last_known_does(
    service: Served, policy: Path, hands: Hands, missing: str, expected: list[tuple[str, float, bool]]
) -> None:
    policy.write_text(f"{FREE} missing {missing}\n")
    give(service, "free", n3=0.9)
    hands.turn(10.5)
    give(service, "free", n1=0.2, n2=0.6)

    assert order(service) == expected
    (part,) = next(one["parts"] for one in nodes(service) if one["node_name"] == "n3")
    assert (part["data_value"], part["age"], part["state"]) == ("0.9", pytest.approx(10.5), "stale")


def test_text_and_the_value_of_a_run_that_failed_are_not_fresh_numbers(service: Served) -> None:
    give(service, "free", n1="plenty", n2=0.9, n3=0.5)
    service.client.put_slot("n2", "free", True)
    service.client.report("n2", Report("b", 1, "1", (Run("free", Outcome.FAILED, 0.1, None, "broken"),)))

    assert order(service) == [("n3", 0.5, False), ("n1", 0.5, True), ("n2", 0.5, True)]


def test_a_node_that_only_a_program_wrote_about_is_ordered_too(service: Served) -> None:
    give(service, "free", elsewhere=0.5)

    assert order(service)[0] == ("elsewhere", 0.5, False)


def test_both_policies_are_explained_and_a_changed_file_is_read_again(service: Served, policy: Path) -> None:
    give(service, "free", n1=0.2, n2=0.6, n3=1)
    assert order(service)[0] == ("n3", 1, False)

    policy.write_text("first.score = free lower 0..1\nsecond.score = free higher 0..2 \\\n   weight 2\n")

    assert order(service)[0] == ("n1", 0.8, False)
    assert order(service, "second")[0] == ("n3", 0.5, False)
    assert service.ask("GET", PAGE).text.count("<h2>") == 2


def test_the_order_of_a_program_is_explained_also_before_its_values_are_there(service: Served, policy: Path) -> None:
    policy.write_text(f"{FREE}\nprogram.score = speed:{{program}} higher 0..1 missing neutral; load lower 0..10\n")
    give(service, "load", n1=9, n2=1, n3=5)
    service.client.put_producer(Producer("speed:net", "x", 5.0))
    give(service, "speed:net", n1=1, n2=0, n3=0.5)

    def read_order(program: str) -> list[tuple[str, Any]]:
        (found,) = service.ask("GET", f"{API}?program={program}").json["policies"]
        assert found["policy"] == f"program.{program}"
        return [(one["node_name"], pytest.approx(one["score"])) for one in found["nodes"]]

    assert read_order("net") == [("n1", 0.55), ("n3", 0.5), ("n2", 0.45)]
    assert read_order("new") == [("n2", 0.7), ("n3", 0.5), ("n1", 0.3)]
    assert service.ask("GET", f"{PAGE}?program=net").text.count("<h2>program.net</h2>") == 1
    policy.write_text(FREE)
    assert service.ask("GET", f"{API}?program=net").status == 404


@pytest.mark.parametrize("path", [API, PAGE])
def test_without_a_policy_file_the_remedy_is_said(sqlite_url: str, serve: Serving, path: str) -> None:
    with serve(sqlite_url) as served:
        answer = served.ask("GET", path)

    assert (answer.status, answer.error["code"]) == (404, "not_found")
    assert "--policy-file nodewise-policy.properties" in answer.error["message"]


@pytest.mark.parametrize("path", [API, PAGE])
@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"{FREE}\nfirst.filter = free = 1", "first.filter"),
        (f"{FREE}\nfirst.filter = free > ٣", "first.filter"),
        ("first.score = free higher 1..0", "first.score"),
        ("first.score = free higher 0..1e999", "first.score"),
        ("first.score = free higher 0..1; ; load lower 0..1", "first.score"),
        ("first.score =", "first.score"),
        ("first.score = ;", "first.score"),
        (f"{FREE}\nfirst.filtre = free > 1", "first.filtre"),
        (f"{FREE}\nthird.score = free higher 0..1", "third.score"),
        (f"{FREE}\n= free", ""),
        (f"{FREE}\nsecond.near = 0.1", "second.score"),
        ("service.url = http://127.0.0.1:8400", "first.score"),
        ("", "first.score"),
    ],
)
def test_a_broken_file_is_refused_with_its_key(refusing: tuple[Served, Path], path: str, text: str, key: str) -> None:
    service, policy = refusing
    policy.write_text(text)

    answer = service.ask("GET", path)

    assert (answer.status, answer.error["field"]) == (422, key)
    assert key in answer.error["message"]


@pytest.mark.parametrize("path", [API, PAGE])
def test_a_file_that_cannot_be_read_is_named(service: Served, policy: Path, path: str) -> None:
    policy.write_bytes(b"first.score = \xff")
    broken = service.ask("GET", path)
    policy.unlink()
    gone = service.ask("GET", path)

    for answer in (broken, gone):
        assert (answer.status, answer.error["field"]) == (422, "policy_file")
        assert answer.error["message"].startswith(f"{policy} cannot be read: ")


@pytest.mark.parametrize("path", [API, PAGE])
def test_a_data_name_that_is_not_registered_is_named(service: Served, policy: Path, path: str) -> None:
    policy.write_text(f"{FREE}\nfirst.filter = lode < 8\n")

    answer = service.ask("GET", path)

    assert (answer.status, answer.error["field"]) == (404, "data_name")
    assert "lode" in answer.error["message"]


@pytest.mark.parametrize("path", [API, PAGE])
def test_readers_may_look_and_nobody_where_reading_is_closed(
    sqlite_url: str, serve: Serving, policy: Path, path: str
) -> None:
    with serve(sqlite_url, policy_file=str(policy), open_reading=False) as served:
        served.client.put_producer(Producer("free", "x", 5.0))
        _, reader = served.client.create_token("somebody", Role.READER)

        assert served.ask("GET", path, token=None).status == 401
        assert served.ask("GET", path, token="nw_reader_wrong").status == 401
        assert served.ask("GET", path, token=reader).status == 200


class _Page(HTMLParser):
    """The tags of a page, its text, and whatever it would load or lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows:
            self.rows[-1][-1] += data


def test_the_page_shows_what_the_call_says(service: Served, policy: Path, hands: Hands) -> None:
    policy.write_text(f"{FREE} weight 2\nfirst.filter = load < 8\n")
    give(service, "free", n1=0.25, n2=1)
    give(service, "load", n1=1, n2=9)
    hands.turn(2)

    answer = service.ask("GET", PAGE, token=None)

    assert answer.status == 200
    assert {name.lower(): said for name, said in answer.headers.items()}["content-type"] == "text/html; charset=utf-8"
    assert _Page(answer.text).rows[1:] == [
        ["n1", "0.250", "0.250 x 2 of free (0.25, 2.0 s old, fresh)", "✓ load < 8"],
        ["n2", "1.000", "1.000 x 2 of free (1, 2.0 s old, fresh)", "✗ load < 8"],
        ["n3", "0.625", "0.625 x 2 of free (no value)", "✗ load < 8"],
    ]
    assert answer.text.count("<tr class=last>") == 2


def test_what_nodes_say_is_text_on_the_page(service: Served) -> None:
    give(service, "free", n1="<script>alert(1)</script>&amp;", n2='"><img src=x>')

    page = _Page(service.ask("GET", PAGE).text)

    assert not {"script", "img"} & page.tags
    shown = {row[0]: row[2] for row in page.rows[1:]}
    assert "(<script>alert(1)</script>&amp;, 0.0 s old" in shown["n1"]
    assert '("><img src=x>, 0.0 s old' in shown["n2"]


def test_the_page_loads_nothing_from_anywhere(service: Served) -> None:
    give(service, "free", n1=0.5)

    text = service.ask("GET", PAGE).text

    assert _Page(text).links == []
    assert not re.search(r"//|@import|url\(|<script|<link|\son\w+=", text)


def test_the_keys_are_those_of_the_plug_in() -> None:
    source = (JAVA / "Settings.java").read_text()
    own = set(re.findall(r'"(service\.[a-z-]+)"', source))
    of_a_policy = set(re.findall(r'prefix \+ "([a-z.-]+)"', source))

    assert {"service.url"} < own and {"score"} < of_a_policy
    assert own | {f"{name}.{key}" for name in ("first", "second", "program") for key in of_a_policy} == KEYS
    words = re.search(r"WORDS = List.of\((.*)\);", (JAVA / "Programs.java").read_text())
    assert words and set(re.findall(r'"([a-z.-]+)"', words[1])) == of_a_policy


@pytest.mark.parametrize(
    "text",
    [
        "first.score: free higher 0..1",
        "first.score free higher 0..1",
        "  first.score=free higher 0..1;",
        "first.score = free \\\n\t higher \\\n  0..1",
        "first.score = free higher 0..1 \\",
        "# first.score = a \\\n! second.score = b\n\nfirst.score = free higher 0..1\r\n",
    ],
)
def test_a_file_is_read_as_java_reads_properties(text: str) -> None:
    (found,) = parse(text)

    assert [(term.data_name, term.low, term.high) for term in found.terms] == [("free", 0, 1)]


def serving(home: Path, *words: str) -> subprocess.Popen[str]:
    """The real command, started beside its home."""
    command = [sys.executable, "-m", "nodewise", "--home", str(home), "serve", "--port", "0", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home.parent)


def test_serve_explains_the_file_that_it_is_given(tmp_path: Path, policy: Path) -> None:
    home = tmp_path / "home"
    with serving(home, "--policy-file", policy.name) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("listening on ").split(",")[0]
            client = InfoClient.from_token_file(url, home / "service" / "token")
            client.put_producer(Producer("free", "x", 60))
            client.put_value("free", "n1", 0.25)
            with build_opener(ProxyHandler({})).open(url + API, timeout=60) as answer:
                said = json.load(answer)
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=240)[1] == ""
        finally:
            process.kill()

    (found,) = said["policies"]
    assert [(one["node_name"], one["score"]) for one in found["nodes"]] == [("n1", 0.25)]


@pytest.mark.parametrize(("written", "reason"), [(None, "No such file"), (b"\xff", "can't decode")])
def test_serve_refuses_a_file_that_it_cannot_read_in_one_sentence(
    tmp_path: Path, written: bytes | None, reason: str
) -> None:
    file = tmp_path / "other.properties"
    if written is not None:
        file.write_bytes(written)

    with serving(tmp_path / "home", "--policy-file", str(file)) as process:
        said, complaint = process.communicate(timeout=240)

    assert (process.returncode, said) == (1, "")
    assert len(complaint.splitlines()) == 1
    assert f"the policy file {file} cannot be read" in complaint and reason in complaint
