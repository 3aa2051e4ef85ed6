"""`nodewise notebook`: Jupyter in a task, reached by a port of this machine."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
from click.core import ParameterSource

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Conflict, NotFound
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskState
from infosvc.wire.terminal_text import plain
from infosvc.wire.tunnel.traffic import NOBODY
from jobs.commands.asking.task_sending import send
from jobs.commands.asking.task_waiting import follow, sentence
from jobs.commands.made_options import collect, made_options
from jobs.commands.notebook.passage import Passage
from jobs.commands.service_options import service_options

SOCKET, TOKEN = ".notebook.sock", "JUPYTER_TOKEN"
START = ("sh", "-c", 'HOME="$PWD" exec "$@"', "sh")
"""Before the program: what Jupyter and its kernels keep at home belongs into the task's folder."""
NOT_FOUND = 127
"""The exit code of what was to start a program that is not there."""
LOOK_SECONDS = 0.5
SOON_SECONDS = 2.0
"""Until it is said that Jupyter does not answer yet."""
ANSWER_SECONDS = 75.0
"""How long it may take for its first answer; a runner that does not come is noticed before that."""
IDLE_LOOK_SECONDS = 60
"""Between Jupyter's looks at what is idle."""
PIECE_BYTES = 1 << 12
PATHS = {"lab": "lab", "notebook": "tree", "server": ""}
OF_ANY = ("task_id", "port", "url", "token_file", "ca_file")
"""Parameters that are not only for a new notebook."""


@click.command()
@click.argument("task_id", required=False)
@made_options(TaskSpec, without=("argv", "array", "at_once", "files", "commit", "changes", "after", "move"))
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder whose files lie beside the notebooks, at most 256 MiB.",
)
@click.option("--app", type=click.Choice(list(PATHS)), default="lab", show_default=True, help="Which Jupyter.")
@click.option("--port", type=click.IntRange(0, 65535), default=8888, show_default=True, help="Of 127.0.0.1; 0: any.")
@click.option(
    "--idle-minutes",
    type=click.IntRange(1),
    default=60,
    show_default=True,
    help="Kernels that compute nothing and silent terminals end after so long, then Jupyter unless a page is shown.",
)
@service_options
@click.pass_obj
def notebook(
    home: Path,
    /,
    service: ServiceAddress,
    task_id: str | None,
    folder: Path | None,
    app: str,
    port: int,
    idle_minutes: int,
    **given: Any,
) -> None:
    """Run Jupyter in a task, and reach it by a port of this machine; or reach one that runs already.

    It has the box and the limits of the task and ends with it. Only who may stop the task reaches it, through the
    information service. Its environment or image must have Jupyter. Ctrl-C leaves it running.

    \b
    Example:
      nodewise notebook --env torch --memory 2g --folder src
      nodewise notebook task_0f1e2d3c4b5a6978
    """
    if task_id:
        _check_options(task_id)
    client = service.client(home)
    with closing(_listen(port)) as listener:
        task = client.task(task_id) if task_id else _submit(client, folder, app, idle_minutes, given)
        if (which := _app(task)) is None:
            raise click.ClickException(f"{task.task_id} is no notebook: `nodewise notebook` without it runs one")
        _say(f"{task.task_id} {task.state}: `nodewise task stop {task.task_id}` ends it")
        try:
            with Passage(client, task.task_id, SOCKET, _say) as passage:
                _wait_for_jupyter(client, task, passage)
                address = f"http://127.0.0.1:{listener.getsockname()[1]}/{PATHS[which]}"
                click.echo(f"{address}?token={quote(task.spec.variables[TOKEN], safe='')}")
                threading.Thread(target=passage.serve, args=(listener,), name="notebook", daemon=True).start()
                ended = follow(client, task.task_id)
        except KeyboardInterrupt:
            _say(f"it goes on: `nodewise notebook {task.task_id}` reaches it again")
            return
        _say(sentence(ended))
        sys.exit(0 if ended.state in (TaskState.SUCCEEDED, TaskState.STOPPED) else 1)


