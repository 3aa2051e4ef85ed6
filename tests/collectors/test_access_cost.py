"""How nodes measure the ways between them, and what is made of it: real agents that probe each other."""

from __future__ import annotations

import http.server
import json
import math
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from collectors import peers
from collectors.peers import MOST_PEERS, OLDEST_SECONDS, Memory, NoProbe, Roster, bytes_per_second, next_peer
from collectors.processors import access_cost, rack_name
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Datum, Kind, Outcome, Producer, Role, Scope, State
from locality.cost import AccessCost, Basis, Rate

pytestmark = pytest.mark.timeout(900)  # on a busy machine each start of an agent takes many seconds

Wait = Callable[[Callable[[], Any]], Any]
PROCESSORS = Path(__file__).resolve().parents[2] / "collectors" / "processors"
DISK = "disk_sequential_read_bytes_per_second"
HOST = "127.0.78.11"
TOKEN = "a-token-of-the-tests"


def roster(names: list[str], racks: dict[str, str] | None = None, at: float = 0.0) -> Roster:
    return Roster(at, "http", dict.fromkeys(names, "127.0.0.1:9"), racks or {})


NAMED = [f"worker{number}" for number in range(30)]


def test_over_its_runs_a_node_asks_every_other_one_equally_often() -> None:
    asked = [str(next_peer("worker7", roster(NAMED), run)) for run in range(2 * 29)]

    assert sorted(asked) == sorted([name for name in NAMED if name != "worker7"] * 2)


def test_nodes_of_the_own_rack_and_of_others_take_turns() -> None:
    racks = {name: f"/r{number % 3}" for number, name in enumerate(NAMED)}
    asked = [str(next_peer("worker7", roster(NAMED, racks), run)) for run in range(2 * 20)]

    assert all((racks[peer] == racks["worker7"]) == (run % 2 == 0) for run, peer in enumerate(asked))
    assert set(asked) == set(NAMED) - {"worker7"}


@pytest.mark.parametrize("racks", [{}, {name: f"/r{number % 3}" for number, name in enumerate(NAMED)}], ids=len)
def test_nodes_in_the_same_run_ask_different_nodes(racks: dict[str, str]) -> None:
    for run in range(8):
        asked = [next_peer(name, roster(NAMED, racks), run) for name in NAMED]
        # The ring is closed within a rack; of the others, who is next is not next for one alone.
        most = max(asked.count(peer) for peer in asked)
        assert most == 1 if not racks or run % 2 == 0 else most <= 4


def test_who_is_alone_asks_nobody_and_who_is_not_listed_still_asks() -> None:
    assert next_peer("a", roster(["a"]), 0) is None
    assert next_peer("a", roster([]), 3) is None
    assert next_peer("new", roster(["a"]), 3) == "a"


def test_the_list_of_nodes_is_read_the_more_seldom_the_longer_it_is() -> None:
    assert not roster(NAMED, at=100.0).is_old(117.9)
    assert roster(NAMED, at=100.0).is_old(118.1)
    assert roster(NAMED, at=100.0).is_old(99.0), "a clock that was set back must not keep it for ever"
    assert roster([], at=100.0).is_old(100.0)


def test_what_was_measured_is_kept_with_its_age_and_only_the_newest(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(MOST_PEERS + 5)]
    memory = Memory(3, roster(names))
    for number, name in enumerate(names):
        memory.note(name, 1e6 * (number + 1), 1000.0 + number)
    memory.save(tmp_path / "peers.json")
    read = Memory.load(tmp_path / "peers.json")

    assert read == memory
    assert set(read.seen) == set(names[5:])
    assert read.results(2000.0)["n10"] == {"bytes_per_second": 11e6, "age_seconds": 990.0}


