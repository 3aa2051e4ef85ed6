"""How the commands for tasks show what they have found."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from rich.console import Console

from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task

PIPE_WIDTH = 200  # wide enough for every table, so that a file or pipe gets one line a row
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def console() -> Console:
    """Where tables go: the terminal, a file or a pipe."""
    return Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def short(number: float | None) -> str:
    """A number with as many digits as one compares, empty for none."""
    return "" if number is None else f"{number:.6g}"


def state_text(task: Task) -> str:
    """How far a task is, in words.

    >>> from infosvc.wire.tasks import TaskState
    >>> state_text(Task("task_0", "maria", "a", TaskSpec(["a"]), TaskState.RUNNING, 1, 1, stop_asked=True))
    'running, asked to stop'
    """
    more = [", asked to stop"] if task.stop_asked and not task.state.is_final else []
    more += [", idle"] if task.idle_since is not None else []
    return "".join([task.state.value, *more])


def gpus_text(spec: TaskSpec) -> str:
    """The GPUs that a task asks for, in words; empty for none.

    >>> gpus_text(TaskSpec(["a"], gpus=2, gpu_model="T4", gpu_capability="7.5"))
    '2 (T4, compute capability 7.5)'
    """
    memory = f"{spec.gpu_memory_mb} MB" if spec.gpu_memory_mb else None
    capability = f"compute capability {spec.gpu_capability}" if spec.gpu_capability else None
    said = ", ".join(one for one in (spec.gpu_model, memory, capability) if one)
    return f"{spec.gpus}{f' ({said})' if said else ''}" if spec.gpus else ""


def print_json(body: Any) -> None:
    """Print it in lines."""
    click.echo(json.dumps(body, indent=1))