def _say(line: str) -> None:
    click.echo(plain(line), err=True)


def _check_options(task_id: str) -> None:
    """UsageError for an option that does nothing to a notebook that is there."""
    context = click.get_current_context()
    for one in context.command.params:
        name = one.name or ""
        if name not in OF_ANY and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{one.opts[0]} is for a new notebook, and {task_id} is there already: leave it out")


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise click.ClickException(f"port {port} cannot be used ({error.strerror}): name another with --port") from None


def _submit(client: InfoClient, folder: Path | None, app: str, idle_minutes: int, given: dict[str, Any]) -> Task:
    argv = (
        *(*START, "jupyter", app, "--no-browser", "--allow-root"),
        *(f"--ServerApp.sock={SOCKET}", "--ServerApp.sock_mode=0600"),
        f"--ServerApp.shutdown_no_activity_timeout={60 * idle_minutes}",
        f"--MappingKernelManager.cull_idle_timeout={60 * idle_minutes}",
        f"--MappingKernelManager.cull_interval={IDLE_LOOK_SECONDS}",
        "--MappingKernelManager.cull_connected=True",  # else a page that was left open keeps it for ever
        f"--TerminalManager.cull_inactive_timeout={60 * idle_minutes}",
        f"--TerminalManager.cull_interval={IDLE_LOOK_SECONDS}",
    )
    given["name"] = given["name"] or "notebook"
    given["variables"] = (*given["variables"], (TOKEN, secrets.token_hex(16)))
    return client.submit_task(collect(TaskSpec, given, argv=argv, **send(client, folder)))


def _app(task: Task) -> str | None:
    """Which Jupyter a task runs, None for one that `nodewise notebook` has not asked for."""
    start, words = task.spec.argv[: len(START)], task.spec.argv[len(START) :]
    is_notebook = tuple(start) == START and len(words) > 1 and words[1] in PATHS and TOKEN in task.spec.variables
    return words[1] if is_notebook else None


def _wait_for_jupyter(client: InfoClient, task: Task, passage: Passage) -> None:
    """Until it answers; ClickException when the task has ended, or its runner does not come."""
    _wait_for_program(client, task)
    with _saying_soon("waiting for Jupyter"):
        while (why := _why_silent(passage)) is not None:
            time.sleep(LOOK_SECONDS)
            _wait_for_program(client, task)
            if why == NOBODY["why"]:
                raise click.ClickException(why)


def _wait_for_program(client: InfoClient, task: Task) -> None:
    """Until it runs; ClickException when it has ended."""
    said = ""
    while (now := client.task(task.task_id)).state is not TaskState.RUNNING:
        if now.state.is_final:
            hint = ": its environment or image has no Jupyter" if now.exit_code == NOT_FOUND else ""
            raise click.ClickException(plain(sentence(now) + hint))
        if said != sentence(now):
            said = sentence(now)
            _say(f"waiting for its program: {said}")
        time.sleep(LOOK_SECONDS)


@contextmanager
def _saying_soon(line: str) -> Iterator[None]:
    """Say this once, if the block takes a while."""
    saying = threading.Timer(SOON_SECONDS, _say, (line,))
    saying.daemon = True
    saying.start()
    try:
        yield
    finally:
        saying.cancel()


def _why_silent(passage: Passage) -> str | None:
    """What keeps Jupyter from answering, as far as it is known; None when it answers."""
    ours, its = socket.socketpair()
    with ThreadPoolExecutor(1) as pool:
        with ours:
            led = pool.submit(passage.lead, its)
            if _answers(ours):
                return None
        try:
            return led.result()
        except (Conflict, NotFound) as error:
            if error.field in ("task_id", "tunnel_id"):  # its program has just ended, and may run again
                return ""
            raise


def _answers(connection: socket.socket) -> bool:
    with suppress(OSError):
        connection.settimeout(ANSWER_SECONDS)
        connection.sendall(b"GET /api HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        return connection.recv(PIECE_BYTES).startswith(b"HTTP/1.")
    return False
