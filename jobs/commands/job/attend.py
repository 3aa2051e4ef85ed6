"""A job before a person's eyes, who may leave it, end it, or have pressed Ctrl-C by mistake."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol

import click
from rich.console import Console

from hadoop.client.yarn import Application
from jobs.application.following import Following, Watch, ask, follow
from jobs.application.status import JobStatus
from jobs.commands.job.bars import view
from jobs.errors import JobError

Ask = Callable[[Application], JobStatus | None]
"""Has a job's application master say how far it is."""
INTERRUPTED = 130
"""Exit status of a program that Ctrl-C ended: 128 and the signal's number."""


class Session(Following, Protocol):
    """The part of a session with YARN that is needed to follow a job and to end it."""

    def kill(self, application_id: str) -> None: ...


def attend(session: Session, job_id: str, console: Console, asked: Ask = ask) -> Application:
    """Follow one's own job to its end, JobError when it fails; after Ctrl-C ask, and leave with exit status 130.

    Who cannot be asked, or presses Ctrl-C again, leaves the job running.
    """
    watch, shown = Watch(asked), view(console)
    while True:
        try:
            return follow(session, job_id, shown, watch)
        except KeyboardInterrupt:
            wish = _wish(console)
        if wish == "k":
            _kill(session, job_id, console)
        if wish != "c":
            if wish == "d":
                console.print(_how_to_return(job_id), soft_wrap=True)
            raise click.exceptions.Exit(INTERRUPTED)


def watch(session: Session, job_id: str, console: Console, asked: Ask = ask) -> Application:
    """Follow any job to its end, JobError when it fails; Ctrl-C ends the following alone, with exit status 130."""
    try:
        return follow(session, job_id, view(console), Watch(asked))
    except KeyboardInterrupt:
        console.print(_how_to_return(job_id), soft_wrap=True)
        raise click.exceptions.Exit(INTERRUPTED) from None


def _wish(console: Console) -> str:
    """d to detach, k to kill or c to continue."""
    if not (sys.stdin.isatty() and console.is_terminal):
        return "d"
    try:
        answer: str = click.prompt(
            "[d]etach and let the job run, [k]ill it, or [c]ontinue",
            type=click.Choice(["d", "k", "c"], case_sensitive=False),
            default="c",
            show_choices=False,
            err=True,
        )
    except click.Abort:
        console.print()
        return "d"
    return answer


def _kill(session: Session, job_id: str, console: Console) -> None:
    try:
        session.kill(job_id)
    except KeyboardInterrupt:
        raise JobError(
            f"it is not known whether {job_id} was killed",
            remedy="`nodewise job status` with this id tells, `nodewise job kill` does it again",
        ) from None
    console.print(f"{job_id} killed")


def _how_to_return(job_id: str) -> str:
    return (
        f"{job_id} goes on. Follow it again: nodewise job status {job_id} --watch\n"
        f"Its logs: nodewise job logs {job_id} -f   End it: nodewise job kill {job_id}"
    )
