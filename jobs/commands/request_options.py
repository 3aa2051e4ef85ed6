"""The options of `nodewise job submit` that say what a job shall be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from infosvc.wire.client import read_token
from jobs.application.package import ROOT
from jobs.commands.service_options import service_options
from jobs.engines import ENGINES
from jobs.kinds.classify.request import Request
from locality.policies import POLICIES

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OPTIONS = (
    click.option("--input", "input_", required=True, help="Folder of pictures in HDFS."),
    click.option("--output", required=True, help="Folder in HDFS for the results; must not exist yet."),
    click.option("--engine", default="mxnet_alexnet", show_default=True, help=f"One of {', '.join(sorted(ENGINES))}."),
    click.option("--policy", default="algorithm1", show_default=True, help=f"One of {', '.join(sorted(POLICIES))}."),
    click.option("--capability", required=True, metavar="NAME", help="Data name that tells what a node can do."),
    click.option(
        "--batch", type=click.IntRange(1, 1024), default=32, show_default=True, help="Pictures per inference."
    ),
    click.option(
        "--memory", type=click.IntRange(256), help="MB of each container  [default: 1024, and 1024 for each vcore]."
    ),
    click.option("--vcores", type=click.IntRange(1), default=1, show_default=True, help="Cores of each container."),
    click.option(
        "--weights",
        type=FILE,
        help="Of the network, see `nodewise job train`  [default: seeded].",
    ),
    click.option("--queue", default="default", show_default=True, help="Of YARN, to run in."),
    click.option("--labels", type=FILE, help="One class a line."),
    service_options("To keep history."),
    click.option("--master-python", default=sys.executable, help="Python of the application master on the nodes."),
    click.option(
        "--worker-python",
        envvar="NODEWISE_WORKER_PYTHON",
        default=str(ROOT / ".venv-worker" / "bin" / "python"),
        help="Python with the engine on the nodes [default: what scripts/setup made].",
    ),
    click.option(
        "--capability-wait",
        type=click.FloatRange(0),
        default=20,
        show_default=True,
        help="Seconds for fresh values.",
    ),
    click.option(
        "--container-wait",
        type=click.FloatRange(1),
        default=60,
        show_default=True,
        help="Seconds for a node's container.",
    ),
    click.option(
        "--lease-seconds",
        type=click.FloatRange(5),
        default=10,
        show_default=True,
        help="After so much silence work is given to others.",
    ),
    click.option(
        "--picture-seconds",
        type=click.FloatRange(1),
        default=60,
        show_default=True,
        help="A picture that takes longer is given up.",
    ),
    click.option(
        "--steal/--no-steal", default=True, show_default=True, help="Idle nodes take of what others still have."
    ),
    click.option("--fallback", metavar="POLICY", help="Policy if the capability cannot be had  [default: refuse]."),
    click.option(
        "--env",
        metavar="PATH|latest",
        help="Archive in HDFS, see `nodewise env publish`  [default: the node's own Python].",
    ),
    click.option(
        "--attempts", type=click.IntRange(1), default=2, show_default=True, help="Starts of the application master."
    ),
)


def request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All of them, in the order in which --help shows them."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def request(home: Path, given: Mapping[str, Any]) -> Request:
    """What the values of the options ask for."""
    renamed = {"input_": "input", "url": "info_url", "memory": "memory_mb", "token_file": "token"}
    fields = {renamed.get(name, name): value for name, value in given.items()}
    fields["token"] = read_token(home, fields["token"])
    return Request(**fields)
