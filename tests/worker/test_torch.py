"""Debian's PyTorch in the worker's environment: beside the NumPy that MXNet needs, fast, and able to talk."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy
import torch
import torch.distributed


def test_it_stands_beside_the_environments_own_numpy() -> None:
    assert Path(numpy.__file__).is_relative_to(sys.prefix)
    assert torch.from_numpy(numpy.arange(3.0)).sum().item() == 3.0


def test_it_multiplies_with_openblas() -> None:
    torch.ones(64, 64) @ torch.ones(64, 64)

    assert "libopenblas" in Path("/proc/self/maps").read_text()


def test_processes_can_form_groups_with_gloo() -> None:
    assert hasattr(torch.distributed, "ProcessGroupGloo")
