"""A model that a task left in its output, fetched for commands that take `--model`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from infosvc.wire.client import InfoClient
from jobs.errors import JobError

TASK = "task:"
ONNX, SYMBOL = ".onnx", "-symbol.json"


def fetch_model(
    model: str | None, ask: Callable[[], InfoClient], keep: Callable[[AbstractContextManager[str]], str]
) -> str | None:
    """The file that `task:ID` or `task:ID/PATH` means, with those beside it of its name; any other model as it is.

    `keep` enters the folder that gets it, and leaves it when it is not needed any more. JobError when the task left no
    model, or several; InfoError.
    """
    if model is None or not model.startswith(TASK):
        return model
    task_id, _, name = model.removeprefix(TASK).partition("/")
    client = ask()
    files = [one.path for one in client.task_outputs(task_id).files]
    name = name or _only_model(task_id, files)
    folder = Path(keep(TemporaryDirectory(prefix="nodewise-model-")))
    for path in {name, *_beside(name, files)}:
        client.get_output(task_id, path, folder / PurePosixPath(path).name)
    return str(folder / PurePosixPath(name).name)


def _only_model(task_id: str, files: Collection[str]) -> str:
    found = [path for path in files if path.endswith((ONNX, SYMBOL))]
    if len(found) == 1:
        return found[0]
    said = f"{len(found)} models: {', '.join(found[:5])}" if found else f"no file *{ONNX} or *{SYMBOL}"
    raise JobError(
        f"{task_id} has left {said}", remedy="name one as task:ID/PATH; `nodewise task outputs ls` lists all"
    )


def _beside(name: str, files: Collection[str]) -> list[str]:
    """The files of the same folder that belong to a model: photos.toml or photos-0000.params beside photos.onnx."""
    place = PurePosixPath(name)
    stem = place.name.removesuffix(SYMBOL).removesuffix(ONNX)
    near = [path for path in files if PurePosixPath(path).parent == place.parent]
    return [path for path in near if PurePosixPath(path).name.startswith((f"{stem}.toml", f"{stem}-"))]
