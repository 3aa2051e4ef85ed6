"""A worker as a process of its own, whose engine is caught by images of certain greys, and whose HDFS is a folder.

python -m tests.worker.trapped worker.json FOLDER
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from jobs.engines.description import Description, ImageInput
from jobs.engines.network import Network
from jobs.engines.preparation_file import PreparationFile
from jobs.images.preparation import MEAN, STD
from jobs.images.tensors import ImageArrays, OutputTensor
from jobs.worker import master, reading
from jobs.worker.__main__ import main

KILLS, EXITS, HANGS, RAISES, SLOW = 10, 20, 30, 40, 50
"""Greys; every other one is an image."""
CLASSES = 256


class Folder:
    """A folder in the place of HDFS, which cannot be opened once there is a file "closed" in it.

    The first read of a file never returns if another one is called the same in the folder "silent".
    """

    def __init__(self, root: Path) -> None:
        if (root / "closed").exists():
            raise OSError("no route to HDFS\nnor a way")
        self._root = root

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        with suppress(FileNotFoundError):
            (self._root / "silent" / path.lstrip("/")).unlink()
            time.sleep(3600)
        content = (self._root / path.lstrip("/")).read_bytes()
        return content if length is None else content[offset : offset + length]

    def exists(self, path: str) -> bool:
        return (self._root / path.lstrip("/")).exists()


def note(what: str, greys: np.ndarray) -> None:
    """For the test: who did what when, in the order of the file."""
    with (Path(sys.argv[2]) / "trace").open("a") as trace:
        trace.write(f"{what} {os.getpid()} {' '.join(map(str, greys))}\n")


class Trap:
    """The class of an image is its grey. Engines of other names than `trap` do not load, or end every process."""

    def __init__(self, name: str) -> None:
        self._name = name

    def load(self, network: Network, given: PreparationFile, batch: int) -> Description:
        if self._name == "unloadable":
            raise ValueError("cat.params does not fit")
        if self._name == "closed":
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # who looks for the application master
            (Path(sys.argv[2]) / "closed").touch()
        return Description(ImageInput(224, 224), (OutputTensor("grey", "float32", (CLASSES,)),), is_probability=True)

    def infer(self, images: np.ndarray) -> list[ImageArrays]:
        greys = np.rint((images[:, 0, 0, 0] * STD[0] + MEAN[0]) * 255).astype(int)
        note("begin", greys)
        if KILLS in greys or self._name == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        if EXITS in greys:
            os._exit(3)
        if HANGS in greys:
            time.sleep(3600)
        if RAISES in greys:
            raise RuntimeError("the network fell over")
        if SLOW in greys:
            time.sleep(0.3)
        note("end", greys)
        return [np.eye(CLASSES, dtype=np.float32)[greys] * np.float32(0.5)]


if __name__ == "__main__":
    # The application master of the tests gives a lease once: on a busy machine its answer may come late.
    master.TIMEOUT_SECONDS = 120.0
    reading.STALLED_SECONDS = float(os.environ.get("STALLED_SECONDS", reading.STALLED_SECONDS))
    sys.exit(main(sys.argv[1], os.environ, lambda: Folder(Path(sys.argv[2])), Trap))
