"""Shows that PyTorch of an environment runs on this machine's card by its CDI file, and not without it.

    python3 -m bench.gpu > gpu.json

It needs a card of NVIDIA, a Python that has PyTorch with CUDA, Python 3.11 or newer for itself, and what a node needs
(docs/environments.md); no Hadoop, and nothing to install of nodewise's. It packs the PyTorch that it finds into a blob,
without any file of the driver; describes the driver in a CDI file; computes on the card in a box with both; and looks
how a box is refused when the CDI file is gone, or names a library that is gone.

It ends with 0 when all is as it has to be, with 1 when something is not, and with 2 when this machine cannot show it.
"""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.gpu import driver as drivers
from bench.gpu.box import REFUSED, Box, run_step, run_without
from bench.gpu.lacking import NotRun, find_lacking
from bench.gpu.packing import DRIVER_FILE, find_python, list_blob, pack
from environments.errors import EnvError

STEP = Path(__file__).with_name("step.py")


def main() -> int:
    """Print one JSON object; what goes on stands on stderr."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the folder goes
    asked = _ask()
    try:
        if lacking := find_lacking():
            raise NotRun("; ".join(lacking))
        with TemporaryDirectory(prefix="nodewise-gpu-", dir=asked.folder) as folder:
            record = _show(asked, Path(folder))
    except (NotRun, EnvError) as error:
        print(f"Not run: {error}", file=sys.stderr)
        return 2
    print(json.dumps(record, indent=1))
    for one in record["wrong"]:
        print(f"Error: {one}", file=sys.stderr)
    return 1 if record["wrong"] else 0


def _ask() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", type=Path, help="The Python that has the package; else the first that is found.")
    parser.add_argument("--package", default="torch", help="What is packed, with all that it needs.")
    parser.add_argument(
        "--program", type=Path, default=STEP, help="What runs in the box, and prints what step.py does."
    )
    parser.add_argument("--device", default="nvidia.com/gpu=all", help="As CDI names it.")
    parser.add_argument("--folder", type=Path, help="Where there is room for what is packed; else the folder of /tmp.")
    asked = parser.parse_args()
    if not asked.program.is_file():
        parser.error(f"--program: {asked.program} is not a file")
    if asked.folder and not asked.folder.is_dir():
        parser.error(f"--folder: {asked.folder} is not a folder")
    return asked


def _show(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    driver = drivers.describe(asked.device, folder / "cdi")
    _say(f"{driver.told_by} tells of {len(driver.edits.mounts)} files and {len(driver.edits.nodes)} device files")
    python = find_python(asked.package, asked.python)
    _say(f"packing {asked.package} of {python}")
    began = time.monotonic()
    packed = pack(python, [asked.package, "numpy"], folder)
    seconds = time.monotonic() - began
    _say(f"{packed.blob.name}: {packed.blob.stat().st_size:,} bytes after {seconds:.1f} s")
    inside = [name for name in list_blob(packed.blob) if DRIVER_FILE.fullmatch(Path(name).name)]
    (folder / "work").mkdir()
    box = Box(python, packed.blob, asked.device, folder / "work")
    step, wrong = run_step(box, asked.program.read_text(), driver)
    _say("ran in the box" if step else "did not run in the box")
    refused = run_without(box, driver, folder)
    wrong += [f"the blob has {name}, a file of the driver" for name in inside]
    wrong += [f"a box {what} was not refused: {said}" for what, (code, said) in refused.items() if code != REFUSED]
    return {
        "kernel": platform.release(),
        "packages": packed.versions,
        "left_out": packed.left_out,
        "blob": {"name": packed.blob.name, "bytes": packed.blob.stat().st_size, "seconds": seconds},
        "driver": {"told_by": driver.told_by, "digest": driver.digest, "reasons": driver.reasons},
        "step": step,
        "refused": {what: said for what, (_, said) in refused.items()},
        "wrong": wrong,
    }


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