def test_what_is_too_old_or_of_the_future_or_of_a_node_that_is_gone_is_left_out() -> None:
    now = 1_000_000.0
    memory = Memory(0, roster(["a", "b", "c"]))
    for name, at in {"a": now, "b": now - OLDEST_SECONDS - 1, "c": now + 5, "gone": now}.items():
        memory.note(name, 1e6, at)

    assert set(memory.results(now)) == {"a"}
    assert Memory().results(now) == {}


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", "{}", "[" * 60000, '{"runs": 1, "roster": null, "seen": {}}'),
        '{"runs": 1, "roster": {"x": 1}, "seen": {}}',
        *(
            json.dumps({"runs": 1, "roster": vars(roster(["a"])), "seen": {"a": [1e6, 5.0]}} | wrong)
            for wrong in (
                {"runs": math.inf},
                {"runs": "x"},
                {"seen": {"a": [math.nan, 5.0]}},
                {"seen": {"a": [0, 5.0]}},
                {"seen": {"a": [10**400, 5.0]}},
                {"seen": {"a": ["x", 5.0]}},
                {"roster": vars(roster(["a"])) | {"at": "x"}},
                {"roster": vars(roster(["a"])) | {"at": None}},
                {"roster": vars(roster(["a"])) | {"addresses": ["a"]}},
                {"roster": vars(roster(["a"])) | {"racks": 5}},
            )
        ),
    ],
    ids=lambda text: text[:100],
)
def test_a_damaged_memory_is_a_new_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "peers.json").write_text(text)

    assert Memory.load(tmp_path / "peers.json") == Memory()


