"""Jars are pinned by hash as Python packages are: what is not locked is not run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from hadoop.client.jars import JARS

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "requirements"


def check(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "scripts" / "check-jars", *words], capture_output=True, text=True)


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    """Two jars and their lock beside them."""
    folder = tmp_path / "lib"
    folder.mkdir()
    for name in ("a-1.jar", "b-2.jar"):
        (folder / name).write_text(name)
    assert check("--write", folder, tmp_path / "lock").returncode == 0
    return folder


def test_the_jars_of_this_checkout_are_the_locked_ones() -> None:
    assert check(JARS, LOCKS / "hadoop.sha256").stderr == ""


def test_jars_that_are_as_locked_pass(jars: Path) -> None:
    assert check(jars, jars.parent / "lock").returncode == 0


def test_a_jar_that_was_changed_is_refused_by_name(jars: Path) -> None:
    (jars / "a-1.jar").write_text("changed")

    done = check(jars, jars.parent / "lock")

    assert done.returncode == 1
    assert "a-1.jar" in done.stderr
    assert "b-2.jar" not in done.stderr


def test_a_jar_that_is_missing_or_that_nobody_locked_is_refused(jars: Path) -> None:
    (jars / "b-2.jar").rename(jars / "c-3.jar")

    done = check(jars, jars.parent / "lock")

    assert done.returncode == 1
    assert "b-2.jar" in done.stderr
    assert "c-3.jar" in done.stderr


def test_set_up_takes_no_jar_without_its_checksum_and_checks_each_folder() -> None:
    script = (ROOT / "scripts" / "setup").read_text()

    assert re.findall(r"\bmvn -.*", script) == [call for call in re.findall(r"\bmvn -.*", script) if " -C " in call]
    assert script.count(" requirements/hadoop.sha256") == script.count(" requirements/yarn-plugin.sha256") == 1


def test_locks_name_a_hash_for_each_jar_and_nothing_else() -> None:
    for lock in ("hadoop.sha256", "yarn-plugin.sha256"):
        lines = (LOCKS / lock).read_text().splitlines()
        assert len(lines) > 100
        assert all(re.fullmatch(r"[0-9a-f]{64}  [\w.+-]+\.jar", line) for line in lines)
