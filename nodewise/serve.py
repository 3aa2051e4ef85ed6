"""`nodewise serve`: the service's own command, which here also answers what the dashboard asks of HDFS and jobs."""

from __future__ import annotations

from typing import Any

import click

from infosvc.commands.serve import serve as service


@click.pass_context
def _serve(ctx: click.Context, /, **given: Any) -> None:
    from nodewise.board import board_calls  # what it needs of Flask and of jobs, `serve --help` need not pay for

    ctx.invoke(service, others=[board_calls(ctx.obj)], **given)


serve = click.Command("serve", callback=_serve, params=service.params, help=service.help)
