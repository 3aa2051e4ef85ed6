"""When the lab's tests have to pass again: what they depend on is watched, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab import loaded, passed

ROOT = Path(__file__).resolve().parents[2]
LOADED = ("infosvc/wire/records.py", "jobs/reports/report.html.j2")
ROLE = "ansible/roles/agent/tasks/main.yml"
SCRIPTS = ("scripts/lab", "scripts/payload", "scripts/setup", "hadoop/pom.xml")
STANDS_ON = ("pyproject.toml", "tests/conftest.py", "tests/recipes/pages.py")
TEST = 'said = block("on-the-master")\n'
PAGE = "# A page\n\n<!-- recipe: on-the-master -->\n```sh\n{}\n```\n\nWords.\n"


@pytest.fixture(autouse=True)
def one_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the cycle of the small checkouts."""
    monkeypatch.setattr(passed, "CYCLES", {"cluster": "tests/lab"})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small checkout in which the lab's tests have just passed."""
    root = tmp_path / "checkout"
    texts = dict.fromkeys(
        [*LOADED, *STANDS_ON, ROLE, *SCRIPTS, "infosvc/other.py", "requirements/service.txt"], "first\n"
    )
    for name, text in {**texts, "tests/lab/test_it.py": TEST, "README.md": PAGE.format("nodewise job")}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "ansible" / "lab").mkdir()
    (root / ".gitignore").write_text("/ansible/payload/\n__pycache__/\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    passed.renew("cluster", LOADED, passed.snapshot(root), root)
    return root


def test_what_never_passed_is_due(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    assert passed.due(tmp_path) == [passed.Due("cluster", "")]


@pytest.mark.parametrize("beginning", passed.INPUTS)
def test_all_that_every_cycle_depends_on_is_there(beginning: str) -> None:
    assert any(name.startswith(beginning) for name in passed.snapshot())


@pytest.mark.parametrize(
    ("file", "at_least"),
    [("lab/test_recipes.py", 4), ("secure_lab/test_kerberos.py", 2), ("secure_lab/test_failover.py", 2)],
)
def test_the_recipes_that_the_lab_runs_are_found(file: str, at_least: int) -> None:
    names = set(re.findall(r'\bblock\("([a-z0-9-]+)"\)', (ROOT / "tests" / file).read_text()))

    assert {f"recipe {name}" for name in names} <= passed.snapshot().keys()
    assert len(names) >= at_least


def test_after_a_pass_nothing_is_due_and_the_file_can_be_read(checkout: Path) -> None:
    assert passed.due(checkout) == []
    (entry,) = passed.read(checkout).values()
    assert entry["files"] == sorted(LOADED)
    assert entry["date"].startswith("20")


@pytest.mark.parametrize(
    "name",
    [
        ROLE,
        "infosvc/wire/records.py",
        "jobs/reports/report.html.j2",
        *SCRIPTS,
        "requirements/service.txt",
        "tests/lab/test_it.py",
        *STANDS_ON,
    ],
)
def test_a_change_of_what_the_tests_depend_on_makes_them_due(checkout: Path, name: str) -> None:
    before = (checkout / name).read_text()
    (checkout / name).write_text(f"{before}# second\n")
    assert [one.cycle for one in passed.due(checkout)] == ["cluster"]

    (checkout / name).write_text(before)
    assert passed.due(checkout) == []
    (checkout / name).unlink()
    assert [one.cycle for one in passed.due(checkout)] == ["cluster"]


def test_a_new_file_of_the_playbook_and_a_recipe_that_the_tests_run_make_them_due(checkout: Path) -> None:
    (checkout / "README.md").write_text(PAGE.format("nodewise job list"))
    assert passed.due(checkout)
    (checkout / "README.md").write_text(PAGE.format("nodewise job") + "Other words.\n")
    assert not passed.due(checkout)
    (checkout / "ansible" / "roles" / "agent" / "new.yml").write_text("new\n")
    assert passed.due(checkout)


def test_what_the_machines_never_read_and_what_git_ignores_changes_nothing(checkout: Path) -> None:
    (checkout / "infosvc" / "other.py").write_text("second\n")
    (checkout / "ansible" / "payload").mkdir()
    (checkout / "ansible" / "payload" / "payload.json").write_text("{}\n")

    assert passed.due(checkout) == []


def test_of_two_cycles_the_one_whose_pass_is_older_comes_first(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passed, "CYCLES", {"cluster": "tests/lab", "second": "tests/second"})
    assert passed.due(checkout) == [], "it joins by its first pass"
    time.sleep(1.1)  # the moments of passes are whole seconds
    passed.renew("second", LOADED[:1], passed.snapshot(checkout), checkout)
    assert passed.due(checkout) == []

    (checkout / LOADED[1]).write_text("second\n")
    assert [one.cycle for one in passed.due(checkout)] == ["cluster"]
    (checkout / LOADED[0]).write_text("second\n")
    assert [one.cycle for one in passed.due(checkout)] == ["cluster", "second"]


def test_a_file_that_changes_while_the_tests_run_makes_them_due(checkout: Path) -> None:
    before = passed.snapshot(checkout)
    (checkout / ROLE).write_text("second\n")
    passed.renew("cluster", LOADED, before, checkout)

    assert passed.due(checkout)


def found_read(releases: str) -> set[str]:
    """What a machine has read of its releases."""
    script = ["bash", "-c", loaded.script(releases)]
    return loaded.was_read(subprocess.run(script, capture_output=True, text=True, check=True).stdout)


def test_what_was_read_of_an_unpacked_release_is_found(tmp_path: Path) -> None:
    """As on a machine: packed with bytecode that is checked against its source, unpacked by tar, and then used."""
    code, release = tmp_path / "code", tmp_path / "release"
    (code / "room").mkdir(parents=True)
    release.mkdir()
    for name in ("__init__", "used", "unused"):
        (code / "room" / f"{name}.py").write_text("")
    for name in ("page.html", "other.html"):
        (code / "room" / name).write_text("words")
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "."], cwd=code, check=True
    )
    subprocess.run(["tar", "--create", "--mtime=@0", "--file", "../code.tar", "."], cwd=code, check=True)
    unpack = ["tar", "--extract", "--no-same-owner", "--file", str(tmp_path / "code.tar"), "--directory", str(release)]
    subprocess.run(unpack, check=True)
    assert found_read(f"{tmp_path}/rel*/") == set()
    time.sleep(0.05)  # clocks of file systems move in steps

    program = "import room.used; open('room/page.html').read()"
    subprocess.run([sys.executable, "-P", "-c", program], cwd=release, env={"PYTHONPATH": "."}, check=True)

    assert found_read(f"{tmp_path}/rel*/") == {"room/__init__.py", "room/used.py", "room/page.html"}
    assert found_read(f"{tmp_path}/none*/") == set(), "a worker has no release"


