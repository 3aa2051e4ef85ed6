"""`python -m jobs.training train|quantize ...`, in the worker's environment; tells how it goes in lines of JSON.

{"doing": "training", "step": 3, "of": 320, "loss": 1.9}
{"done": {...}}      what was made
{"refused": "..."}   one sentence, exit status 1
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from jobs.engines.network import USUAL, network_named
from jobs.errors import JobError
from jobs.training import in_8_bits, labelled_images, writing
from jobs.training.quantize import CALIBRATION, check_count
from jobs.training.train import STEPS, describe, train


def main(arguments: list[str]) -> int:
    """Exit status."""
    cv2.setNumThreads(1)
    asked = _parser().parse_args(arguments)
    try:
        _say(done=_train(asked) if asked.doing == "train" else _quantize(asked))
    except (JobError, ValueError) as error:
        _say(refused=str(error))
    else:
        return 0
    return 1


def _train(asked: argparse.Namespace) -> dict[str, Any]:
    begun = time.monotonic()
    learned, held = labelled_images.split(labelled_images.read_labelled(asked.folder), asked.seed)
    if asked.int8:
        check_count(len(learned.files) + len(held.files), ": add images, or train with --no-int8")
        writing.check(asked.int8)

    def on_step(step: int, of: int, loss: float) -> None:
        _say(doing="training", step=step, of=of, loss=round(loss, 4))

    with writing.open_part(asked.weights) as file:
        trained = train(network_named(USUAL), learned, held, asked.seed, asked.steps, on_step)
        trained.net.save_parameters(str(file))
    made = describe(asked.weights, trained.by_class, len(learned.files), learned.classes) | {
        "seed": asked.seed,
        "steps": asked.steps,
        "seconds": round(time.monotonic() - begun, 1),
    }
    if not asked.int8:
        return made
    files = _shuffle(learned.files, asked.seed)
    judging = files[:CALIBRATION] + held.files + files[CALIBRATION:]
    return made | {"int8": in_8_bits.beside(asked.weights, asked.int8, judging, _say_compared)}


def _quantize(asked: argparse.Namespace) -> dict[str, Any]:
    files = _shuffle(labelled_images.find_files(asked.folder), asked.seed)
    return {"int8": in_8_bits.make(asked.model, asked.weights, asked.int8, files, _say_compared)}


def _say_compared(step: int, of: int) -> None:
    _say(doing="comparing", step=step, of=of)


def _shuffle(files: list[Path], seed: int) -> list[Path]:
    return [files[at] for at in np.random.default_rng(seed).permutation(len(files))]


def _say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jobs.training")
    doings = parser.add_subparsers(dest="doing", required=True)
    for name in ("train", "quantize"):
        one = doings.add_parser(name)
        one.add_argument("folder", type=Path)
        one.add_argument("--weights", type=Path, required=name == "train")
        one.add_argument("--int8", type=Path, required=name == "quantize")
        one.add_argument("--seed", type=int, default=1)
    doings.choices["quantize"].add_argument("--model")
    doings.choices["train"].add_argument("--steps", type=int, default=STEPS)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
