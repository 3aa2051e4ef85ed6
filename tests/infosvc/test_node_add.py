"""`nodewise node add`: what it does with the machines that could be enrolled and those that could not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from infosvc import bundle
from infosvc.cli import node
from infosvc.commands.node import _bundled
from infosvc.errors import InfoError, InvalidInput, NotReady, Unreachable
from infosvc.records import Producer, Scope
from infosvc.remote import Enrolled, RemoteOptions

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving

AUTOSTART = {e.producer.data_name for e in bundle.catalog() if e.autostart and e.producer.scope is Scope.NODE}


@pytest.fixture
def served(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A running service that knows nothing."""
    with serve(sqlite_url) as service:
        yield service


@pytest.fixture
def add(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """add(*WORDS): one run; machines called bad... cannot be reached."""

    def enrol(
        hosts: Sequence[str],
        options: RemoteOptions,
        files: bundle.Bundle,
        service_url: str,
        token: str,
        on_done: Callable[[str, Enrolled | InfoError], None],
    ) -> dict[str, Enrolled | InfoError]:
        assert (service_url, token) == (served.url, "a-token-for-the-tests")
        assert (files.directory / bundle.AGENT).is_file()
        found: dict[str, Enrolled | InfoError] = {}
        for host in hosts:
            good = Enrolled(host, f"127.0.0.1:{options.agent_port}", files.version)
            found[host] = Unreachable(f"{host} does not answer") if host.startswith("bad") else good
            on_done(host, found[host])
        return found

    monkeypatch.setattr("infosvc.remote.enrol", enrol)
    home = tmp_path / "home"
    (home / "service").mkdir(parents=True)
    (home / "service" / "token").write_text("a-token-for-the-tests\n")
    (tmp_path / "ssh_config").write_text("Host elsewhere\n  HostName 192.0.2.1\nHost here\n  HostName 127.0.0.9\n")

    def run(*words: str) -> Result:
        return CliRunner().invoke(node, ["add", "--url", served.url, *words], obj=home)

    return run


def test_an_enrolled_node_runs_what_ships(add: Callable[..., Result], served: Served, tmp_path: Path) -> None:
    done = add("n1", "n2", "n1")
    assert done.exit_code == 0, done.output
    assert [line.split(":")[0] for line in done.output.splitlines()] == ["n1", "n2"]
    assert {item.data_name for item in served.reader.producers()} == {e.producer.data_name for e in bundle.catalog()}
    assert [item.address for item in served.reader.nodes()] == ["127.0.0.1:8410"] * 2
    assert {slot.data_name for slot in served.reader.slots("n2").slots} == AUTOSTART
    assert not list((tmp_path / "home").glob("bundle-*"))


def test_a_machine_that_fails_leaves_the_others_enrolled(add: Callable[..., Result], served: Served) -> None:
    done = add("bad1", "n1")
    assert done.exit_code == 1
    assert "bad1: bad1 does not answer" in done.stderr
    assert [item.node_name for item in served.reader.nodes()] == ["n1"]


def test_a_machine_elsewhere_is_never_told_to_report_to_a_loopback_address(
    add: Callable[..., Result], served: Served, tmp_path: Path
) -> None:
    config = ("-F", str(tmp_path / "ssh_config"))
    refused = add(*config, "here", "elsewhere")
    assert isinstance(refused.exception, InvalidInput)
    assert f"elsewhere cannot reach {served.url}: serve with --host" in str(refused.exception)
    assert served.reader.nodes() == []
    assert add(*config, "here").exit_code == 0


def test_what_is_pushed_needs_a_home_that_can_be_written(add: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "home" / "full").write_text("")
    with pytest.raises(NotReady, match="cannot be written below"), _bundled(tmp_path / "home" / "full"):
        pass


def test_nothing_starts_with_no_start(add: Callable[..., Result], served: Served) -> None:
    assert add("n1", "--no-start", "--port", "9000").exit_code == 0
    assert served.reader.slots("n1").slots == ()
    assert served.reader.nodes()[0].address == "127.0.0.1:9000"


def test_enrolling_again_keeps_what_people_changed(add: Callable[..., Result], served: Served) -> None:
    assert add("n1").exit_code == 0
    name = sorted(AUTOSTART)[0]
    changed = served.client.put_producer(Producer(name, "x", 1))
    served.client.put_slot("n1", name, running=False)
    assert add("n1").exit_code == 0
    assert served.reader.producer(name) == changed
    assert {slot.data_name: slot.running for slot in served.reader.slots("n1").slots}[name] is False