@contextmanager
def answering(status: int, promised: int, sent: int) -> Iterator[str]:
    """An agent of the wrong kind: what it answers to every GET."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(promised))
            self.end_headers()
            self.wfile.write(b"x" * sent)

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "promised", "sent", "said"),
    [
        (429, 2, 2, "it answered 429"),
        (404, 2, 2, "it answered 404"),
        (200, 10, 10, "10 bytes came instead of 131072"),
        (200, 131072, 5, "5 bytes came instead of 131072"),
        (200, 200_000, 200_000, "200000 bytes came instead"),
    ],
)
def test_what_is_no_probe_is_never_a_rate(
    monkeypatch: pytest.MonkeyPatch, status: int, promised: int, sent: int, said: str
) -> None:
    monkeypatch.setattr(peers, "PATIENCE_SECONDS", 60.0)
    with answering(status, promised, sent) as address, pytest.raises(NoProbe, match=said):
        bytes_per_second(address, None)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "", "127.0.0.1:x", "no.such.host.invalid:80", "127.0.0.1:99999"])
def test_an_address_where_nobody_answers_is_named(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr(peers, "PATIENCE_SECONDS", 60.0)
    with pytest.raises(NoProbe, match=r"^the agent at .* gave no probe: ."):
        bytes_per_second(address, None)


@contextmanager
def dripping(start: bytes) -> Iterator[str]:
    """An agent that sends this at once and then a byte every now and then, some hundred altogether."""
    stopped = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.sendall(start)
            for _ in range(400):
                if stopped.wait(0.05):
                    return
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stopped.set()
            thread.join()


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\nContent-Length: 131072\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "])
def test_who_drips_bytes_is_given_up_even_within_one_read(monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    monkeypatch.setattr(peers, "PATIENCE_SECONDS", 0.5)
    with dripping(start) as address, pytest.raises(NoProbe, match=rf"{address} gave no probe within 0.5 s"):
        bytes_per_second(address, None)


def test_a_turn_counts_before_anybody_is_asked(service: InfoClient, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "NODE_NAME": "n1", "INFOSVC_URL": service.url}
    with socket.create_server((HOST, 0)) as silent, ExitStack() as callers:
        silent.settimeout(60)
        service.put_node("n2", f"{HOST}:{silent.getsockname()[1]}")
        with subprocess.Popen(
            [sys.executable, str(PROCESSORS / "peer_throughput.py")], env=environment | {"STATE_DIR": str(tmp_path)}
        ) as process:
            try:
                # The service calls on a new node, too.
                while b"GET /api/v1/probe?" not in (callers.enter_context(silent.accept()[0])).recv(1000):
                    pass
                assert Memory.load(tmp_path / "peers.json").runs == 1
            finally:
                process.kill()


LIVE = {"127.0.2.11:9866": {"location": "/r1", "capacity": 5}, "w2:9866": {"location": "/r2"}, "w3:9866": {}}


def jmx(nodes: object) -> str:
    return json.dumps({"beans": [{"name": "NameNodeInfo", "LiveNodes": json.dumps(nodes)}]})


@pytest.mark.parametrize(("node", "found"), [("127.0.2.11", "/r1"), ("w2", "/r2"), ("w3", None), ("w4", None)])
def test_the_rack_of_a_node_is_where_the_namenode_has_it(node: str, found: str | None) -> None:
    assert rack_name.rack_name(jmx(LIVE), node) == found


@pytest.mark.parametrize(
    "answer", ["", "{}", '{"beans": []}', '{"beans": [{"LiveNodes": 3}]}', jmx([]), jmx({"w2:1": 5})]
)
def test_what_is_no_answer_of_a_namenode_is_refused(answer: str) -> None:
    with pytest.raises(ValueError, match="web address of a NameNode"):
        rack_name.rack_name(answer, "w2")


@pytest.mark.parametrize(
    ("start", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 131072\r\n\r\n", "timed out"),
        (b"HTTP/1.1 200 OK\r\nX: ", "timed out"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 101, "more than 100 bytes"),
        (b"HTTP/1.1 503 No\r\n\r\n", "it answered 503.*start HDFS"),
        (
            b"HTTP/1.1 401 No\r\n\r\n",
            "it answered 401.*a ticket of Kerberos, so write racks by `nodewise data put",
        ),
    ],
)
def test_a_namenode_that_drips_or_never_ends_is_given_up(
    monkeypatch: pytest.MonkeyPatch, start: bytes, why: str
) -> None:
    monkeypatch.setattr(rack_name, "PATIENCE_SECONDS", 0.5 if why == "timed out" else 60.0)
    monkeypatch.setattr(rack_name, "MOST_BYTES", 100)
    with dripping(start) as address:
        monkeypatch.setattr(sys, "argv", ["rack_name.py", f"http://{address}"])
        monkeypatch.setenv("NODE_NAME", "w2")
        with pytest.raises(ValueError, match=f"{address} does not tell the rack .*{why}"):
            rack_name.main()


def run(name: str, state: Path, *arguments: str, url: str = "http://127.0.0.1:9") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "NODE_NAME": "n1", "INFOSVC_URL": url, "STATE_DIR": str(state)}
    command = [sys.executable, str(PROCESSORS / f"{name}.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("rack_name", [], "http://127.0.2.1:9870"),
        ("rack_name", ["ftp://x"], "ftp://x"),
        ("rack_name", ["http://127.0.0.1:9"], "http://127.0.0.1:9 does not tell the rack"),
        ("access_cost", [], "does not answer"),
        ("peer_throughput", [], "does not answer"),
    ],
)
def test_what_cannot_work_says_why_in_one_sentence(tmp_path: Path, name: str, arguments: list[str], said: str) -> None:
    ran = run(name, tmp_path, *arguments)

    assert (ran.stdout, ran.returncode) == ("", 1)
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1


def register(service: InfoClient, *names: str) -> None:
    for name in names:
        service.put_producer(Producer(name, "", 3600, kind=Kind.PROGRAM))


def cost_of(service: InfoClient, tmp_path: Path) -> tuple[AccessCost, subprocess.CompletedProcess[str]]:
    ran = run("access_cost", tmp_path, url=service.url)
    assert ran.returncode == 0, ran.stderr
    return AccessCost.from_json(ran.stdout), ran


def test_the_cost_is_made_of_what_all_nodes_measured(service: InfoClient, tmp_path: Path) -> None:
    register(service, DISK, "peer_throughput", "rack_name")
    for node in ("n1", "n2", "n3"):
        service.put_node(node, "127.0.0.1:9")
    service.put_value(DISK, "n1", 150_000_000)
    service.put_value(DISK, "n2", 50_000_000)
    service.put_value("rack_name", "n1", "/r1")
    service.put_value("rack_name", "n2", "/r1")
    seen = {"n2": {"bytes_per_second": 90_000_000, "age_seconds": 500}}
    service.put_value("peer_throughput", "n1", json.dumps(seen))

    cost, ran = cost_of(service, tmp_path)

    assert ran.stderr == ""
    assert {node: rate.bytes_per_second for node, rate in cost.disks.items()} == {"n1": 150e6, "n2": 50e6}
    assert cost.pairs["n1", "n2"].bytes_per_second == 90e6
    assert 500 <= cost.pairs["n1", "n2"].age < 560
    assert cost.racks == {"n1": "/r1", "n2": "/r1"}
    assert cost.entry("n1", "n2").basis is Basis.MEASURED
    assert cost.entry("n2", "n1").basis is Basis.ESTIMATED


def test_a_way_is_as_old_as_the_value_and_what_is_told_in_it_together() -> None:
    seen = json.dumps({"n2": {"bytes_per_second": 5e6, "age_seconds": 40}, "n1": {"bytes_per_second": 9}})
    datum = Datum("peer_throughput", "n1", seen, 25.0, 60.0, State.STALE, Outcome.OK)

    assert access_cost.pairs(datum) == {("n1", "n2"): Rate(5e6, 65.0)}


ABSURD = {
    "a rate of 0": {"n2": {"bytes_per_second": 0, "age_seconds": 1}},
    "negative": {"n2": {"bytes_per_second": -5, "age_seconds": 1}},
    "NaN": {"n2": {"bytes_per_second": float("nan"), "age_seconds": 1}},
    "a text": {"n2": {"bytes_per_second": "quick", "age_seconds": 1}},
    "an age before time": {"n2": {"bytes_per_second": 1e6, "age_seconds": -1e9}},
    "an age of 401 digits": {"n2": {"bytes_per_second": 1e6, "age_seconds": 10**400}},
    "no age": {"n2": {"bytes_per_second": 1e6}},
    "no object": {"n2": 5},
    "a list": ["n2"],
}


@pytest.mark.parametrize("seen", ABSURD.values(), ids=ABSURD)
def test_what_makes_no_sense_is_left_out_and_named(service: InfoClient, tmp_path: Path, seen: object) -> None:
    register(service, DISK, "peer_throughput", "rack_name")
    service.put_node("n1", "127.0.0.1:9")
    service.put_node("n2", "127.0.0.1:9")
    service.put_value(DISK, "n1", 0)
    service.put_value(DISK, "n2", 70_000_000)
    service.put_value("peer_throughput", "n1", json.dumps(seen))
    sound = {"n1": {"bytes_per_second": 1e6, "age_seconds": 1}, "n2": {"bytes_per_second": 9, "age_seconds": 1}}
    service.put_value("peer_throughput", "n2", json.dumps(sound))

    cost, ran = cost_of(service, tmp_path)

    assert set(cost.disks) == {"n2"}
    assert set(cost.pairs) == {("n2", "n1")}, "what a node says of itself is no way"
    assert f"left out {DISK} of n1" in ran.stderr
    assert "left out peer_throughput of n1" in ran.stderr


def test_racks_need_not_be_known_to_the_service(service: InfoClient, tmp_path: Path) -> None:
    register(service, DISK, "peer_throughput")
    service.put_node("n1", "127.0.0.1:9")
    service.put_value(DISK, "n1", 70_000_000)

    cost, _ = cost_of(service, tmp_path)
    assert (set(cost.disks), cost.racks) == ({"n1"}, {})


def test_without_any_measurement_there_is_no_cost(service: InfoClient, tmp_path: Path) -> None:
    register(service, DISK, "peer_throughput", "rack_name")

    ran = run("access_cost", tmp_path, url=service.url)
    assert (ran.stdout, ran.returncode) == ("", 3)
    assert "nothing was measured" in ran.stderr


def test_a_node_alone_has_nobody_to_measure(service: InfoClient, tmp_path: Path) -> None:
    ran = run("peer_throughput", tmp_path, url=service.url)

    assert (ran.stdout, ran.returncode) == ("", 3)


def value(service: InfoClient, name: str, node: str) -> Datum | None:
    try:
        return next((datum for datum in service.data(name, node=node) if datum.data_value), None)
    except NotFound:
        return None


def seen_by(service: InfoClient, node: str) -> dict[str, dict[str, float]]:
    datum = value(service, "peer_throughput", node)
    return json.loads(str(datum.data_value)) if datum else {}


def start_nodes(service: InfoClient, make_node: Any, names: list[str], **settings: str) -> dict[str, Any]:
    """Agents that measure their disks and each other."""
    service.put_producer(Producer(DISK, f"scripts/{DISK}.sh", 0.5, timeout=20))
    service.put_producer(Producer("peer_throughput", "processors/peer_throughput.py", 0.5, timeout=20))
    made = {}
    for name in names:
        service.put_node(name, f"{HOST}:1")
        _, token = service.create_token(f"agent of {name}", Role.AGENT, node_name=name)
        node = made[name] = make_node(service.url, token)
        service.put_node(name, f"{HOST}:{node.port}")
        node.configure(node_name=name, **settings)
        service.put_slot(name, DISK, running=True)
        service.put_slot(name, "peer_throughput", running=True)
    for node in made.values():
        assert node.launch().returncode == 0
    return made


def test_agents_measure_each_other_and_one_makes_the_cost_of_it(
    service: InfoClient, make_node: Any, wait_for: Wait
) -> None:
    names = ["n1", "n2", "n3"]
    made = start_nodes(service, make_node, names)
    register(service, "rack_name")
    inputs = (DISK, "peer_throughput")
    service.put_producer(
        Producer("access_cost", "processors/access_cost.py", 1, timeout=20, scope=Scope.CLUSTER, inputs=inputs)
    )
    service.put_slot("*", "access_cost", running=True)

    wait_for(lambda: all(set(seen_by(service, name)) == set(names) - {name} for name in names))
    wait_for(lambda: all(value(service, DISK, name) for name in names))

    def complete() -> AccessCost | None:
        texts = [str(datum.data_value) for datum in service.data("access_cost") if datum.data_value]
        found = AccessCost.from_json(texts[0]) if texts else AccessCost()
        return found if len(found.disks) == 3 and len(found.pairs) == 6 else None

    cost = wait_for(complete)
    entries = [cost.entry(reader, holder) for reader in names for holder in names]
    assert {entry.basis for entry in entries} == {Basis.MEASURED}
    assert all(0 < entry.seconds_per_byte < 1e-3 and entry.age < 120 for entry in entries)

    # Who is gone is measured no more; what was known of it stays, and grows old.
    made["n3"].kill()
    aged = wait_for(lambda: (now := seen_by(service, "n1")["n3"])["age_seconds"] > 3 and now)
    assert aged["bytes_per_second"] > 0
    # By now the probes of n2 may have had their bytes of this minute.
    wait_for(lambda: seen_by(service, "n1")["n2"]["age_seconds"] < 30)


def test_agents_with_certificates_are_measured_over_tls(
    tmp_path: Path,
    serving: Any,
    make_node: Any,
    certificate: tuple[Path, Path],
    wait_for: Wait,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers, "PATIENCE_SECONDS", 60.0)
    cert, key = map(str, certificate)
    with (
        serving(tmp_path, tls_cert=cert, tls_key=key, agent_ca=cert) as url,
        InfoClient(url, TOKEN, 60, ca_file=cert) as one,
    ):
        made = start_nodes(one, make_node, ["n1", "n2"], tls_cert=cert, tls_key=key, ca_file=cert)

        assert wait_for(lambda: seen_by(one, "n1"))["n2"]["bytes_per_second"] > 0
        address = f"{HOST}:{made['n2'].port}"
        with pytest.raises(NoProbe):
            bytes_per_second(address, None)
        with pytest.raises(NoProbe, match="certificate"):
            bytes_per_second(address, ssl.create_default_context())
