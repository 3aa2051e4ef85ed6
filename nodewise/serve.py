"""`nodewise serve`: the service's own command, which here also answers what the dashboard asks of HDFS and jobs.

With --submit it also runs the submitter.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infosvc.commands.serve import serve as service
from infosvc.wire.errors import InvalidInput

if TYPE_CHECKING:
    from infosvc.http.api.call_group import CallGroup

SUBMIT = (
    click.Option(
        ["--submit"],
        is_flag=True,
        help="Also run the submitter, which hands tasks to YARN as this user; it needs Hadoop's site files "
        "(HADOOP_CONF_DIR, or those of `nodewise cluster up`).",
    ),
    click.Option(
        ["--submit-url"],
        callback=lambda _context, _option, url: _check_alone(url),
        help="Where the submitter and jobs reach this service  [default: where it listens].",
        metavar="URL",
    ),
)

OPEN_PATHS = click.Option(
    ["--open-path", "open_paths"],
    multiple=True,
    callback=lambda _context, _option, paths: tuple(map(_check_path, paths)),
    help="Folder of HDFS that every caller sees, as this user sees it, where Hadoop has Kerberos; may stand several "
    "times.  [none]",
    metavar="FOLDER",
)


def _check_path(path: str) -> str:
    """A folder as HDFS calls it."""
    from jobs.dashboard.sources.hdfs import plain_path  # which `serve --help` need not pay for

    try:
        return plain_path(path)
    except InvalidInput as error:
        raise click.BadParameter(str(error)) from error


def _check_alone(url: str | None) -> str | None:
    """The submitter asks its own service only: if that one stands still, the submitter beside the other one goes on."""
    if url and "," in url:
        raise click.BadParameter(f"{url!r} names several services; give the address of this one, and not the other's.")
    return url


@click.pass_context
def _serve(
    ctx: click.Context, /, submit: bool, submit_url: str | None, open_paths: tuple[str, ...], **given: Any
) -> None:
    def board() -> list[CallGroup]:
        from nodewise.board import board_calls  # what it needs of Flask and of jobs, `serve --help` need not pay for

        return [board_calls(ctx.obj, open_paths)]

    def start_submitter(url: str, token_file: Path) -> None:
        from nodewise.submitting import SubmitterProcess

        SubmitterProcess(ctx.obj, submit_url or url, token_file, given["tls_cert"], given["shared_with"]).start()

    beside = {"beside": start_submitter} if submit else {}
    ctx.invoke(service, others=board, **beside, **given)


serve = click.Command("serve", callback=_serve, params=[*service.params, *SUBMIT, OPEN_PATHS], help=service.help)
