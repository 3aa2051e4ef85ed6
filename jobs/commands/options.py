"""What every command that speaks to a cluster has in common: its options, its session, its way to print."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from hadoop.client import jvm
from hadoop.client.filesystem import FileSystem
from hadoop.client.kerberos.login import Account
from hadoop.local.state import current_user, jars_of_clients
from hadoop.rest.callers import find_caller
from jobs.application.submit import Submitter

# Names of files and Java's words are text, never markup.
console = Console(markup=False, highlight=False)
progress_console = Console(stderr=True, markup=False, highlight=False)

HADOOP_NAMES = ("hadoop_conf", "jars", "user", "keytab", "principal")
"""What `hadoop_options` adds."""


def hadoop_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that speaks to a cluster."""
    for option in (
        click.option(
            "--principal",
            envvar="NODEWISE_PRINCIPAL",
            metavar="NAME",
            help="Whose key of the keytab is used  [default: the only one].",
        ),
        click.option(
            "--keytab",
            type=click.Path(path_type=Path),
            envvar="NODEWISE_KEYTAB",
            help="Your keytab, where Hadoop has Kerberos  [default: the ticket of `kinit`].",
        ),
        click.option(
            "--user",
            envvar="HADOOP_USER_NAME",
            help="User name for HDFS and YARN [default: your own]; with Kerberos no other than your own.",
        ),
        click.option(
            "--jars",
            type=click.Path(path_type=Path),
            envvar="NODEWISE_JARS",
            help="Folder of Hadoop's jars [default: those of `nodewise cluster up`, else of this installation].",
        ),
        click.option(
            "--hadoop-conf",
            type=click.Path(path_type=Path),
            envvar="HADOOP_CONF_DIR",
            help="Folder of Hadoop's site files [default: those of `nodewise cluster up`].",
        ),
    ):
        command = option(command)
    return command


def take_hadoop(options: dict[str, Any]) -> dict[str, Any]:
    """Take what `hadoop_options` has added out of a command's options."""
    return {name: options.pop(name) for name in HADOOP_NAMES}


def hadoop_home(
    home: Path,
    hadoop_conf: Path | None,
    jars: Path | None,
    user: str | None,
    keytab: Path | None = None,
    principal: str | None = None,
) -> jvm.HadoopHome:
    """What the options of `hadoop_options` mean, checked."""
    conf_dir = (hadoop_conf or home / "cluster" / "conf").absolute()
    if keytab:
        from hadoop.rest import spnego  # nobody else needs it

        spnego.name_keytab(keytab.absolute(), principal)
    account = Account(user, keytab and keytab.absolute(), principal)
    jars = (jars or jars_of_clients(home, conf_dir)).absolute()
    return jvm.HadoopHome(conf_dir, jars, user or current_user(), account).check()


def page_reader(home: Path, hadoop: dict[str, Any]) -> jvm.HadoopHome:
    """The same for a command that only reads Hadoop's pages: with Kerberos, HDFS tells who that is, instead of Java."""
    where = hadoop_home(home, **hadoop)
    return replace(where, user=find_caller(where.conf_dir, where.account.user, where.user))


def session(home: Path, hadoop: dict[str, Any]) -> Submitter:
    """A JVM and its sessions with HDFS and YARN."""
    where = jvm.start(hadoop_home(home, **hadoop))
    return Submitter(where, lambda line: progress_console.print(line, style="dim"))


def filesystem_of(home: Path, hadoop: Mapping[str, Any]) -> FileSystem:
    """The HDFS that options name, by a JVM that is started for it."""
    jvm.start(hadoop_home(home, **hadoop))
    return FileSystem()


def show(as_json: bool, body: Any, text: Any) -> None:
    """Print a result for a program or for a person."""
    if as_json:
        click.echo(json.dumps(body, indent=1))
    else:
        console.print(text)
