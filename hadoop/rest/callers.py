"""Who asks Hadoop: with Kerberos nobody but the owner of a ticket, whatever name he gives."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from hadoop.errors import HadoopError
from hadoop.rest import site_files
from hadoop.rest.addresses import namenode_addresses
from hadoop.rest.webhdfs import WebHdfs


def find_caller(conf_dir: Path, named: str | None, own: str) -> str:
    """The user as whom Hadoop's pages are asked: who is `named`, or else `own`; with Kerberos whom HDFS knows.

    HadoopError when HDFS knows somebody else than who is named, or does not answer.
    """
    if not site_files.has_kerberos(conf_dir):
        return named or own
    known = PurePosixPath(WebHdfs(namenode_addresses(conf_dir), named or own).home()).name
    check_named(named, known)
    return known


def check_named(named: str | None, known: str) -> None:
    """HadoopError when somebody says that he is another user than the one as whom Hadoop knows him."""
    if named and named != known:
        raise HadoopError(
            f"--user {named} is refused: this cluster has Kerberos, for which you are {known}",
            remedy=f"leave --user and HADOOP_USER_NAME out, or `kinit {named}`",
        )
