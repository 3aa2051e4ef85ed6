"""`nodewise job train` and `nodewise job quantize`: weights of one's own, made here by the worker's Python."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jobs.application.package import ROOT, WORKER_PYTHON, WORKER_PYTHON_VARIABLE
from jobs.commands.options import progress_console, show
from jobs.errors import JobError

Told = Callable[[dict[str, Any]], None]
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
worker_python = click.option(
    "--worker-python",
    envvar=WORKER_PYTHON_VARIABLE,
    default=str(WORKER_PYTHON),
    help="Python with the engines on this machine [default: what scripts/setup made].",
)


@click.command()
@click.argument("directory", type=FOLDER)
@click.option("--weights", type=FILE, required=True, help="File for the parameters; its name should end in .params.")
@click.option("--int8/--no-int8", default=True, show_default=True, help="Make the quantized model too.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same images and seed make the same weights.")
@click.option("--steps", type=click.IntRange(1), help="How long to train [default: minutes on two cores].")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@worker_python
def train(
    directory: Path, weights: Path, int8: bool, seed: int, steps: int | None, as_json: bool, worker_python: str
) -> None:
    """Teach AlexNet the classes of the images in DIRECTORY, as its labels.tsv gives them.

    Beside the weights it writes the names of the classes (.classes.txt), what it measured on images that were not used
    for training (.json), and the network in 8 bits (.int8.onnx). If that names other classes than the float32 network
    does, it is not written, and the command says so.

    \b
    Example:
      nodewise images make pictures -n 400
      nodewise job train pictures --weights photos.params
      nodewise job submit ... --weights photos.params --labels photos.classes.txt
    """
    call = ["train", str(directory), f"--weights={weights}", f"--seed={seed}"]
    call += [f"--int8={_beside(weights, '.int8.onnx')}"] if int8 else []
    call += [f"--steps={steps}"] if steps else []
    made = _run(worker_python, call)
    made["labels"] = str(_beside(weights, ".classes.txt"))
    _write(Path(made["labels"]), "".join(f"{name}\n" for name in made["classes"]))
    _write(_beside(weights, ".json"), json.dumps(made, indent=1) + "\n")
    right, of = f"{made['accuracy']:.1%}", made["held_out"]
    said = [f"{weights}: right about {right} of {of} images that it had not seen; classes in {made['labels']}"]
    show(as_json, made, "\n".join(said + ([_quantized_line(made)] if int8 else [])))


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
    made = _run(worker_python, [*call, f"--int8={_beside(source, '.int8.onnx')}"])
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


def _run(python: str, call: list[str]) -> dict[str, Any]:
    """What the other Python made, while a bar on stderr shows how far it is; JobError with its sentence."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=progress_console) as bar:
        task = bar.add_task("starting", total=None)

        def show_step(line: dict[str, Any]) -> None:
            loss = f", loss {line['loss']:.2f}" if "loss" in line else ""
            bar.update(task, description=line["doing"] + loss, completed=line["step"], total=line["of"])

        for line in _lines(python, call):
            if "refused" in line:
                raise JobError(line["refused"])
            if "done" in line:
                made: dict[str, Any] = line["done"]
                return made
            show_step(line)
    raise AssertionError("a process that ends well has said what it made")


def _lines(python: str, call: list[str]) -> Iterator[dict[str, Any]]:
    """Each line that it says; it ends with us, whatever happens here."""
    threads = {"OMP_NUM_THREADS": str(os.cpu_count() or 1), "OMP_WAIT_POLICY": "passive"}
    environment = threads | dict(os.environ) | {"PYTHONPATH": str(ROOT)}
    command = [python, "-W", "ignore", "-m", "jobs.training", *call]
    with TemporaryFile("w+") as complaints:
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, text=True, env=environment)
        except OSError as error:
            raise JobError(f"{python} cannot be started ({error.strerror})", remedy="name a --worker-python") from None
        with process:
            try:
                yield from map(json.loads, process.stdout or ())
            finally:
                process.kill()
        complaints.seek(0)
        last = (complaints.read().strip().splitlines() or ["it said nothing"])[-1]
    raise JobError(f"{python} ended before it was done (status {process.returncode}): {last}")
