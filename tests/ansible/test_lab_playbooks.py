"""How the lab's tests run playbooks; the machines are played."""

from __future__ import annotations

import os
import subprocess
from types import SimpleNamespace

import pytest

import lab
from tests.lab import playbooks


def test_no_machine_is_held_back_while_a_playbook_runs_also_if_it_was_switched_on_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = {"master": 1.0, "second": 0.4}
    during: list[dict[str, float]] = []

    def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        during.append(dict(limits))
        return subprocess.CompletedProcess(argv, 0, "", "")

    monkeypatch.setattr(lab, "machines", lambda: [SimpleNamespace(name=name) for name in limits])
    monkeypatch.setattr(lab, "limit", limits.__setitem__)
    monkeypatch.setattr(subprocess, "run", run)

    playbooks.play("site.yml")

    assert during == [dict.fromkeys(limits, os.cpu_count())]
