"""What is left of nodewise on a node and on a master that it was taken off."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from infosvc.shipping import on_node
from infosvc.wire.errors import Conflict
from nodewise.__main__ import cli
from tests.recipes.pages import block

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving
    from tests.infosvc.shipping.conftest import Hand

pytestmark = pytest.mark.timeout(900)  # on a busy machine each start of an agent takes many seconds

HOST, OTHER = "127.0.77.11", "127.0.77.12"
TOKEN = "a-token-for-the-tests"

Eventually = Callable[[Callable[[], bool]], None]


def tree(folder: Path) -> set[str]:
    """Every file and folder below."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def uninstall(home: Path, *words: str, answer: str = "") -> Result:
    return CliRunner().invoke(cli, ["--home", str(home), "uninstall", *words], input=answer, catch_exceptions=False)


def processes_below(folder: Path) -> list[str]:
    """The processes that name a file of this folder."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder) in line.read_text() and line.parent.name != str(os.getpid()):
                found.append(line.parent.name)
        except OSError:
            continue
    return found


def test_of_a_node_nothing_is_left_and_the_service_forgets_it(hand: Hand, served: Served, agents: Path) -> None:
    agents.mkdir()
    before = tree(agents)
    assert hand.add(HOST, OTHER, "--no-start").exit_code == 0
    assert len(processes_below(agents)) >= 2
    asked = uninstall(hand.home, HOST, OTHER, *hand._reaching(), answer="n\n")
    assert asked.exit_code == 1
    assert f"{agents}/{HOST}" in asked.output
    assert len(served.reader.nodes()) == 2

    first, _ = block("uninstall").splitlines()
    hosts = [word.replace("worker1", HOST).replace("worker2", OTHER) for word in first.split()[2:]]
    done = uninstall(hand.home, *hosts, *hand._reaching(), answer="y\n")

    assert done.exit_code == 0, done.output
    assert tree(agents) == before
    assert processes_below(agents) == []
    assert served.reader.nodes() == []
    assert f"{HOST}: had no agent there" in uninstall(hand.home, HOST, "--yes", *hand._reaching()).output


def test_an_agent_that_a_supervisor_starts_again_is_left_with_the_remedy(hand: Hand, agents: Path) -> None:
    assert hand.add(HOST, "--no-start").exit_code == 0
    (agents / HOST / "supervised").touch()
    done = uninstall(hand.home, HOST, "--yes", *hand._reaching())

    assert done.exit_code == 1
    assert "ansible/uninstall.yml" in done.stderr
    assert (agents / HOST / "token").exists()


def test_of_a_folder_below_home_the_empty_folders_above_go_and_what_is_not_ours_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(on_node, "_held", [])
    for node in ("n1", "n2"):
        place = tmp_path / ".nodewise" / "agents" / node
        (place / "releases" / "r1").mkdir(parents=True)
        (place / "token").write_text("x")
        (place / "current").symlink_to(place / "releases" / "r1")
    (place / "notes").write_text("of somebody")

    assert on_node.remove(".nodewise/agents/n1") == on_node.remove(".nodewise/agents/n2") == {"removed": True}
    assert tree(tmp_path / ".nodewise") == {"agents", "agents/n2", "agents/n2/notes"}
    assert on_node.remove(".") == on_node.remove("/") == {"removed": False}
    (place / "notes").unlink()
    (place / "token").write_text("x")
    assert on_node.remove(".nodewise/agents/n2") == {"removed": True}
    assert tree(tmp_path) == set()


def test_a_node_without_room_for_a_process_is_not_called_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    def switch(**_: object) -> dict[str, object]:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setitem(on_node.VERBS, "switch", switch)

    assert on_node.answer('["switch", {}]').keys() == {"error"}


def test_of_a_master_nothing_is_left_once_its_service_has_ended(tmp_path: Path, serve: Serving) -> None:
    home = tmp_path / "home"
    before = tree(tmp_path)
    with serve(f"sqlite:///{home}/service/infosvc.db") as service:
        (home / "service" / "token").write_text(TOKEN)
        (home / "cluster" / "conf").mkdir(parents=True)
        (home / "files" / "scripts").mkdir(parents=True)
        service.client.put_node("n1", "127.0.0.1:9")
        with pytest.raises(Conflict, match=r"infosvc\.db runs: end it first"):
            uninstall(home, "--yes")
        assert (home / "service" / "token").exists()
    asked = uninstall(home, answer="n\n")
    assert asked.exit_code == 1
    assert all(str(home / part) in asked.output for part in ("service", "cluster", "files"))
    assert (home / "service" / "infosvc.db").exists()

    done = uninstall(home, "--yes")

    assert done.exit_code == 0, done.output
    assert tree(tmp_path) == before
    assert "nothing of nodewise" in uninstall(home, "--yes").output


def test_a_file_of_somebody_else_in_the_home_stays_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "service").mkdir()
    (tmp_path / "thesis.tex").touch()

    assert "thesis.tex" in uninstall(tmp_path, "--yes").output
    assert tree(tmp_path) == {"thesis.tex"}


def test_the_agent_of_a_removed_node_leaves_no_token(
    hand: Hand, served: Served, agents: Path, eventually: Eventually
) -> None:
    assert hand.add(HOST, "--no-start").exit_code == 0
    assert (agents / HOST / "token").exists()
    served.client.delete_node(HOST)

    eventually(lambda: not (agents / HOST / "token").exists())
