"""The lab's command line; scripts/lab calls it."""

from __future__ import annotations

import sys

import click

from lab import cycle
from lab.commands import LabError, follow
from lab.places import ROOT


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """One master and four workers as containers on this machine."""


@cli.command()
@click.option("--no-provision", is_flag=True, help="Leave new machines bare.")
@click.option("--spare", is_flag=True, help="One worker more, worker5.")
def up(no_provision: bool, spare: bool) -> None:
    """Bring all machines up and make them a cluster."""
    cycle.up(not no_provision, spare)


@cli.command()
@click.option("--forget", is_flag=True, help="Throw the machines away: the next ones are bare.")
@click.option("--purge", is_flag=True, help="Throw away the bare disk, packages and keys too.")
def down(forget: bool, purge: bool) -> None:
    """Switch everything off; the machines' disks stay in .lab."""
    cycle.down(forget, purge)


@cli.command()
def limits() -> None:
    """Hold the machines to the limits that the inventory says now."""
    cycle.limits()


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test(arguments: tuple[str, ...]) -> None:
    """Run the tests of the lab and of what is provisioned on it; arguments go to pytest."""
    named = any(word.startswith("tests/") for word in arguments)
    options = "-p no:faulthandler --strict-markers --import-mode=importlib"  # the usual ones leave tests/lab out
    places = [] if named else ["tests/lab"]
    follow([ROOT / ".venv" / "bin" / "pytest", "-o", f"addopts={options}", "--timeout=1800", *places, *arguments])


def main() -> None:
    """Run, with errors as one sentence."""
    try:
        cli(prog_name="scripts/lab")
    except LabError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
