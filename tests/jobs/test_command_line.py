"""What YARN's two shells make of a command: exactly our argv."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hadoop.client.yarn import command_line
from jobs.application.logs import parse_started


@pytest.mark.parametrize("word", ["plain", "two words", "$HOME", "`id`", 'a "quote"', "it's", "back\\slash", "$i;x|y&"])
def test_a_word_survives_both_shells(word: str, tmp_path: Path) -> None:
    line = command_line(["printf", "%s", word]).replace("<LOG_DIR>", str(tmp_path))
    script = tmp_path / "launch_container.sh"
    script.write_text(f'exec /bin/bash -c "{line}"\n')

    subprocess.run(["bash", str(script)], check=True)

    assert (tmp_path / "stdout").read_text() == word


def test_containers_are_found_in_the_application_master_s_output() -> None:
    text = "x\nstarted container_17_0001_01_000002 at 127.0.1.11:8042\nstarted nothing\n"

    assert parse_started(text, "application_17_0001") == [("container_17_0001_01_000002", "127.0.1.11:8042")]
