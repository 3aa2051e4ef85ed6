"""`nodewise env make|show|verify`: environments in an exact version, which nodes mount instead of unpacking them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.filesize import decimal
from rich.table import Table

from environments import locking, making
from environments.debian import lock as debian_lock
from environments.debian.make import AskedDebian
from environments.debian.together import AskedTogether
from environments.errors import EnvError
from environments.fit import find_newest_fitting, fit
from environments.make import Asked
from environments.make_image import AskedImage
from environments.making import Made, make
from environments.manifest import DEB, Manifest, Requires, needs
from environments.ready import find_warm
from environments.reference import Reference
from environments.store import Store
from hadoop.client.filesystem import FileSystem
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.service_options import ServiceAddress
from jobs.application.environments.cached import find_all_ready, tell_cached
from jobs.application.environments.unfit import tell_nodes
from jobs.application.environments.users import find_applications, find_waiting_tasks
from jobs.application.submit import Submitter
from jobs.commands.options import console, filesystem_of, hadoop_options, progress_console, show
from jobs.commands.request_options import access
from jobs.commands.service_options import service_options
from jobs.errors import JobError

DIGITS = 12
"""Of a digest, for people."""
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command("make")
@click.argument("name")
@click.option("--version", required=True, help="What this name shall mean; programs ask for NAME@VERSION.")
@click.option("--package", "packages", multiple=True, help="A package, such as onnxruntime==1.32.0; repeatable.")
@click.option(
    "--requirements",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that names packages, as pip reads it.",
)
@click.option(
    "--lock",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A lock that `env show --lock` has printed: exactly these files again.",
)
@click.option(
    "--image",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An archive of an image, as docker save writes it; its files take the place of the node's.",
)
@click.option(
    "--debian",
    multiple=True,
    metavar="PACKAGE",
    help="A package of Debian, such as python3-torch; repeatable. Its system takes the place of the node's.",
)
@click.option(
    "--cuda", default="", metavar="VERSION", help="Only nodes with a card and a driver for this CUDA may run it."
)
@click.option(
    "--driver", default="", metavar="VERSION", help="Only nodes with a driver of NVIDIA of this version or newer."
)
@click.option(
    "--cpu-flag", "cpu_flags", multiple=True, help="Only nodes whose processors have it, as avx2; repeatable."
)
@_json
@hadoop_options
@click.pass_obj
def make_(
    home: Path,
    /,
    name: str,
    version: str,
    packages: tuple[str, ...],
    requirements: Path | None,
    lock: Path | None,
    image: Path | None,
    debian: tuple[str, ...],
    cuda: str,
    driver: str,
    cpu_flags: tuple[str, ...],
    as_json: bool,
    **hadoop: Any,
) -> None:
    """Make an environment of Python packages, of Debian's packages, of both or of an image, and put it into HDFS.

    Everything that the packages need comes along, in versions that go together; the lock names each file with its
    hash. Nodes bring Debian's Python 3.11; an image, and packages of Debian, bring a system of their own. What is there
    already is not made again.

    \b
    Example:
      nodewise env make onnx --version 1.32 --package onnxruntime==1.32.0
      nodewise env make torch --version 1.13 --requirements lock.txt
      nodewise env make torch --version 1.13 --debian python3-torch
      nodewise env make mxnet --version 1.9 --debian libgomp1 --debian libquadmath0 --package mxnet==1.9.1
      nodewise env make tools --version 1 --image tools.tar
    """
    with refusals():
        wanted = needs(cuda, driver, cpu_flags)
        Reference.parse(f"{name}@{version}")
        _refuse_several((packages, requirements), lock, image, debian)
        begun, store = time.monotonic(), Store(filesystem_of(home, hadoop))
        text = requirements.read_text() if requirements else "".join(f"{one}\n" for one in packages)
        if image:
            made = make(store, AskedImage(name, version, image, wanted), _say)
        elif lock:
            made = make(store, _asked_by_lock(name, version, lock, wanted), _say)
        else:
            made = make(store, _asked_by_names(name, version, sorted(debian), text, wanted), _say)
        seconds = time.monotonic() - begun
    show(as_json, _body(made.manifest) | {"is_new": made.is_new, "seconds": seconds}, _said(made, seconds))


@click.command("show")
@click.argument("name")
@click.option("--lock", "prints_lock", is_flag=True, help="Print its lock, from which it can be made again.")
@_json
@hadoop_options
@click.pass_obj
def show_(home: Path, /, name: str, prints_lock: bool, as_json: bool, **hadoop: Any) -> None:
    """Show what an environment is made of.

    \b
    Example:
      nodewise env show onnx@1.32
      nodewise env show onnx@1.32 --lock > onnx.lock
    """
    with refusals():
        manifest = Store(filesystem_of(home, hadoop)).find(Reference.parse(name))
    if prints_lock:
        if not manifest.packages:
            raise JobError(f"{name} has no lock: it was made of an image", "keep the archive of the image")
        of_debian = [one for one in manifest.packages if one.kind == DEB]
        of_python = [one for one in manifest.packages if one.kind != DEB]
        click.echo(debian_lock.write(of_debian) + locking.write(of_python), nl=False)
        return
    table = Table("package", "version", "sha256", title=f"{manifest.name}@{manifest.version}", title_justify="left")
    for package in manifest.packages:
        table.add_row(package.name, package.version, package.sha256[:DIGITS])
    show(as_json, _body(manifest), table)


@click.command()
@click.argument("name")
@_json
@hadoop_options
@click.pass_obj
def verify(home: Path, /, name: str, as_json: bool, **hadoop: Any) -> None:
    """Read all of an environment in HDFS, and compare it with its hashes; exit status 1 when a file is damaged.

    \b
    Example:
      nodewise env verify onnx@1.32
    """
    with refusals():
        store = Store(filesystem_of(home, hadoop))
        manifest = store.find(Reference.parse(name))
        damaged = store.find_damaged(manifest)
    show(as_json, {"damaged": damaged}, "\n".join(f"{path} is damaged" for path in damaged) or "all of it is whole")
    if damaged:
        raise SystemExit(1)


@click.command("fit")
@click.argument("name")
@_json
@service_options
@hadoop_options
@click.pass_obj
def fit_(home: Path, /, name: str, as_json: bool, service: ServiceAddress, **hadoop: Any) -> None:
    """Tell for each node whether an environment can run there, or why not, and how soon it has it, by what nodes tell.

    \b
    Example:
      nodewise env fit torch@2.4
    """
    with refusals():
        store, reference = Store(filesystem_of(home, hadoop)), Reference.parse(name)
        manifest = store.find(reference)
        versions = store.manifests(reference.name)
    client = access(home, service).client()
    nodes = tell_nodes(client)
    ready = find_all_ready(client, manifest.parts, nodes)
    found, newest = fit(manifest.requires, nodes), find_newest_fitting(versions, nodes)
    table = Table("node", "fits", "because", "ready", title=f"{manifest.name}@{manifest.version}", title_justify="left")
    for node, why in sorted(found.items()):
        table.add_row(node, "no" if why else "yes", why, "" if why else ready[node].text)
    said = {node: asdict(one) | {"is_there": one.is_there} for node, one in ready.items()}
    show(as_json, {"nodes": found, "ready": said, "newest_that_fits": newest and newest.version}, table)
    if not as_json and newest and all(found.values()):
        console.print(f"{newest.name}@{newest.version} is the newest that runs on one of them")


def list_made(filesystem: FileSystem, folder: str, client: InfoClient) -> list[dict[str, Any]]:
    """Each version of each environment, with the nodes that have it already: None where the service does not answer."""
    try:
        cached = tell_cached(client)
    except InfoError:
        cached = None
    with refusals():
        return [
            {
                "name": f"{one.manifest.name}@{one.version}",
                "digest": one.manifest.digest,
                "size_bytes": one.manifest.size_bytes,
                "packages": len(one.manifest.packages),
                "published_at": one.made_at,
                "nodes": None if cached is None else find_warm(one.manifest, cached),
            }
            for one in Store(filesystem, folder).list_all()
        ]


class Removed(NamedTuple):
    """What was taken out, as NAME@VERSION, and whether tasks of everybody were asked for before."""

    name: str
    has_seen_all: bool = True


def remove(submitter: Submitter, client: InfoClient, name: str, folder: str, is_forced: bool = False) -> Removed:
    """Take a version out, with what no other has. JobError names those that use it.

    It is also refused where the service does not tell who waits to start in it, unless it `is_forced`.
    """
    with refusals():
        store, reference = Store(submitter.filesystem, folder), Reference.parse(name)
        manifest = store.find(reference)
        found = f"{manifest.name}@{manifest.version}"
        is_newest = store.find(Reference(reference.name)).digest == manifest.digest
        users = find_applications(submitter.yarn, store.find_unneeded(manifest))
        waiting = find_waiting_tasks(client, manifest.name, manifest.version, is_newest)
        users += waiting.name_all()
        if users:
            ending = "end them by `nodewise job kill` or `nodewise task stop`, or wait until they have ended"
            raise JobError(f"{found} is used by {', '.join(users)}", ending)
        if waiting.others is None and not is_forced:
            raise JobError(
                f"it is not known whether tasks wait to start in {found} ({waiting.silence})",
                remedy="name a service that tells by --url and --token-file, or remove it all the same by --force",
            )
        store.remove(manifest)
    return Removed(found, waiting.others is not None)


def _said(made: Made, seconds: float) -> str:
    one, what = made.manifest, "made" if made.is_new else "is there already"
    of_what = f"{one.digest[:DIGITS]}, {len(one.packages)} packages, {decimal(one.size_bytes)}"
    return f"{one.name}@{one.version} {what}: {of_what}, {seconds:.1f} s"


def _say(line: str) -> None:
    progress_console.print(line, style="dim")


def _refuse_several(of_python: Sequence[object], lock: Path | None, image: Path | None, debian: object) -> None:
    """Packages of Debian and of Python go together, and nothing else does."""
    named = sum(map(bool, of_python))
    if named > 1 or sum(map(bool, (named or debian, lock, image))) != 1:
        raise click.UsageError(
            "name what it is made of by --package, --requirements, --lock, --image or --debian: one of these, or "
            "--debian with one of the first two"
        )


def _asked_by_names(
    name: str, version: str, debian: Sequence[str], requirements: str, wanted: Requires
) -> making.Asked:
    system = AskedDebian(name, version, debian, requires=wanted)
    packages = Asked(name, version, requirements, requires=wanted)
    if not debian:
        return packages
    return AskedTogether(system, packages) if requirements else system


def _asked_by_lock(name: str, version: str, lock: Path, wanted: Requires) -> making.Asked:
    """EnvError names the first line that is not of a lock."""
    of_debian, of_python = debian_lock.split(lock.read_text())
    has_packages = bool(locking.read(of_python, str(lock)))
    system = AskedDebian(name, version, locked=of_debian, requires=wanted)
    packages = Asked(name, version, of_python, is_lock=True, requires=wanted)
    if not of_debian.strip():
        return packages
    return AskedTogether(system, packages) if has_packages else system


def _body(manifest: Manifest) -> dict[str, Any]:
    return {**asdict(manifest), "digest": manifest.digest}


@contextmanager
def refusals() -> Iterator[None]:
    """What is wrong with an environment, as commands tell it."""
    try:
        yield
    except EnvError as error:
        raise JobError(error.message, error.remedy) from error
