"""`nodewise node add`: real machines, from nothing to fresh values in a real service."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from infosvc.commands.shipping import temporary_bundle
from infosvc.shipping import bundle
from infosvc.shipping.on_node import check_allowed
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Forbidden, InvalidInput, NotReady, Unauthorized
from infosvc.wire.records import Kind, Producer, Role, Scope, State

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving
    from tests.infosvc.shipping.conftest import Hand

pytestmark = pytest.mark.timeout(900)  # on a busy machine each start of an agent takes many seconds

Eventually = Callable[[Callable[[], bool]], None]

HOSTS = ("127.0.77.11", "127.0.77.12")
AUTOSTART = {e.producer.data_name for e in bundle.catalog() if e.autostart and e.producer.scope is Scope.NODE}
DAY = timedelta(days=1)
NO_START = (HOSTS[0], "--no-start")
TAKEN_BACK = ("ca_file", "tls_cert", "tls_key")


def valid_tokens(served: Served) -> list[tuple[str | None, Role]]:
    return sorted((t.node_name, t.role) for t in served.client.tokens() if t.revoked_at is None)


def test_an_enrolled_node_runs_what_ships(
    hand: Hand, served: Served, agents: Path, eventually: Eventually, tmp_path: Path
) -> None:
    done = hand.add(*HOSTS, HOSTS[0])

    assert done.exit_code == 0, done.output
    assert [line.split(":")[0] for line in done.output.splitlines()] == list(HOSTS)
    assert {item.data_name for item in served.reader.producers()} == {e.producer.data_name for e in bundle.catalog()}
    assert [item.address for item in served.reader.nodes()] == [f"{host}:{hand.options.agent_port}" for host in HOSTS]
    assert {slot.data_name for slot in served.reader.slots(HOSTS[1]).slots} == AUTOSTART
    assert not list((tmp_path / "home").glob("bundle-*"))

    def fresh(name: str) -> bool:
        return [datum.state for datum in served.reader.data(name)] == [State.FRESH] * 2

    for name in ("cpu_free_ratio", "cpu_count", "memory_available_bytes", "perf_cpu", "perf_even"):
        eventually(partial(fresh, name))

    def outcomes() -> dict[str, str | None]:
        return {slot.data_name: slot.outcome for slot in served.reader.slots(HOSTS[0]).slots}

    assert not {"failed", "refused"} & set(outcomes().values()), outcomes()
    eventually(lambda: "timeout" not in outcomes().values())  # in which one run may have ended on a busy machine


def test_each_agent_has_a_token_of_its_own_and_never_the_operator_s(hand: Hand, served: Served, agents: Path) -> None:
    assert hand.add(*HOSTS, "--no-start").exit_code == 0

    assert valid_tokens(served) == [(host, Role.AGENT) for host in HOSTS]
    texts = [(agents / host / "token").read_text().strip() for host in HOSTS]
    assert len({*texts, "a-token-for-the-tests"}) == 3
    assert stat.S_IMODE((agents / HOSTS[0] / "token").stat().st_mode) == 0o600
    for file in agents.rglob("*"):
        assert not file.is_file() or b"a-token-for-the-tests" not in file.read_bytes(), file
    with pytest.raises(Forbidden):
        InfoClient(served.url, texts[0]).put_node("elsewhere", "127.0.0.1:1")


def test_enrolling_again_gives_a_new_token_and_revokes_the_one_before(hand: Hand, served: Served, agents: Path) -> None:
    assert hand.add(*NO_START).exit_code == 0
    first = (agents / HOSTS[0] / "token").read_text().strip()
    assert hand.add(*NO_START).exit_code == 0

    assert (agents / HOSTS[0] / "token").read_text().strip() != first
    assert valid_tokens(served) == [(HOSTS[0], Role.AGENT)]
    with pytest.raises(Unauthorized):
        InfoClient(served.url, first).producers()


def test_a_new_node_whose_agent_does_not_start_is_forgotten_and_the_others_are_not(hand: Hand, served: Served) -> None:
    with socket.create_server((HOSTS[0], hand.options.agent_port)):
        done = hand.add(*HOSTS, "--no-start")

    assert done.exit_code == 1
    assert f"{HOSTS[0]}:{hand.options.agent_port}" in done.stderr
    assert [item.node_name for item in served.reader.nodes()] == [HOSTS[1]]
    assert valid_tokens(served) == [(HOSTS[1], Role.AGENT)]


def test_an_enrolled_node_keeps_address_and_token_when_enrolling_it_again_fails(
    hand: Hand, served: Served, agents: Path, eventually: Eventually
) -> None:
    assert hand.add(*NO_START).exit_code == 0
    token, nodes, tokens = (agents / HOSTS[0] / "token").read_text(), served.reader.nodes(), valid_tokens(served)
    with socket.create_server((HOSTS[0], 0)) as taken:
        elsewhere = replace(hand.options, agent_port=taken.getsockname()[1])
        assert replace(hand, options=elsewhere).add(*NO_START).exit_code == 1

    assert (agents / HOSTS[0] / "token").read_text() == token
    assert [item.address for item in served.reader.nodes()] == [nodes[0].address]
    assert valid_tokens(served) == tokens
    eventually(lambda: served.reader.nodes()[0].state == "ready")


def test_a_machine_that_cannot_be_reached_is_never_given_a_token(hand: Hand, served: Served) -> None:
    done = hand.add("127.0.77.13", HOSTS[0], "--no-start", "--json")

    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert {host: found["ok"] for host, found in told.items()} == {"127.0.77.13": False, HOSTS[0]: True}
    assert "127.0.77.13 cannot be reached" in told["127.0.77.13"]["error"]
    assert len(told[HOSTS[0]]["version"]) == 12
    assert [token.node_name for token in served.client.tokens()] == [HOSTS[0]]


def test_a_node_that_is_forgotten_has_its_agent_ended(
    hand: Hand, served: Served, agents: Path, eventually: Eventually
) -> None:
    assert hand.add(*NO_START).exit_code == 0
    pid = int((agents / HOSTS[0] / "agent.pid").read_text())
    assert Path(f"/proc/{pid}").exists()

    served.client.delete_node(HOSTS[0])

    eventually(lambda: not (agents / HOSTS[0] / "agent.pid").exists())
    assert valid_tokens(served) == []


def test_a_machine_elsewhere_is_never_told_to_report_to_a_loopback_address(
    hand: Hand, served: Served, tmp_path: Path
) -> None:
    config = tmp_path / "ssh_config"
    config.write_text("Host elsewhere\n  HostName 192.0.2.1\n")
    refused = replace(hand, options=replace(hand.options, ssh_config=config)).add("elsewhere")

    assert isinstance(refused.exception, InvalidInput)
    assert f"elsewhere cannot reach {served.url}: serve with --host" in str(refused.exception)
    assert served.reader.nodes() == []


def test_without_the_operator_s_token_nothing_happens(hand: Hand, served: Served, agents: Path) -> None:
    (hand.home / "service" / "token").unlink()

    assert isinstance(hand.add(HOSTS[0]).exception, Unauthorized)
    assert not agents.exists()


def test_what_is_pushed_needs_a_home_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "full").write_text("")
    with pytest.raises(NotReady, match="cannot be written below"), temporary_bundle(tmp_path / "full"):
        pass


def test_nothing_starts_with_no_start(hand: Hand, served: Served) -> None:
    assert hand.add(*NO_START).exit_code == 0
    assert served.reader.slots(HOSTS[0]).slots == ()


def test_enrolling_again_keeps_what_people_changed_and_says_so(hand: Hand, served: Served) -> None:
    assert hand.add(HOSTS[0]).exit_code == 0
    shipped = served.reader.producer("load_1m")
    changed = served.client.put_producer(replace(shipped, time_max=77.0))
    served.client.put_slot(HOSTS[0], "load_1m", running=False)

    done = hand.add(HOSTS[0])

    assert done.exit_code == 0
    assert "registration differs from the shipped one: load_1m;" in done.stderr
    assert served.reader.producer("load_1m") == changed
    assert {slot.data_name: slot.running for slot in served.reader.slots(HOSTS[0]).slots}["load_1m"] is False

    assert hand.add(HOSTS[0], "--update").stderr == ""
    assert served.reader.producer("load_1m") == replace(shipped, version=changed.version + 1)


def test_a_name_that_ships_and_is_somebody_s_own_stays_so_until_it_is_updated(hand: Hand, served: Served) -> None:
    own = served.client.put_producer(Producer("load_5m", "scripts/load_1m.sh", 5))

    done = hand.add(*NO_START)

    assert done.exit_code == 0
    assert "system_load ships, but is not registered: load_5m is registered already" in done.stderr
    assert served.reader.producer("load_5m") == own
    forgotten = "deleted with slots and values, because a shipped producer emits the name: load_5m\n"
    assert hand.add(*NO_START, "--update").stderr == forgotten
    assert served.reader.producer("load_5m").kind is Kind.EMITTED
    assert served.reader.producer("load_5m").unit == "processes"


def test_both_sides_speak_tls_when_they_are_given_certificates(
    hand: Hand, serve: Serving, agents: Path, tmp_path: Path, eventually: Eventually
) -> None:
    cert, key = self_signed(tmp_path / "service-tls", "127.0.0.1")
    agent_cert, _ = self_signed(tmp_path / "agents-tls", HOSTS[0])
    settings = {"tls_cert": str(cert), "tls_key": str(key), "agent_ca": str(agent_cert)}
    with (
        serve(f"sqlite:///{tmp_path}/secure.db", **settings) as secure,
        InfoClient(secure.url, "a-token-for-the-tests", ca_file=cert) as client,
    ):
        hand = replace(hand, service=secure)
        words = ("--ca-file", str(cert), "--tls-dir", str(agent_cert.parent))
        done = hand.add(*NO_START, *words)

        assert (done.exit_code, done.stderr) == (0, ""), done.output
        eventually(lambda: client.nodes()[0].state == "ready")
        modes = {name: stat.S_IMODE((agents / HOSTS[0] / name).stat().st_mode) for name in ("agent.key", "agent.pem")}
        assert modes == {"agent.key": 0o600, "agent.pem": 0o600}
        client.put_slot(HOSTS[0], "load_1m", running=True)
        eventually(lambda: bool(client.data("load_1m")))
        assert client.slot_log(HOSTS[0], "load_1m")
        assert "up to date" in hand.push(HOSTS[0], "--ca-file", str(cert)).stdout


def test_a_node_without_a_certificate_among_those_given_is_not_touched(
    hand: Hand, agents: Path, tmp_path: Path
) -> None:
    missing = hand.add(*NO_START, "--tls-dir", str(tmp_path))

    assert missing.exit_code == 1
    assert f"{tmp_path}/{HOSTS[0]}.pem cannot be read" in missing.stderr
    assert not agents.exists()


def test_an_agent_that_the_service_cannot_call_is_named_with_the_remedy(
    hand: Hand, serve: Serving, tmp_path: Path
) -> None:
    cert, _ = self_signed(tmp_path / "tls", HOSTS[0])
    done = hand.add(*HOSTS, "--no-start", "--tls-dir", str(cert.parent))

    assert done.exit_code == 1  # the other host has no certificate
    assert f"Warning: the agents of {HOSTS[0]} speak https, and the service calls them by http" in done.stderr
    assert "serve with --agent-ca" in done.stderr

    with serve(f"sqlite:///{tmp_path}/other.db", agent_ca=str(cert)) as other:
        kept = replace(hand, service=other).add(*NO_START)
        assert (kept.exit_code, kept.stderr) == (0, "")
        plain = replace(hand, service=other).add(*NO_START, "--tls-dir", "")
        assert plain.exit_code == 0
        assert f"the agents of {HOSTS[0]} speak http, and" in plain.stderr
        assert "enrol them with --tls-dir" in plain.stderr


def test_what_an_enrolment_gave_stays_until_it_is_taken_back(
    hand: Hand, served: Served, serve: Serving, agents: Path, tmp_path: Path, eventually: Eventually
) -> None:
    cert, key = self_signed(tmp_path / "service-tls", "127.0.0.1")
    own, _ = self_signed(tmp_path / "agents-tls", HOSTS[0])
    place = agents / HOSTS[0]
    with serve(f"sqlite:///{tmp_path}/secure.db", tls_cert=str(cert), tls_key=str(key), agent_ca=str(own)) as secure:
        words = ("--ca-file", str(cert), "--tls-dir", str(own.parent), "--allow", "/opt/tools")
        assert replace(hand, service=secure).add(*NO_START, *words).exit_code == 0

    def told() -> tuple[bool, ...]:
        settings = json.loads((place / "settings.json").read_text())
        files = [(place / name).exists() for name in ("ca.pem", "agent.pem", "agent.key")]
        return settings["allow"] == ["/opt/tools"], *(bool(settings[key]) for key in TAKEN_BACK), *files

    assert hand.add(*NO_START).exit_code == 0
    assert set(told()) == {True}
    assert hand.add(*NO_START, "--ca-file", "", "--tls-dir", "", "--allow", "").stderr == ""
    assert set(told()) == {False}
    eventually(lambda: served.reader.nodes()[0].state == "ready")


def test_a_new_certificate_is_a_change_and_the_same_one_is_not(
    hand: Hand, served: Served, agents: Path, tmp_path: Path, eventually: Eventually
) -> None:
    first, _ = self_signed(tmp_path / "first", HOSTS[0])
    second, _ = self_signed(tmp_path / "second", HOSTS[0])

    def added(tls: Path) -> bool:
        done = hand.add(*NO_START, "--unchanged", "--json", "--tls-dir", str(tls.parent))
        assert done.exit_code == 0, done.output
        eventually(lambda: served.reader.nodes()[0].state == "ready")
        changed: bool = json.loads(done.stdout)[HOSTS[0]]["changed"]
        return changed

    assert added(first)
    eventually(lambda: not added(first))  # one that is slow to answer is given all of it anew
    assert added(second)
    eventually(lambda: not added(second))
    assert (agents / HOSTS[0] / "agent.pem").read_bytes() == second.read_bytes()


def test_an_agent_that_the_service_does_not_hear_is_enrolled_anew(
    hand: Hand, served: Served, agents: Path, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hand.add(*NO_START).exit_code == 0
    eventually(lambda: served.reader.nodes()[0].state == "ready")
    os.kill(int((agents / HOSTS[0] / "agent.pid").read_text()), signal.SIGSTOP)
    with monkeypatch.context() as impatient:
        impatient.setattr("infosvc.shipping.remote._PROBE_SECONDS", 2.0)
        anew = hand.add(*NO_START, "--unchanged")
    assert anew.stdout.endswith("0 slots started\n"), anew.output
    eventually(lambda: served.reader.nodes()[0].state == "ready")
    assert hand.add(*NO_START, "--unchanged").stdout.endswith("0 slots started, unchanged\n")


def self_signed(directory: Path, address: str) -> tuple[Path, Path]:
    """ADDRESS.pem and ADDRESS.key, good for two days."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - DAY, now + DAY)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    directory.mkdir()
    files = directory / f"{address}.pem", directory / f"{address}.key"
    files[0].write_bytes(made.public_bytes(Encoding.PEM))
    files[1].touch(mode=0o600)
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


