"""`nodewise producer push`: other files for agents that are enrolled, and the way back."""

from __future__ import annotations

import fcntl
import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from infosvc.shipping.bundle import Bundle, build, seal
from infosvc.shipping.remote import Machine, RemoteOptions
from infosvc.wire.errors import Conflict, InvalidInput, NotFound, NotReady, Unreachable
from infosvc.wire.records import Producer, State
from tests.infosvc.shipping.conftest import answers

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served
    from tests.infosvc.shipping.conftest import Hand, Sshd

pytestmark = pytest.mark.timeout(900)  # on a busy machine each start of an agent takes many seconds

Eventually = Callable[[Callable[[], bool]], None]

HOST, OTHER = HOSTS = ("127.0.77.11", "127.0.77.12")


def write_own(directory: Path, name: str, text: str) -> Path:
    """A directory of own files, with one script."""
    (directory / "scripts").mkdir(parents=True, exist_ok=True)
    (directory / "scripts" / name).write_text(text)
    return directory


def releases(agents: Path, host: str = HOST) -> set[str]:
    """The versions that lie on a node."""
    return {release.name.split("-")[0] for release in (agents / host / "releases").iterdir()}


def current(agents: Path, host: str = HOST) -> str:
    """The version that its agent runs."""
    return (agents / host / "current").resolve().name.split("-")[0]


@pytest.fixture
def machine(options: RemoteOptions, bundle: Bundle) -> Callable[[], Machine]:
    """machine(): the first machine, not connected yet, with an agent that reports to nobody."""
    with Machine(HOST, options) as found:
        found.install(bundle, "http://127.0.0.1:9", lambda _name, _address: "a-token-of-the-tests")
    return lambda: Machine(HOST, options)


@pytest.fixture
def broken_bundle(tmp_path: Path) -> Bundle:
    """An agent that ends at once."""
    made = build(tmp_path / "broken")
    (made.directory / "agent.pyz").write_text("import sys\nsys.exit('this agent is no good')\n")
    return seal(made.directory)


@pytest.fixture
def mute_bundle(tmp_path: Path) -> Bundle:
    """An agent that says it has started, and answers nobody."""
    made = build(tmp_path / "mute")
    (made.directory / "agent.pyz").write_text("import sys\nsys.exit(0)\n")
    return seal(made.directory)


def test_own_files_reach_the_nodes_and_their_agents_run_them(
    hand: Hand, served: Served, agents: Path, tmp_path: Path, eventually: Eventually
) -> None:
    assert hand.add(*HOSTS, "--no-start").exit_code == 0
    first = current(agents)
    own = write_own(tmp_path / "own", "answer.sh", "echo 42\n")

    done = hand.push("--files", str(own), "--all")

    assert done.exit_code == 0, done.output
    assert current(agents) == current(agents, OTHER) != first
    assert [line.split()[2] for line in done.stdout.splitlines()] == [current(agents)] * 2
    served.client.put_producer(Producer("answer", "scripts/answer.sh", 1))
    served.client.put_slot(OTHER, "answer", running=True)

    def answered() -> bool:
        return [(d.data_value, d.state) for d in served.reader.data("answer", node=OTHER)] == [("42", State.FRESH)]

    eventually(answered)
    eventually(lambda: {node.agent_version for node in served.reader.nodes()} == {current(agents)})


def test_own_files_below_home_are_pushed_without_asking(hand: Hand, agents: Path) -> None:
    assert hand.add(HOST, "--no-start").exit_code == 0
    write_own(hand.home / "files", "answer.sh", "echo 42\n")

    assert hand.push(HOST).exit_code == 0
    assert (agents / HOST / "current" / "scripts" / "answer.sh").read_text() == "echo 42\n"
    assert "up to date" in hand.push(HOST).stdout


def test_a_name_that_ships_is_refused_unless_it_is_to_be_replaced(hand: Hand, agents: Path, tmp_path: Path) -> None:
    assert hand.add(HOST, "--no-start").exit_code == 0
    first = current(agents)
    own = str(write_own(tmp_path / "own", "load_1m.sh", "echo 7\n"))

    refused = hand.push("--files", own, HOST).exception
    assert isinstance(refused, Conflict)
    assert "scripts/load_1m.sh, which ships" in str(refused)
    assert current(agents) == first

    assert hand.push("--files", own, "--replace", HOST).exit_code == 0
    assert (agents / HOST / "current" / "scripts" / "load_1m.sh").read_text() == "echo 7\n"


