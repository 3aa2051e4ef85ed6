"""`python -m jobs.kinds.train.alexnet.this_machine check|finish ...`: what comes before a run, and after it.

It runs in the workers' environment, and tells how it goes in lines of JSON as jobs.training does.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

try:
    import torch  # noqa: F401  first: PyTorch cannot multiply matrices when MXNet was imported before it
except ModuleNotFoundError:
    from hadoop.installation import Part, remedy

    refused = f"{sys.executable} has no PyTorch, which --members needs here and on the nodes: {remedy(Part.TORCH)}"
    print(json.dumps({"refused": refused}))
    sys.exit(1)

import cv2
import numpy as np

from jobs.errors import JobError
from jobs.kinds.train.alexnet.images_to_learn import ImagesToLearn
from jobs.kinds.train.alexnet.learner import CROP, new_learner
from jobs.training import in_8_bits, writing
from jobs.training.quantize import CALIBRATION, MOST_IMAGES, check_count
from jobs.training.train import BATCH, STEPS, describe, judge
from jobs.training_data.files import HdfsFiles
from learning.errors import LearningError
from learning.state.checkpoints import is_whole, steps_of
from learning.state.framed import unframe


def main(arguments: list[str]) -> int:
    """Exit status."""
    cv2.setNumThreads(1)
    asked = _parser().parse_args(arguments)
    try:
        images = ImagesToLearn(asked.folder, asked.labels, asked.seed, CROP)
        _say(done=_check(asked, images) if asked.doing == "check" else _finish(asked, images))
    except (JobError, LearningError, ValueError) as error:
        _say(refused=str(error))
        return 1
    return 0


def _check(asked: argparse.Namespace, images: ImagesToLearn) -> dict[str, Any]:
    """JobError for what `finish` could not do."""
    writing.check(asked.weights)
    if asked.int8:
        check_count(len(images.all), ": add images, or train with --no-int8")
        writing.check(asked.int8)
    return {"learned": len(images.learned), "held_out": len(images.held)}


def _finish(asked: argparse.Namespace, images: ImagesToLearn) -> dict[str, Any]:
    """Write the weights that the run has found, judge them, and make the model in 8 bits."""
    net, learner = new_learner(len(images.classes), asked.seed, asked.steps)
    learner.load(_state(asked.output, asked.steps))
    with writing.open_part(asked.weights) as file:
        net.save_parameters(str(file))
    held = (images.all.batch_of(images.held[at : at + BATCH])[0] for at in range(0, len(images.held), BATCH))
    by_class = judge(net, held, images.all.labels[images.held], images.classes)
    made = describe(asked.weights, by_class, len(images.learned), images.classes)
    made |= {"seed": asked.seed, "steps": asked.steps}
    return made | ({"int8": _beside(asked, images)} if asked.int8 else {})


def _state(output: str, steps: int) -> bytes:
    """The learner's, after the last step."""
    files = HdfsFiles()
    found = [one.path for one in files.find(f"{output}/checkpoints") if steps_of(Path(one.path).name) == steps]
    for path in found:
        content = files.read(path, 0, None)
        if is_whole(Path(path).name, content):
            return bytes(unframe(content)[1])
    raise JobError(
        f"{output} has no whole checkpoint after {steps} steps, so the run was stopped before its end",
        remedy=f"let it go on, and then give this line again: nodewise train resume hdfs://{output} --wait",
    )


def _beside(asked: argparse.Namespace, images: ImagesToLearn) -> dict[str, Any]:
    """As of images on this machine, where those are laid that are needed."""
    learned = np.random.default_rng(asked.seed).permutation(images.learned).tolist()
    judging = [*learned[:CALIBRATION], *images.held, *learned[CALIBRATION:]][: CALIBRATION + MOST_IMAGES]
    with TemporaryDirectory() as folder:
        files = _lay(images, judging, Path(folder))
        return in_8_bits.beside(asked.weights, asked.int8, files, _say_compared)


def _lay(images: ImagesToLearn, numbers: Sequence[int], folder: Path) -> list[Path]:
    files = [folder / str(number) for number in numbers]
    for first in range(0, len(numbers), BATCH):
        contents = images.all.stored(numbers[first : first + BATCH])
        for file, content in zip(files[first : first + BATCH], contents, strict=True):
            file.write_bytes(content)
    return files


def _say_compared(step: int, of: int) -> None:
    _say(doing="comparing", step=step, of=of)


def _say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jobs.kinds.train.alexnet.this_machine")
    doings = parser.add_subparsers(dest="doing", required=True)
    for name in ("check", "finish"):
        one = doings.add_parser(name)
        one.add_argument("folder")
        one.add_argument("--labels")
        one.add_argument("--weights", type=Path, required=True)
        one.add_argument("--int8", type=Path)
        one.add_argument("--seed", type=int, required=True)
        one.add_argument("--steps", type=int, default=STEPS)
    doings.choices["finish"].add_argument("--output", required=True)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
