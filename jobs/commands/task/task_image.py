"""`nodewise task image`: what programs of tasks see in boxes of Docker."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from boxes.broker.manifest import digest_of
from infosvc.wire.terminal_text import plain
from jobs.commands.options import hadoop_options, session
from jobs.commands.task.task_shown import console, json_option, print_json
from jobs.errors import JobError
from jobs.kinds.task import environment_image, image_store
from jobs.kinds.task.images.pull_server import PulledImage, PullServer

_BRIEF = 12
"""Digits of an image's id that name its repository, as Docker shows ids."""


@click.group()
def image() -> None:
    """Keep images in HDFS for tasks in boxes of Docker; run it as the user who runs `nodewise serve --submit`.

    Of the layers of an image, HDFS keeps each once, and a node's Docker takes those that it lacks when a task needs
    the image. It takes only images that its operator allows: by a line with the image's id in /etc/nodewise/images.

    \b
    Example:
      docker save torch:2 > torch.tar
      nodewise task image add torch.tar --name torch
    """


@image.command()
@click.argument("image_files", metavar="[FILE]", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--env", metavar="NAME@VERSION", help="Make the image of this environment, in place of a FILE.")
@click.option("--base", metavar="IMAGE", help="What lies below an environment: an image in HDFS, by its name or id.")
@click.option("--name", help="As people call it; the file's or the environment's if left out.")
@json_option
@hadoop_options
@click.pass_obj
def add(
    home: Path,
    /,
    image_files: Path | None,
    env: str | None,
    base: str | None,
    name: str | None,
    as_json: bool,
    **hadoop: Any,
) -> None:
    """Put an image into HDFS, and print how tasks name it.

    FILE is an archive as `docker save` writes one, or an OCI layout: a folder, or a tar archive of it. With --env,
    tasks find the image by `task submit --box docker --env NAME@VERSION`.

    \b
    Example:
      nodewise task image add torch.tar --name torch
      nodewise task image add --env onnx@1.32 --base debian
    """
    filesystem = session(home, hadoop).filesystem
    if image_files and not env and not base:
        added = image_store.add(filesystem, image_files, name or image_files.stem)
    elif env and not image_files:
        added = environment_image.add(filesystem, env, base or "", name or "")
    else:
        raise click.UsageError("name a FILE, or an environment by --env, which may have a --base")
    kept = added.image
    if as_json:
        print_json(asdict(kept))
    else:
        click.echo(plain(f"{kept.name}@{kept.id}"))
        click.echo(f"HDFS had {kept.layers - added.new_layers} of its {kept.layers} layers", err=True)
        click.echo("allow it on nodes by a line with this id in their /etc/nodewise/images", err=True)


@image.command("list")
@json_option
@hadoop_options
@click.pass_obj
def list_(home: Path, /, as_json: bool, **hadoop: Any) -> None:
    """List the images that are in HDFS.

    \b
    Example:
      nodewise task image list
    """
    found = image_store.kept_images(session(home, hadoop).filesystem)
    if as_json:
        print_json([asdict(one) for one in found])
    elif not found:
        click.echo("no image: add one with `nodewise task image add FILE.tar`")
    else:
        table = Table("name", "id", "layers", "MB", box=None)
        for one in found:
            table.add_row(plain(one.name), one.id, str(one.layers or "archive"), f"{one.size_bytes / 1e6:.0f}")
        console().print(table)


@image.command()
@click.argument("image_id", metavar="IMAGE")
@hadoop_options
@click.pass_obj
def rm(home: Path, /, image_id: str, **hadoop: Any) -> None:
    """Take an image out of HDFS, with the layers that no other one has; nodes that have it keep it.

    \b
    Example:
      nodewise task image rm sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0
    """
    image_store.remove(session(home, hadoop).filesystem, image_id.rpartition("@")[2])


@image.command()
@click.option("--port", type=click.IntRange(0, 65535), default=5000, show_default=True, help="0 takes a free one.")
@hadoop_options
@click.pass_obj
def serve(home: Path, /, port: int, **hadoop: Any) -> None:
    """Let Docker on this machine pull images from HDFS, until Ctrl-C; print what to pull.

    It serves those that are there when it starts. Tasks need none of this: their runners serve their images. It listens
    on 127.0.0.1, where every user of this machine can read the images. It says what HDFS does not bring, of which
    Docker only sees that it ends too early.

    \b
    Example:
      nodewise task image serve --port 5000
    """
    found = image_store.find_all(session(home, hadoop).filesystem)
    names = {kept: kept.id.removeprefix("sha256:")[:_BRIEF] for kept in found}
    with (
        _listening({names[kept]: served for kept, served in found.items()}, port) as server,
        suppress(KeyboardInterrupt),
    ):
        for kept, served in found.items():
            place = f"127.0.0.1:{server.port}/{names[kept]}@{digest_of(served.manifest)}"
            click.echo(plain(f"docker pull {place}  # {kept.name}"))
        sys.stdout.flush()
        threading.Event().wait()  # until Ctrl-C


def _listening(images: Mapping[str, PulledImage], port: int) -> PullServer:
    try:
        return PullServer(images, port, lambda why: click.echo(plain(why), err=True))
    except OSError as error:
        raise JobError(
            f"port {port} of 127.0.0.1 cannot be had: {error.strerror}", remedy="name another by --port"
        ) from error
