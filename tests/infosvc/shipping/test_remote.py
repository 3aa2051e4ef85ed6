"""Enrolment over a real, unprivileged sshd, up to fresh values in a real service."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infosvc.shipping.bundle import Bundle
from infosvc.shipping.remote import Installed, Machine, RemoteOptions, on_hosts
from infosvc.wire.errors import Conflict, InfoError, InvalidInput, NotReady, Unauthorized, Unreachable

if TYPE_CHECKING:
    from tests.infosvc.shipping.conftest import Sshd

pytestmark = pytest.mark.timeout(900)  # on a busy machine each start of an agent takes many seconds

Eventually = Callable[[Callable[[], bool]], None]

HOSTS = ("127.0.77.11", "127.0.77.12")
TOKEN = "a-token-of-the-tests"
NOBODY = "http://127.0.0.1:9"


def enrol(
    hosts: Sequence[str], options: RemoteOptions, bundle: Bundle, service_url: str = NOBODY, token: str = TOKEN
) -> dict[str, Installed | InfoError]:
    """Install on all hosts, without a service's part in it."""

    def install(host: str) -> Installed:
        with Machine(host, options) as machine:
            return machine.install(bundle, service_url, lambda _name, _address: token)

    return on_hosts(hosts, install)


def failure(results: dict[str, Any], host: str = HOSTS[0]) -> InfoError:
    error = results[host]
    assert isinstance(error, InfoError), error
    assert "\n" not in str(error)
    return error


def pid_of(agents: Path, host: str = HOSTS[0]) -> int:
    return int((agents / host / "agent.pid").read_text())