@pytest.fixture
def whole_check(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`.ci/run` of the small checkout: the real file decides; what would start machines only notes in `called` that.

    Where the file `takes` is, it takes so many seconds instead.
    """
    for name in ("lint", "test"):
        (checkout / "scripts" / name).write_text("#!/bin/sh\n")
    called, takes = checkout.parent / "called", checkout.parent / "takes"
    lab = (
        f'[ "$1" = due ] && exec {sys.executable} -m lab due\n'
        f'[ "$1" = down ] || [ ! -e {takes} ] || exec sleep $(cat {takes})\necho "$@" >> {called}\n'
    )
    (checkout / "scripts" / "lab").write_text(f"#!/bin/sh\nexport PYTHONPATH={checkout}/ansible\n{lab}")
    shutil.copytree(
        ROOT / "ansible" / "lab", checkout / "ansible" / "lab", dirs_exist_ok=True, ignore=lambda *_: ["passed.json"]
    )
    (checkout / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", checkout / ".ci")
    for script in (checkout / "scripts").iterdir():
        script.chmod(0o755)
    monkeypatch.undo()
    for cycle in passed.CYCLES:
        passed.renew(cycle, LOADED, passed.snapshot(checkout), checkout)
    return checkout / ".ci" / "run"


def check(whole_check: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """How the whole check ended, and what it had the lab do."""
    done = subprocess.run(
        [whole_check, *arguments], capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, timeout=120
    )
    called = whole_check.parents[2] / "called"
    return done, called.read_text().splitlines() if called.exists() else []


def test_the_whole_check_runs_no_lab_while_nothing_has_changed(whole_check: Path) -> None:
    done, called = check(whole_check)

    assert (done.returncode, called) == (0, []), done.stderr


def test_the_whole_check_runs_the_lab_when_it_is_due(checkout: Path, whole_check: Path) -> None:
    (checkout / ROLE).write_text("second\n")

    done, called = check(whole_check)

    assert (done.returncode, called) == (0, ["test --cycle cluster -m not long", "down --purge"]), done.stderr
    assert "the tests of secure wait for the next run" in done.stderr


def test_the_whole_check_ends_the_lab_when_its_time_is_over(checkout: Path, whole_check: Path) -> None:
    (checkout / ROLE).write_text("second\n")
    (checkout.parent / "takes").write_text("100")

    done, called = check(whole_check, "3")

    assert (done.returncode, called) == (124, ["down --purge"]), done.stderr
    assert "run 'scripts/lab test --cycle cluster' alone, and commit passed.json" in done.stderr


def test_what_is_read_again_beside_the_service_is_what_it_runs() -> None:
    script = f"import sys, {loaded.MODULES}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)

    assert {"infosvc.core.service", "infosvc.state.writer", "jobs.dashboard.routes"} <= set(done.stdout.split())
