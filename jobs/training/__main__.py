"""`python -m jobs.training train|quantize ...`, in the worker's environment; tells how it goes in lines of JSON.

{"doing": "training", "step": 3, "of": 320, "loss": 1.9}
{"done": {...}}      what was made
{"refused": "..."}   one sentence, exit status 1
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from jobs.engines import onnx_file, onnx_graph
from jobs.engines.network import USUAL, choose, network_named, preparation_beside
from jobs.engines.parameters import parameters
from jobs.engines.preparation_file import PreparationFile
from jobs.errors import JobError
from jobs.training import labelled_images, writing
from jobs.training.labelled_images import Labelled
from jobs.training.quantize import CALIBRATION, check_count, quantize
from jobs.training.train import STEPS, train


def main(arguments: list[str]) -> int:
    """Exit status."""
    cv2.setNumThreads(1)
    asked = _parser().parse_args(arguments)
    try:
        _say(done=_train(asked) if asked.doing == "train" else _quantize_files_of(asked))
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
    made = {
        "weights": str(asked.weights),
        "accuracy": trained.accuracy,
        "held_out": len(held.files),
        "learned": len(learned.files),
        "by_class": trained.by_class,
        "classes": learned.classes,
        "seed": asked.seed,
        "steps": asked.steps,
        "seconds": round(time.monotonic() - begun, 1),
    }
    return made | ({"int8": _beside(asked, learned, held)} if asked.int8 else {})


def _beside(asked: argparse.Namespace, learned: Labelled, held: Labelled) -> dict[str, Any]:
    """The model in 8 bits of what was trained; where there can be none, a note why: the weights are good without."""
    asked.int8.unlink(missing_ok=True)  # it belonged to other weights
    files = _shuffle(learned.files, asked.seed)
    try:
        return _quantize(asked, files[:CALIBRATION] + held.files + files[CALIBRATION:])
    except JobError as error:
        return {"weights": None, "note": str(error)}


def _quantize_files_of(asked: argparse.Namespace) -> dict[str, Any]:
    return {"int8": _quantize(asked, _shuffle(labelled_images.find_files(asked.folder), asked.seed))}


def _quantize(asked: argparse.Namespace, files: list[Path]) -> dict[str, Any]:
    """The first of the files calibrate, the others judge."""
    network = choose("onnx", getattr(asked, "model", None), asked.weights)
    if network.graph is None:
        layers = network_named(network.model)
        model = onnx_graph.model(layers, parameters(layers, asked.weights))
    else:
        model = onnx_file.read(network.graph)
    given = PreparationFile.read(network.preparation)
    made = quantize(model, given, files, asked.int8, lambda step, of: _say(doing="comparing", step=step, of=of))
    if network.preparation:
        shutil.copyfile(network.preparation, preparation_beside(asked.int8))
    return {"weights": str(made.file), "agreement": made.gate.agreement, "pictures": made.gate.images}


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
