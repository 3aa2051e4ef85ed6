"""`nodewise setup`: brings what a wheel of nodewise does not have in it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from hadoop.errors import HadoopError
from hadoop.installation import ROOT, Kind, Part, hadoop_folder, kind_of, remedy, worker_environment
from nodewise.setup import hadoop_jars, workers_python

_ELSEWHERE = {
    Kind.CHECKOUT: "this nodewise is a checkout",
    Kind.PLAYBOOK: "this nodewise was brought by Ansible's playbooks",
}
_VERSION = re.compile(r"3(\.\d+)+")


@click.group()
def setup() -> None:
    """Bring what nodewise needs beside its own wheel: the workers' environment, and Hadoop's jars.

    Both are put into the environment that has the wheel, and stay there when nodewise is upgraded. What is there
    already is not made again.

    \b
    Example:
      nodewise setup worker
      nodewise setup hadoop --hadoop-home /opt/hadoop
    """


@setup.command()
@click.option(
    "--python",
    "program",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A Python 3.11, with --onnx 3.11 to 3.13  [default: the first on this machine].",
)
@click.option("--onnx", "only_onnx", is_flag=True, help="Without MXNet, for machines that have no Python 3.11.")
@click.option("--torch", is_flag=True, help="With Debian's PyTorch, for training: apt-get install python3-torch.")
def worker(program: Path | None, only_onnx: bool, torch: bool) -> None:
    """Make the environment of the workers: MXNet and ONNX Runtime, in the versions and with the hashes of the wheel.

    It fetches about 300 MB from the package index that pip uses, and takes a minute or two. With --onnx it is made
    without MXNet, with Python 3.11 to 3.13, for jobs with --engine onnx.

    \b
    Example:
      nodewise setup worker
      nodewise setup worker --python /usr/bin/python3.11 --torch
      nodewise setup worker --onnx
    """
    _refuse_elsewhere(Part.WORKER)
    folder, lock = worker_environment(), ROOT / "requirements" / ("worker-onnx.txt" if only_onnx else "worker.txt")
    engines = workers_python.ONNX if only_onnx else workers_python.ENGINES
    if workers_python.is_made_of(folder, lock):
        click.echo(f"{folder} is there already")
    else:
        found = workers_python.find(program, only_onnx)
        with _step(f"Python environment {folder}, with {found}"):
            workers_python.make(folder, found, lock, engines)
    if torch:
        with _step(f"Debian's PyTorch, linked into {folder}"):
            workers_python.link_torch(folder)


@setup.command()
@click.option(
    "--hadoop-home",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="HADOOP_HOME",
    help="A Hadoop of this machine, whose jars are linked  [env: HADOOP_HOME].",
)
@click.option(
    "--version",
    metavar="3.N.N",
    help="Fetch this Hadoop, not the one of the wheel; with --into.",
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder whose `lib` gets the jars of --version, for `nodewise cluster up --jars`.",
)
def hadoop(hadoop_home: Path | None, version: str | None, into: Path | None) -> None:
    """Bring Hadoop's jars, which all commands that speak to HDFS or YARN need.

    A Hadoop of this machine has them: they are linked, and nothing is fetched. Without one, Maven fetches those that
    nodewise is tested with, about 100 MB, and each is compared with its hash in the wheel. The jars of another version
    go into a folder of their own, of a checkout too, and are compared with what Maven's registry says of them alone.

    \b
    Example:
      nodewise setup hadoop --hadoop-home /opt/hadoop
      nodewise setup hadoop
      nodewise setup hadoop --version 3.4.2 --into ~/hadoop-3.4.2
    """
    if version is not None or into is not None:
        _fetch_version(version, into)
        return
    _refuse_elsewhere(Part.HADOOP)
    folder = hadoop_folder()
    if hadoop_home is not None:
        with _step(f"Jars of {hadoop_home}, linked into {folder / 'lib'}"):
            hadoop_jars.link(hadoop_home, folder)
        return
    if hadoop_jars.is_whole(folder, ROOT):
        click.echo(f"{folder} is there already")
        return
    _check_maven()
    with _step(f"Hadoop's jars, fetched into {folder / 'lib'}"):
        hadoop_jars.fetch(folder, ROOT)


def _fetch_version(version: str | None, into: Path | None) -> None:
    if version is None or into is None:
        raise click.UsageError("--version and --into go together")
    if not _VERSION.fullmatch(version):
        raise click.UsageError(f"--version {version!r} is not a version of Hadoop 3 such as 3.4.2")
    folder = into.absolute()
    if hadoop_jars.has_version(folder, version):
        click.echo(f"{folder / 'lib'} is there already")
        return
    _check_maven()
    with _step(f"Jars of Hadoop {version}, fetched into {folder / 'lib'}"):
        hadoop_jars.fetch_version(version, folder, ROOT)


def _check_maven() -> None:
    if shutil.which("mvn") is None:
        raise HadoopError(
            "there is no Maven, which fetches Hadoop's jars",
            remedy="name a Hadoop of this machine with --hadoop-home, or install Maven with `apt-get install maven`",
        )


def _refuse_elsewhere(part: Part) -> None:
    if what := _ELSEWHERE.get(kind_of(ROOT)):
        raise HadoopError(what, remedy=remedy(part))


@contextmanager
def _step(what: str) -> Iterator[None]:
    """Say what begins, and that it is done; HadoopError when this user may not write there."""
    click.echo(f"{what} ...")
    try:
        yield
    except OSError as error:
        mend = "run this as the owner of that place"
        raise HadoopError(f"{error.filename} cannot be written ({error.strerror})", remedy=mend) from error
    click.echo("done")
