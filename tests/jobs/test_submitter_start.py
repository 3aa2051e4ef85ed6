"""The submitter before there is a cluster that it can use."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from hadoop.client import jvm
from hadoop.client.jars import JARS
from jobs.commands import submitter

NONE: Any = None


class Paused(Exception):
    """It has said what it waits for."""


def test_site_files_that_a_playbook_still_writes_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pause(seconds: float) -> None:
        raise Paused

    (tmp_path / "core-site.xml").write_text("<configuration/>")
    started: list[Any] = []
    monkeypatch.setattr(jvm, "start", started.append)
    monkeypatch.setattr(time, "sleep", pause)
    hadoop = {"hadoop_conf": tmp_path, "jars": JARS, "user": None}

    with pytest.raises(Paused):
        submitter._work(tmp_path, hadoop, NONE, NONE)

    assert started == [], "it would keep Hadoop's defaults for what it does not find"
    assert f"there is no cluster yet: {tmp_path}/yarn-site.xml does not exist" in capsys.readouterr().err