def settings_of(agents: Path, host: str = HOSTS[0]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((agents / host / "settings.json").read_text())
    return found


def alive(pid: int) -> bool:
    """Whether the process still does anything: a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_secrets_on_the_node_are_its_owner_s_alone(options: RemoteOptions, bundle: Bundle, agents: Path) -> None:
    enrol(HOSTS[:1], options, bundle)
    base = agents / HOSTS[0]

    modes = {name: stat.S_IMODE((base / name).stat().st_mode) for name in ("", "token", "settings.json", "agent.log")}
    assert modes == {"": 0o700, "token": 0o600, "settings.json": 0o600, "agent.log": 0o600}
    assert (base / "token").read_text() == f"{TOKEN}\n"
    assert TOKEN not in (base / "settings.json").read_text()


def test_enrolling_again_starts_the_agent_anew_without_copying(
    options: RemoteOptions, bundle: Bundle, agents: Path
) -> None:
    base = agents / HOSTS[0]
    enrol(HOSTS[:1], options, bundle)
    first, release = pid_of(agents), (base / "current").resolve()
    again = enrol(HOSTS[:1], options, bundle, token="another-token-of-the-tests")

    assert isinstance(again[HOSTS[0]], Installed)
    assert pid_of(agents) != first
    assert not alive(first)
    assert [(base / "current").resolve()] == list((base / "releases").iterdir()) == [release]
    assert (base / "token").read_text() == "another-token-of-the-tests\n"


def test_enrolling_again_mends_files_that_somebody_changed(
    options: RemoteOptions, bundle: Bundle, agents: Path
) -> None:
    script = agents / HOSTS[0] / "current" / "scripts" / "load_1m.sh"
    enrol(HOSTS[:1], options, bundle)
    shipped = script.read_bytes()
    script.write_text("echo 7\n")

    enrol(HOSTS[:1], options, bundle)

    assert script.read_bytes() == shipped


def test_enrolling_again_keeps_what_was_set_unless_told_anew(
    options: RemoteOptions, bundle: Bundle, agents: Path
) -> None:
    def allowed(*directories: str) -> list[str]:
        told = replace(options, allow=directories or None)
        assert isinstance(enrol(HOSTS[:1], told, bundle)[HOSTS[0]], Installed)
        found: list[str] = settings_of(agents)["allow"]
        return found

    assert allowed() == []
    assert allowed("/opt/one") == ["/opt/one"]
    (agents / HOSTS[0] / "settings.json").write_text(json.dumps(settings_of(agents) | {"limit_open_files": 99}))
    assert allowed() == ["/opt/one"]
    assert allowed("/opt/two") == ["/opt/two"]
    assert settings_of(agents)["limit_open_files"] == 99


def test_an_agent_that_cannot_be_reached_is_not_left_running(
    options: RemoteOptions, bundle: Bundle, agents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids: list[int] = []

    def unreachable(*_: object) -> dict[str, object]:
        pids.append(pid_of(agents))
        raise TimeoutError

    monkeypatch.setattr("infosvc.shipping.remote._health", unreachable)
    monkeypatch.setattr("infosvc.shipping.remote.HEALTH_SECONDS", 0.3)

    error = failure(enrol(HOSTS[:1], options, bundle))

    assert isinstance(error, Unreachable)
    assert str(error).endswith("it was stopped")
    assert not alive(pids[0])
    assert sorted(file.name for file in (agents / HOSTS[0]).glob("*") if file.name in ("token", "current")) == []


def test_a_failed_enrolment_of_an_enrolled_node_leaves_its_agent_as_it_was(
    options: RemoteOptions, bundle: Bundle, other_bundle: Bundle, agents: Path
) -> None:
    enrol(HOSTS[:1], options, bundle)
    before = settings_of(agents)
    with socket.create_server((HOSTS[0], 0)) as taken:
        port = taken.getsockname()[1]
        error = failure(enrol(HOSTS[:1], replace(options, agent_port=port), other_bundle, token="never-to-be-used"))

    assert f"{HOSTS[0]}:{port}" in str(error)
    assert settings_of(agents) == before
    assert (agents / HOSTS[0] / "token").read_text() == f"{TOKEN}\n"
    assert (agents / HOSTS[0] / "current").resolve().name.startswith(bundle.version)
    with Machine(HOSTS[0], options) as machine:
        assert machine.push(bundle) == Installed(HOSTS[0], f"{HOSTS[0]}:{options.agent_port}", bundle.version, False)


def test_a_name_that_cannot_be_a_host_s_does_not_stop_the_others(options: RemoteOptions, bundle: Bundle) -> None:
    results = enrol(("127.0.77..13", HOSTS[0]), options, bundle)

    assert "127.0.77..13" in str(failure(results, "127.0.77..13"))
    assert isinstance(results[HOSTS[0]], Installed)


def test_one_host_that_fails_does_not_stop_the_others(options: RemoteOptions, bundle: Bundle) -> None:
    with socket.create_server((HOSTS[0], options.agent_port)):
        results = enrol(HOSTS, options, bundle)

    assert isinstance(failure(results), NotReady)
    assert f"{HOSTS[0]}:{options.agent_port}" in str(failure(results))
    assert isinstance(results[HOSTS[1]], Installed)


def test_a_machine_whose_host_key_is_unknown_is_never_logged_into(
    options: RemoteOptions, agents: Path, bundle: Bundle, tmp_path: Path
) -> None:
    empty = tmp_path / "known_hosts"
    empty.write_text("")
    error = failure(enrol(HOSTS[:1], replace(options, known_hosts=empty), bundle))

    assert isinstance(error, Conflict)
    assert "ssh-keyscan" in str(error)
    assert empty.read_text() == ""
    assert not (agents).exists()


def test_a_machine_that_shows_another_host_key_is_never_logged_into(
    options: RemoteOptions, agents: Path, bundle: Bundle, tmp_path: Path, sshd: Sshd
) -> None:
    other = tmp_path / "known_hosts"
    other.write_text(f"[{HOSTS[0]}]:{sshd.port} {sshd.keygen(tmp_path / 'other')}\n")
    error = failure(enrol(HOSTS[:1], replace(options, known_hosts=other), bundle))

    assert isinstance(error, Conflict)
    assert "another host key" in str(error)
    assert not (agents).exists()


def test_a_key_that_the_machine_does_not_know_is_refused(
    options: RemoteOptions, bundle: Bundle, tmp_path: Path, sshd: Sshd
) -> None:
    sshd.keygen(tmp_path / "stranger")
    options = replace(options, identity=tmp_path / "stranger")
    error = failure(enrol(HOSTS[:1], options, bundle))

    assert isinstance(error, Unauthorized)
    assert "identity" in str(error)


def test_a_key_that_is_none_is_not_taken_for_a_machine_that_is_away(
    options: RemoteOptions, bundle: Bundle, tmp_path: Path
) -> None:
    (tmp_path / "broken").write_text("no key at all")
    error = failure(enrol(HOSTS[:1], replace(options, identity=tmp_path / "broken"), bundle))

    assert isinstance(error, Unauthorized)
    assert "--identity" in str(error) and "sshd" not in str(error)


def test_a_machine_that_does_not_answer_is_unreachable(options: RemoteOptions, bundle: Bundle) -> None:
    error = failure(enrol(["127.0.77.13"], options, bundle), "127.0.77.13")

    assert isinstance(error, Unreachable)
    assert "sshd" in str(error)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"identity": Path("/nowhere/id")}, "/nowhere/id"),
        ({"known_hosts": Path("/nowhere/known_hosts")}, "/nowhere/known_hosts"),
        ({"ssh_config": Path("/nowhere/config")}, "/nowhere/config"),
        ({"allow": ("relative/bin",)}, "relative/bin"),
    ],
)
def test_a_wrong_option_is_named(options: RemoteOptions, bundle: Bundle, changed: dict[str, Any], said: str) -> None:
    error = failure(enrol(HOSTS[:1], replace(options, **changed), bundle))

    assert isinstance(error, InvalidInput)
    assert said in str(error)


def test_a_directory_that_cannot_be_made_is_one_sentence(
    options: RemoteOptions, bundle: Bundle, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    options = replace(options, directory=f"{tmp_path}/file/{{node}}")
    error = failure(enrol(HOSTS[:1], options, bundle))

    assert isinstance(error, NotReady)
    assert f"{tmp_path}/file" in str(error)


def test_a_file_that_arrives_changed_is_never_switched_to(options: RemoteOptions, agents: Path, bundle: Bundle) -> None:
    wrong = replace(bundle, manifest=bundle.manifest | {"scripts/load_1m.sh": "0" * 64})
    error = failure(enrol(HOSTS[:1], options, wrong))

    assert isinstance(error, Conflict)
    assert "scripts/load_1m.sh arrived changed" in str(error)
    assert not (agents / HOSTS[0] / "current").exists()


@pytest.mark.parametrize(
    ("python", "said"),
    [
        (None, "has no python3"),
        ("#!/bin/sh\necho hello\n", "text of its own"),
        ("#!/bin/sh\necho '{\"python\": [3, 8]}'\n", "has python3 3.8"),
    ],
)
def test_a_machine_without_a_fit_python_is_told_what_it_lacks(
    tmp_path: Path, bundle: Bundle, python: str | None, said: str, more_sshd: type[Sshd]
) -> None:
    (tmp_path / "bin").mkdir()
    if python is not None:
        (tmp_path / "bin" / "python3").write_text(python)
        (tmp_path / "bin" / "python3").chmod(0o755)
    (tmp_path / "sshd").mkdir()
    force = f'ForceCommand PATH={tmp_path}/bin /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'
    with more_sshd(tmp_path / "sshd", HOSTS[:1], force) as server:
        error = failure(enrol(HOSTS[:1], server.options(tmp_path / "agents"), bundle))

    assert isinstance(error, NotReady)
    assert said in str(error)


def test_an_agent_that_was_killed_can_be_enrolled_again(
    options: RemoteOptions, agents: Path, bundle: Bundle, eventually: Eventually
) -> None:
    enrol(HOSTS[:1], options, bundle)
    settings, pid = settings_of(agents), pid_of(agents)
    assert (settings["node_name"], settings["host"]) == (HOSTS[0], HOSTS[0])
    os.kill(pid, 9)
    eventually(lambda: not alive(pid))

    assert isinstance(enrol(HOSTS[:1], options, bundle)[HOSTS[0]], Installed)
