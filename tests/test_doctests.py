"""Examples in docstrings give what they say."""

from __future__ import annotations

import doctest
import re
from importlib import import_module

import pytest

from tests.rooms import ROOMS, ROOT

OF_WORKERS = ("cv2", "hdfs_native", "mxnet", "onnx", "onnxruntime", "simplejpeg", "torch")
"""Packages that only the worker's environment has."""


def modules_with_examples() -> list[str]:
    files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py")) if "target" not in file.parts]
    having = [file for file in files if re.search(r"^\s*>>> ", file.read_text(), re.MULTILINE)]
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in having]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings_are_true(name: str) -> None:
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in OF_WORKERS:
            raise
        pytest.skip(f"{name} needs {error.name} of the worker's environment")

    ran = doctest.testmod(module)

    assert not ran.failed
