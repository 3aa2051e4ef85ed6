"""`nodewise completion`, tried in real shells."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
TRY = """
source <(nodewise completion bash)
complete -p nodewise >/dev/null || exit 3
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_nodewise_completion nodewise
printf '%s\\n' "${COMPREPLY[@]}"
"""

MODULES = """
import sys
sys.argv = ["nodewise"]
from nodewise.__main__ import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def completed(*words: str) -> list[str]:
    """What bash offers for the last of the words."""
    done = subprocess.run(
        ["bash", "--norc", "-c", TRY, "bash", *words], capture_output=True, text=True, timeout=60, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("jo",), ["job"]),
        (("job", "su"), ["submit"]),
        (("node", ""), ["add", "list", "rm"]),
        (("--home", "/somewhere", "data", "wa"), ["watch"]),
        (("top", "--rev"), ["--reverse"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
    ],
)
def test_bash_completes_groups_commands_options_and_choices(words: tuple[str, ...], offered: list[str]) -> None:
    found = completed("nodewise", *words)

    assert sorted(found) == sorted(offered)


def test_bash_completes_after_a_real_tab(tmp_path: Path) -> None:
    """In an interactive bash, whose line is finished by the key and then run."""
    (tmp_path / "rc").write_text('source <(nodewise completion bash)\nPS1="ready> "\n')
    done = subprocess.run(
        ["script", "-qec", f"bash --noprofile --rcfile {tmp_path / 'rc'} -i", "/dev/null"],
        input="nodewise comp\tba\t | grep -c _nodewise_completion_setup\nexit\n",
        capture_output=True,
        text=True,
        timeout=60,
        env={**ENVIRONMENT, "TERM": "dumb"},
    )
    assert "nodewise completion bash  | grep" in done.stdout
    assert "\n2" in done.stdout.replace("\r", "")


JOB_GROUP = "jobs.commands.job.job_group"


def imported(*words: str) -> set[str]:
    """The modules that completing the last of the words imports."""
    done = subprocess.run(
        [sys.executable, "-c", MODULES],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={
            **ENVIRONMENT,
            "_NODEWISE_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(["nodewise", *words]),
            "COMP_CWORD": str(len(words)),
        },
    )
    assert done.stdout.startswith("plain,")
    return set(done.stderr.split())


def test_completing_imports_only_the_group_that_it_is_in() -> None:
    every_group = imported("")
    assert "nodewise.front_door" in every_group
    assert not every_group & {"infosvc.commands.node", "hadoop.local.command", JOB_GROUP, "rich.console"}
    one_group = imported("node", "li")
    assert "infosvc.commands.node" in one_group
    assert not one_group & {"infosvc.commands.data", "hadoop.local.command", JOB_GROUP, "paramiko"}
    one_command = imported("job", "kill", "--u")
    assert JOB_GROUP in one_command
    assert not one_command & {"jobs.commands.job.job_submit", "jobs.commands.job.job_train", "ortools"}


@pytest.mark.parametrize(("shell", "line"), [("zsh", "compdef _nodewise_completion nodewise"), ("fish", "complete")])
def test_other_shells_get_scripts_of_their_own(shell: str, line: str) -> None:
    done = subprocess.run(
        ["nodewise", "completion", shell], capture_output=True, text=True, timeout=60, check=True, env=ENVIRONMENT
    )

    assert line in done.stdout
    assert f"_NODEWISE_COMPLETE={shell}_complete" in done.stdout


def test_a_shell_that_is_not_known_is_refused_with_those_that_are() -> None:
    done = subprocess.run(
        ["nodewise", "completion", "tcsh"], capture_output=True, text=True, timeout=60, env=ENVIRONMENT
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "'bash', 'zsh', 'fish'" in done.stderr