@pytest.mark.parametrize("folder", ["/usr/lib/../bin", "deep"])
def test_a_folder_whose_programs_run_anything_is_allowed_only_when_told_twice(
    hand: Hand, served: Served, tmp_path: Path, folder: str
) -> None:
    if folder == "deep":
        (tmp_path / "tools" / "sub").mkdir(parents=True)
        (tmp_path / "tools" / "sub" / "python3.11").touch()
        folder = str(tmp_path / "tools")
    refused = hand.add(HOSTS[0], "--no-start", "--allow", folder)

    assert refused.exit_code == 1
    assert f"{folder} on {HOSTS[0]} " in refused.stderr
    assert "--allow-any" in refused.stderr
    assert served.reader.nodes() == []


def test_any_folder_may_be_allowed_by_an_operator_who_insists(hand: Hand, agents: Path) -> None:
    done = hand.add(*NO_START, "--allow", "/usr/bin", "--allow-any")

    assert done.exit_code == 0, done.output
    assert json.loads((agents / HOSTS[0] / "settings.json").read_text())["allow"] == ["/usr/bin"]


def test_no_folder_of_the_system_may_be_allowed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/usr/local")
    system = ["/", "/bin", "/usr/bin", "/usr/local/bin", "/opt", "/opt/.", str(tmp_path / "link")]
    refused = check_allowed([*system, str(tmp_path), "/opt/no-such-folder"])["refused"]

    assert refused == dict.fromkeys(system, "is a folder of the system")
