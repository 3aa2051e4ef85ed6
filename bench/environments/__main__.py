"""`scripts/bench environments`: brings the same packages to nodes in several ways in turns, and times each phase."""

from __future__ import annotations

import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from bench.environments import total
from bench.environments.content import QUICK, Content, fetch
from bench.environments.limits import leave_network
from bench.environments.pieces import PIECES, Found, Place, content_of, tell_size
from bench.environments.scene import REGISTRY, has_registry, scene
from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.parts import DIRTY, Part, PartType, describe_commit, read_parts
from bench.programs import output as output_of
from bench.telling import say, tell_sum
from hadoop.client.jars import JARS
from hadoop.errors import HadoopError

NODES, QUICK_NODES = 4, 2


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--part", type=PartType(), default="1/1", help=f"Only this part: 3/{len(PIECES)} is one of {len(PIECES)}."
)
@click.option("--only", "names", multiple=True, type=click.Choice([*PIECES]), help="Only these.  [default: all]")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the order of the ways in each round.")
@click.option("--rounds", type=click.IntRange(1), help="How often each.  [default: what ten minutes allow]")
@click.option("--quick", is_flag=True, help="One package, two nodes, one round: shows that it works, measures nothing.")
@click.option("--sum", "commits", metavar="COMMITS", help="Sum up the kept parts of a range of commits: A..B, or HEAD.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --only, --rounds or --quick nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    part: Part,
    names: tuple[str, ...],
    seed: int,
    rounds: int | None,
    quick: bool,
    commits: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure how soon a program begins in an environment that its node has to fetch, and in one that it has.

    The worker's packages come to a node as an environment of `env make`, which is mounted; as one of `env publish`,
    which YARN unpacks; by uv from a package index; and as an image, by `docker load`, by `docker pull` from HDFS, and
    from Debian's docker-registry, where that is installed. What sends them has a network card of 1000 or 100 Mbit/s.

    Two answers are timed, too, that need no node: what `env make` says of an environment that is there already, and the
    refusal of a task that no node can run.

    As the piece `torch`, packages of Debian come in the same ways but uv: its PyTorch, with the system that it needs.

    It takes an hour and a half: each of the parts N/8 takes ten minutes at most, and 8/8, with torch, half an hour.
    Nothing else should run meanwhile. It needs root, for Docker and for a network of its own.

    \b
    Examples:
      scripts/bench environments --part 1/8
      scripts/bench environments --only cached --rounds 3
      scripts/bench environments --sum HEAD
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended
    is_kept = not (names or rounds or quick)
    try:
        if commits:
            sys.exit(tell_sum(total, read_parts(output or RESULTS, "environments", commits), commits, as_json))
        if is_kept and describe_commit().endswith(DIRTY):
            raise BenchError("files differ from the commit, so nobody could tell what was measured: commit them first")
        record = _measure(part, part.take(names or [*PIECES]), seed, 1 if quick else rounds, quick)
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    text = total.markdown([record], record["date"])
    tell("environments", record, text, as_json, output or (RESULTS if is_kept else None))
    sys.exit(bool(record["failed"]))


def _measure(part: Part, chosen: Sequence[str], seed: int, rounds: int | None, quick: bool) -> dict[str, Any]:
    commit, since, began = describe_commit(), machine.Since(), time.monotonic()
    nodes = QUICK_NODES if quick else NODES
    told = Told()
    with tempfile.TemporaryDirectory(prefix="nw-fetched-") as folder:
        fetched = fetch_all(chosen, Path(folder), quick, told)
        leave_network()
        for content, files in fetched.items():
            names = [one for one in chosen if _content_of(one, quick) is content]
            with scene(content, files, nodes, say) as made:
                for name in names:
                    told.measure(name, Place(made, _chance(seed, name), rounds, say))
    return since.heading(RESULTS, _versions()) | {
        "commit": commit,
        "seed": seed,
        "part": part,
        "on": "local",
        "pieces": list(chosen),
        "nodes": nodes,
        "sizes": told.sizes,
        "seconds": time.monotonic() - began,
        "readings": told.readings,
        "failed": told.failed,
    }


@dataclass
class Told:
    """What was found, by piece."""

    readings: dict[str, Found] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def measure(self, name: str, place: Place) -> None:
        """One piece, or why not."""
        say(name)
        self.sizes |= {tell_size(name, way): size for way, size in place.scene.sizes.items()}
        try:
            self.readings[name] = PIECES[name](place)
        except BenchError as error:
            self.fail(name, error)

    def fail(self, name: str, error: BenchError) -> None:
        """Note that a piece is not measured."""
        self.failed[name] = str(error)
        say(f"{name} is not measured: {error}")


def fetch_all(chosen: Sequence[str], folder: Path, quick: bool, told: Told) -> dict[Content, list[Path]]:
    """The packages of each content; pieces of one that cannot be fetched are not measured."""
    found: dict[Content, list[Path]] = {}
    for content in dict.fromkeys(_content_of(one, quick) for one in chosen):
        say(f"fetching packages of {content.module}")
        try:
            found[content] = fetch(content, folder / content.module)
        except BenchError as error:
            for name in (one for one in chosen if _content_of(one, quick) is content):
                told.fail(name, error)
    return found


def _content_of(piece: str, quick: bool) -> Content:
    return QUICK[content_of(piece)] if quick else content_of(piece)


def _chance(seed: int, name: str) -> random.Random:
    return random.Random(f"{seed}/{name}")  # noqa: S311 - an experiment that can be repeated


def _versions() -> dict[str, str]:
    uv = [str(Path(sys.executable).with_name("uv")), "--version"]
    found = {"uv": _version(uv), "Docker": _version(["dockerd", "--version"])}
    if has_registry():
        found[REGISTRY] = _version([REGISTRY, "--version"])
    return machine.ours() | machine.hadoop(JARS) | found


def _version(argv: Sequence[str]) -> str:
    found = re.search(r"\d+(\.\d+)+\S*", output_of(argv, argv[0]))
    return found[0].rstrip(",") if found else ""


if __name__ == "__main__":
    main()
