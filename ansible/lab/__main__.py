"""The lab's command line; scripts/lab calls it."""

from __future__ import annotations

import sys

import click

from lab import cycle, loaded, passed
from lab.commands import LabError, follow
from lab.places import INVENTORY, ROOT, SECURE

NOT_LONG = ("-m", "not long")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """One master and four workers as containers on this machine."""


@cli.command()
@click.option("--no-provision", is_flag=True, help="Leave new machines bare.")
@click.option("--spare", is_flag=True, help="One worker more, worker5.")
@click.option("--secure", is_flag=True, help="Kerberos, two masters, two services; `down --forget` before and after.")
def up(no_provision: bool, spare: bool, secure: bool) -> None:
    """Bring all machines up and make them a cluster."""
    cycle.up(not no_provision, spare, SECURE if secure else INVENTORY)


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
@click.option("--cycle", "name", type=click.Choice([*passed.CYCLES]), default="cluster", help="Which of them.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def test(name: str, arguments: tuple[str, ...]) -> None:
    """Run the tests of the lab and of what is provisioned on it; arguments go to pytest.

    Once all of them have passed, or all but the long ones, ansible/lab/passed.json says so.
    """
    before = passed.snapshot()
    loaded.forget()
    named = any(word.startswith("tests/") for word in arguments)
    options = "-p no:faulthandler --strict-markers --import-mode=importlib"  # the usual ones leave tests/lab out
    places = [] if named else [passed.CYCLES[name]]
    follow([ROOT / ".venv" / "bin" / "pytest", "-o", f"addopts={options}", "--timeout=1800", *places, *arguments])
    if arguments in ((), NOT_LONG):
        if not loaded.noted():
            print(
                f"Lab: {passed.FILE} stays as it was, as it is not known what the machines have read", file=sys.stderr
            )
            return
        passed.renew(name, loaded.noted(), before)
        print(f"Lab: {passed.FILE} is renewed: commit it")


@cli.command()
def due() -> None:
    """Print the cycle of tests that has to pass again, if there is one: what it depends on is not as it was."""
    found = passed.due()
    if not found:
        print("Lab: nothing that its tests depend on has changed since they passed", file=sys.stderr)
        return
    first, *others = found
    since = f"something that it depends on has changed since {first.since}" if first.since else "it has passed nowhere"
    print(f"Lab: the tests of {first.cycle} have to pass: {since}", file=sys.stderr)
    for other in others:
        print(f"Lab: the tests of {other.cycle} wait for the next run", file=sys.stderr)
    print(first.cycle)


def main() -> None:
    """Run, with errors as one sentence."""
    try:
        cli(prog_name="scripts/lab")
    except LabError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
