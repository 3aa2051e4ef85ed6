"""What a program that trains is told: by a file that is for it alone, and once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hadoop.installation import ROOT
from learning.errors import LearningError
from learning.lead.lead import Alone
from learning.member.surroundings import SYNC_VARIABLE, VARIABLE, find, write


@pytest.fixture
def told(tmp_path: Path) -> dict[str, str]:
    """The variables of a member."""
    return tell(tmp_path)


def tell(tmp_path: Path, sync: str | None = None) -> dict[str, str]:
    (tmp_path / "checkpoints").mkdir()
    return write(
        tmp_path / "member.json",
        address_file=tmp_path / "address",
        token="a token",
        process="a",
        host="127.0.0.1",
        checkpoints=tmp_path / "checkpoints",
        sync=sync,
    )


def test_a_program_finds_what_it_was_told(told: dict[str, str]) -> None:
    found = find(told)

    assert (found.lead.process, found.lead.host) == ("a", "127.0.0.1")
    assert found.checkpoints is not None and found.checkpoints.last == 0


@pytest.mark.parametrize("sync", [None, "local:4"])
def test_how_often_members_average_is_told_where_it_is_not_the_programs_choice(
    tmp_path: Path, sync: str | None
) -> None:
    assert find(tell(tmp_path, sync)).sync == sync


def test_who_starts_a_program_by_hand_may_say_how_often_members_average() -> None:
    assert find({SYNC_VARIABLE: "auto"}).sync == "auto"
    assert find({SYNC_VARIABLE: ""}).sync is None


def test_who_is_told_nothing_trains_alone() -> None:
    found = find({})

    assert isinstance(found.lead, Alone)
    assert found.checkpoints is None


def test_a_process_that_the_program_starts_is_not_the_same_member(
    told: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, told[VARIABLE])
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    program = "import os; from learning.member.surroundings import find; print(find(os.environ).lead.process)"

    find(os.environ)
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert child.stdout == "alone\n"


def test_the_variable_is_removed_even_when_its_file_is_wrong(tmp_path: Path) -> None:
    environment = {VARIABLE: str(tmp_path / "nothing")}

    with pytest.raises(LearningError, match=r"which does not tell how to train.*: unset it to train in one process"):
        find(environment)

    assert not environment


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_use_is_refused(told: dict[str, str], mode: int) -> None:
    Path(told[VARIABLE]).chmod(mode)

    with pytest.raises(LearningError, match=f"its mode 0{mode:o} lets others use it: make its mode 0600"):
        find(told)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"address_file": 1}'])
def test_a_file_that_tells_something_else_is_refused(told: dict[str, str], content: str) -> None:
    Path(told[VARIABLE]).write_text(content)

    with pytest.raises(LearningError, match="which does not tell how to train"):
        find(told)


def test_it_is_written_for_its_user_alone(told: dict[str, str]) -> None:
    assert Path(told[VARIABLE]).stat().st_mode & 0o777 == 0o600
