"""`nodewise job train` and `nodewise job quantize`: weights of one's own, made here by the worker's Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from jobs.application.package import WORKER_PYTHON, WORKER_PYTHON_VARIABLE
from jobs.commands import other_python
from jobs.commands.job.train_on_members import HDFS, Learning, check_alone, members_options, train_on_members
from jobs.commands.options import show
from jobs.errors import JobError

TRAINING = "jobs.training"
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
worker_python = click.option(
    "--worker-python",
    envvar=WORKER_PYTHON_VARIABLE,
    default=str(WORKER_PYTHON),
    help="Python with the engines on this machine [default: that of this installation].",
)


class Images(click.Path):
    """A folder of this machine, or one of HDFS, which is looked for later."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As text."""
        return value if str(value).startswith(HDFS) else str(super().convert(value, param, ctx))


@click.command()
@click.argument("directory", type=Images(exists=True, file_okay=False))
@click.option("--weights", type=FILE, required=True, help="File for the parameters; its name should end in .params.")
@click.option("--int8/--no-int8", default=True, show_default=True, help="Make the quantized model too.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same images and seed make the same weights.")
@click.option("--steps", type=click.IntRange(1), help="How long to train [default: minutes on two cores].")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@worker_python
@members_options
@click.pass_obj
def train(
    home: Path,
    /,
    directory: str,
    weights: Path,
    int8: bool,
    seed: int,
    steps: int | None,
    as_json: bool,
    worker_python: str,
    labels: Path | None,
    **options: Any,
) -> None:
    """Teach AlexNet the classes of the images in DIRECTORY, as its labels.tsv gives them.

    Beside the weights it writes the names of the classes (.classes.txt), what it measured on images that were not used
    for training (.json), and the network in 8 bits (.int8.onnx). If that names other classes than the float32 network
    does, it is not written, and the command says so.

    With --members, DIRECTORY is a folder of HDFS, and a training run on several nodes does the same: see
    docs/training.md. Its --output keeps the state, from which the same line goes on.

    \b
    Example:
      nodewise images make pictures -n 400
      nodewise job train pictures --weights photos.params
      nodewise job submit ... --weights photos.params --labels photos.classes.txt
      nodewise job train hdfs:///data/images --members 2 --output hdfs:///out/alexnet --weights photos.params
    """
    check_alone(directory, options["members"])
    eight = _beside(weights, ".int8.onnx") if int8 else None
    if options["members"] is None:
        made = _train_alone(worker_python, directory, weights, eight, seed, steps)
    else:
        what = Learning(images=directory, labels=labels, weights=weights, int8=eight, seed=seed, steps=steps)
        made = train_on_members(home, what, worker_python, options)
    _tell(made, weights, as_json)


def _train_alone(
    worker_python: str, directory: str, weights: Path, int8: Path | None, seed: int, steps: int | None
) -> dict[str, Any]:
    call = ["train", directory, f"--weights={weights}", f"--seed={seed}"]
    call += [f"--int8={int8}"] if int8 else []
    call += [f"--steps={steps}"] if steps else []
    return other_python.run(worker_python, TRAINING, call)


def _tell(made: dict[str, Any], weights: Path, as_json: bool) -> None:
    """Write what was made beside the weights, and print it."""
    made["labels"] = str(_beside(weights, ".classes.txt"))
    _write(Path(made["labels"]), "".join(f"{name}\n" for name in made["classes"]))
    _write(_beside(weights, ".json"), json.dumps(made, indent=1) + "\n")
    right, of = f"{made['accuracy']:.1%}", made["held_out"]
    said = [f"{weights}: right about {right} of {of} images that it had not seen; classes in {made['labels']}"]
    show(as_json, made, "\n".join(said + ([_quantized_line(made)] if "int8" in made else [])))


@click.command()
@click.argument("directory", type=FOLDER)
@click.option("--weights", type=FILE, help="Gluon parameters of alexnet.")
@click.option("--model", type=FILE, help="Any other classifier, as an ONNX file.")
@click.option("--seed", type=int, default=1, show_default=True, help="Chooses the images that calibrate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@worker_python
def quantize(
    directory: Path, weights: Path | None, model: Path | None, seed: int, as_json: bool, worker_python: str
) -> None:
    """Make a classifier's model in 8 bits, for the engine onnx.

    It calibrates the model with some images of DIRECTORY, and keeps it only if it agrees with the exact one on 99 %
    of the others.

    \b
    Examples:
      nodewise job quantize pictures --weights photos.params
      nodewise job quantize pictures --model resnet.onnx
    """
    source = weights or model
    if source is None or (weights and model):
        raise click.UsageError("give either --weights or --model")
    named = f"--weights={weights}" if weights else f"--model={model}"
    call = ["quantize", str(directory), named, f"--seed={seed}"]
    made = other_python.run(worker_python, TRAINING, [*call, f"--int8={_beside(source, '.int8.onnx')}"])
    show(as_json, made, _quantized_line(made))


def _beside(weights: Path, ending: str) -> Path:
    return weights.with_name(weights.name.removesuffix(".params").removesuffix(".onnx") + ending)


def _quantized_line(made: dict[str, Any]) -> str:
    int8 = made["int8"]
    if int8["weights"] is None:
        return f"no model in 8 bits: {int8['note']}"
    return f"{int8['weights']}: agrees with float32 on {int8['agreement']:.1%} of {int8['pictures']} images"


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as error:
        raise JobError(f"{file} cannot be written: {error.strerror}") from None