def test_a_directory_without_scripts_or_processors_is_refused(hand: Hand, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()

    assert isinstance(hand.push("--files", str(tmp_path / "own"), HOST).exception, InvalidInput)


def test_a_node_that_has_these_files_is_left_as_it_is(
    machine: Callable[[], Machine], bundle: Bundle, agents: Path
) -> None:
    before = {file: file.stat().st_mtime_ns for file in (agents / HOST).rglob("*") if file.name != "agent.log"}
    with machine() as connected:
        assert connected.push(bundle).changed is False
    after = {file: file.stat().st_mtime_ns for file in before}

    assert after == before


def test_an_agent_with_these_files_that_does_not_run_is_started_without_copying(
    machine: Callable[[], Machine], bundle: Bundle, agents: Path, ending: Callable[[Path], None]
) -> None:
    release = (agents / HOST / "current").resolve()
    ending(agents)
    with machine() as connected:
        assert connected.push(bundle).changed
    assert (agents / HOST / "agent.pid").exists()
    assert (agents / HOST / "current").resolve() == release


def test_roll_back_goes_one_step_back_and_then_forward_again(
    machine: Callable[[], Machine], bundle: Bundle, other_bundle: Bundle, agents: Path
) -> None:
    with machine() as connected:
        connected.push(other_bundle)
        assert (current(agents), releases(agents)) == (other_bundle.version, {bundle.version, other_bundle.version})
        assert connected.roll_back().agent_version == current(agents) == bundle.version
        assert connected.roll_back().agent_version == current(agents) == other_bundle.version
        assert releases(agents) == {bundle.version, other_bundle.version}


def test_only_one_release_before_is_kept(
    machine: Callable[[], Machine], other_bundle: Bundle, tmp_path: Path, agents: Path
) -> None:
    third = build(tmp_path / "third", write_own(tmp_path / "own", "answer.sh", "echo 43\n"))
    with machine() as connected:
        connected.push(other_bundle)
        connected.push(third)

        assert releases(agents) == {other_bundle.version, third.version}
        assert connected.roll_back().agent_version == other_bundle.version


def test_a_release_that_lies_there_already_is_switched_to_without_copying(
    machine: Callable[[], Machine], bundle: Bundle, other_bundle: Bundle, agents: Path
) -> None:
    release = (agents / HOST / "current").resolve()
    with machine() as connected:
        connected.push(other_bundle)
        connected.push(bundle)

    assert (agents / HOST / "current").resolve() == release
    assert len(list((agents / HOST / "releases").iterdir())) == 2


def test_without_a_release_before_there_is_no_way_back(machine: Callable[[], Machine]) -> None:
    with machine() as connected, pytest.raises(NotReady, match="there is no release before this one"):
        connected.roll_back()


def test_a_release_whose_files_were_changed_is_never_gone_back_to(
    machine: Callable[[], Machine], other_bundle: Bundle, bundle: Bundle, agents: Path
) -> None:
    script = (agents / HOST / "current").resolve() / "scripts" / "load_1m.sh"
    with machine() as connected:
        connected.push(other_bundle)
        script.write_text("echo 7\n")
        with pytest.raises(NotReady, match="were changed"):
            connected.roll_back()

    assert current(agents) == other_bundle.version


def test_an_agent_that_does_not_start_gives_way_to_the_one_before(
    machine: Callable[[], Machine], bundle: Bundle, broken_bundle: Bundle, agents: Path
) -> None:
    with machine() as connected:
        with pytest.raises(NotReady, match="this agent is no good"):
            connected.push(broken_bundle)

        assert releases(agents) == {current(agents)} == {bundle.version}
        assert connected.push(bundle).changed is False


def test_an_agent_that_does_not_get_well_gives_way_to_the_one_before(
    machine: Callable[[], Machine],
    bundle: Bundle,
    other_bundle: Bundle,
    mute_bundle: Bundle,
    agents: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with machine() as connected:
        connected.push(other_bundle)
        with monkeypatch.context() as impatient, pytest.raises(Unreachable, match="the agent before it runs again"):
            impatient.setattr("infosvc.shipping.remote.HEALTH_SECONDS", 5.0)
            connected.push(mute_bundle)

        assert releases(agents) == {bundle.version, other_bundle.version}
        assert connected.push(other_bundle).changed is False
        assert connected.roll_back().agent_version == bundle.version


def test_two_who_push_to_one_node_do_not_get_in_each_other_s_way(
    machine: Callable[[], Machine],
    bundle: Bundle,
    other_bundle: Bundle,
    agents: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with machine() as first, machine() as second:
        assert first.push(bundle).changed is False
        with monkeypatch.context() as impatient, pytest.raises(NotReady, match="somebody else is pushing there"):
            impatient.setattr("infosvc.shipping.release.OTHERS_SECONDS", 1.0)
            second.push(other_bundle)
    with machine() as second:
        assert second.push(other_bundle).agent_version == current(agents)


def test_a_push_waits_for_one_that_ends_late_and_says_so(
    machine: Callable[[], Machine],
    other_bundle: Bundle,
    agents: Path,
    eventually: Eventually,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As after a push that was cut off, whose process goes on there until the agent has started."""
    with (agents / HOST / "shipping.lock").open() as held, machine() as second, ThreadPoolExecutor() as pool:
        fcntl.flock(held, fcntl.LOCK_EX)
        pushed = pool.submit(second.push, other_bundle)
        eventually(lambda: pushed.done() or "another push is at work there" in caplog.text)
        fcntl.flock(held, fcntl.LOCK_UN)

        assert pushed.result().agent_version == current(agents)
    assert caplog.messages == [f"{HOST}: another push is at work there; waiting up to 60 s"]


def test_a_machine_that_was_never_enrolled_is_left_alone(options: RemoteOptions, bundle: Bundle, agents: Path) -> None:
    with Machine(HOST, options) as machine, pytest.raises(NotFound, match="nodewise node add"):
        machine.push(bundle)

    assert not agents.exists()


def test_the_command_says_what_came_of_each_host(hand: Hand, agents: Path) -> None:
    assert hand.add(*HOSTS, "--no-start").exit_code == 0

    done = hand.push(*HOSTS, "127.0.77.13", "--json")

    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert list(told) == [*HOSTS, "127.0.77.13"]
    assert told[HOST] == {"ok": True, "version": current(agents), "changed": False, "error": None}
    assert told["127.0.77.13"]["version"] is None
    assert "cannot be reached over SSH" in told["127.0.77.13"]["error"]
    assert "no release before" in hand.push("--rollback", HOST).stderr


def test_a_machine_that_hangs_up_is_one_sentence(hand: Hand, sshd: Sshd, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.77.13", sshd.port)) as listener:
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        done = hand.push("--rollback", "127.0.77.13")
        thread.join()

    assert done.exit_code == 1
    assert done.stderr.startswith("127.0.77.13: 127.0.77.13 cannot be reached over SSH")
    assert done.stderr.count("\n") == 1
    assert caplog.text == ""


def test_going_back_needs_no_service(hand: Hand, served: Served, agents: Path, tmp_path: Path) -> None:
    assert hand.add(HOST, "--no-start").exit_code == 0
    first = current(agents)
    assert hand.push("--files", str(write_own(tmp_path / "own", "answer.sh", "echo 42\n")), HOST).exit_code == 0
    served.server.stop()

    assert hand.push("--rollback", HOST).exit_code == 0
    assert current(agents) == first


def test_what_came_of_each_host_is_said_also_when_nothing_can_be_registered(
    hand: Hand, served: Served, agents: Path, tmp_path: Path, eventually: Eventually
) -> None:
    assert hand.add(HOST, "--no-start").exit_code == 0
    where = urlsplit(served.url)
    served.server.stop()
    eventually(lambda: not answers(str(where.hostname), int(where.port or 0)))

    done = hand.push("--files", str(write_own(tmp_path / "own", "answer.sh", "echo 42\n")), HOST, "127.0.77.13")

    assert isinstance(done.exception, Unreachable)
    assert done.stdout.startswith(f"{HOST}: agent {current(agents)} at")
    assert done.stderr.startswith("127.0.77.13: 127.0.77.13 cannot be reached")


@pytest.mark.parametrize("words", [(), ("--all", HOST)])
def test_it_must_be_told_where_to(hand: Hand, words: tuple[str, ...]) -> None:
    assert hand.push(*words).exit_code == 2
