"""A program that takes cards before it begins holds them until it has ended, whatever starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from boxes.box import BoxError
from boxes.gpus.cards import Wanted
from boxes.gpus.taking import take_cards
from boxes.showing import CDI_FOLDERS
from environments.squash import squash
from tests.boxes.played_gpus import PlayedGpus, uuid

ROOT = Path(__file__).resolve().parents[2]
SEES = "import os, sys; print(os.environ['CUDA_VISIBLE_DEVICES'], *sys.argv[1:], flush=True); sys.stdin.read()"


@pytest.fixture
def gpus(gpus: PlayedGpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedGpus:
    """The same, where programs find this checkout, and no CDI file."""
    monkeypatch.setenv(CDI_FOLDERS, str(tmp_path / "cdi"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return gpus


def start(wanted: Wanted, *words: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "boxes.gpus", json.dumps(asdict(wanted)), *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def first_lines(program: subprocess.Popen[str]) -> list[str]:
    assert program.stdout
    return [program.stdout.readline(), program.stdout.readline()]


def assert_held(*numbers: int) -> None:
    """Of two cards these are held, and no other."""
    with pytest.raises(BoxError) as refused, take_cards(Wanted(2), seconds=0):
        pass
    assert [number for number in (0, 1) if f"a task or job has GPU {number}" in str(refused.value)] == list(numbers)


def assert_free() -> None:
    with take_cards(Wanted(2), seconds=60) as mine:
        assert len(mine.cards) == 2


def test_a_program_has_its_card_until_it_has_ended(gpus: PlayedGpus) -> None:
    program = start(Wanted(1), "--", sys.executable, "-c", SEES, "a word")

    assert first_lines(program) == ["GPUs: 1 (Tesla T4)\n", f"{uuid(1)} a word\n"]
    assert_held(1)
    program.communicate(timeout=60)
    assert program.returncode == 0
    assert_free()


def test_one_that_is_killed_in_an_environment_gives_its_cards_back(gpus: PlayedGpus, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "sees.py").write_text(SEES)
    squash(tmp_path / "tree", tmp_path / "part.sqfs")
    (tmp_path / "cdi").mkdir(mode=0o755)
    edits = {"deviceNodes": [{"path": "/dev/vendor0", "hostPath": "/dev/zero"}], "env": ["CARD=vendor"]}
    devices = [{"name": uuid(number), "containerEdits": edits} for number in (0, 1)]
    body = {"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": devices}
    (tmp_path / "cdi" / "cards.json").write_text(json.dumps(body))
    script = 'test -c /dev/vendor0 && exec python3 /opt/env/sees.py "$CARD"'

    program = start(Wanted(1), f"/opt/env={tmp_path / 'part.sqfs'}", "--", "sh", "-c", script)

    assert first_lines(program) == ["GPUs: 1 (Tesla T4)\n", f"{uuid(1)} vendor\n"]
    assert_held(1)
    program.kill()
    program.communicate(timeout=60)
    assert_free()


def test_cards_that_the_machine_does_not_have_are_refused_in_a_sentence(gpus: PlayedGpus) -> None:
    program = start(Wanted(1, model="H100"), "--", "true")

    _, said = program.communicate(timeout=60)

    assert program.returncode == 125
    assert said.startswith("none of its 2 GPUs will do, and 1 is asked for: GPU 0, Tesla T4, is not a H100: ask for")
    assert_free()
