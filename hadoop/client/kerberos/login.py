"""Who speaks to a Hadoop that has Kerberos: the owner of a ticket of `kinit`, or of a keytab."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jpype

from hadoop.errors import HadoopError
from hadoop.rest.callers import check_named

_TOKENS = "HADOOP_TOKEN_FILE_LOCATION"
"""YARN names here the file with what a container shows instead of a ticket."""
_SETTING, _USUAL = "java.security.krb5.conf", "/etc/krb5.conf"
_OPTIONS = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
"""Of these variables Java takes settings, too."""
_PATIENCE = "[libdefaults]\n kdc_timeout = 5000\n max_retries = 2\n"
"""Milliseconds, and tries; krb5.conf may say something else."""
_UTIL = "org.apache.hadoop.security.authentication.util.KerberosUtil"
_REMEDIES = {
    r"Clock skew too great|not yet valid": "the clocks of this machine, Kerberos and Hadoop differ: set them by NTP",
    r"Client not found in Kerberos database": "this realm does not know you: `kinit` as another user, or ask its admin",
    r"Server not found in Kerberos database": "the site files name a daemon that this realm does not know: mend them",
    r"Cannot (?:find|locate) KDC|locate default realm|ICMP Port Unreachable": (
        "krb5.conf names no Kerberos of this realm: point KRB5_CONFIG at one that does"
    ),
    r"(?:Mechanism level|LoginException): (?:Connection refused|(?i:receive|read|connect) timed out)": (
        "Kerberos itself does not answer: see that the KDC that krb5.conf names is up"
    ),
    r"Unable to obtain password|Checksum failed|Pre-authentication information was invalid": (
        "this keytab is not of that principal, or has been replaced: get a new one"
    ),
    r"Permission denied: user=": "ask the owner that it names, or the superuser of HDFS, to let you do that",
    r"Client cannot authenticate via|Kerberos tgt|Kerberos credentials|No valid credentials|Ticket expired": (
        "run `kinit`, or name a keytab with --keytab"
    ),
}
"""What helps against what Java says, which says it in the middle of much else; the first that is found counts."""


@dataclass(frozen=True)
class Account:
    """What a user named of who he is: his `user` name, or a keytab and whose it is."""

    user: str | None = None
    keytab: Path | None = None
    principal: str | None = None


def is_in_container() -> bool:
    """Whether this process has got tokens from YARN, which stand for a ticket."""
    return _TOKENS in os.environ


def java_options() -> list[str]:
    """Lead Java to the realm, without its own patience: it asks a KDC that says nothing for 90 s, again for each call.

    Unlike other programs it does not look into KRB5_CONFIG.
    """
    named = [file for file in os.environ.get("KRB5_CONFIG", "").split(":") if file]
    if not named and any(_SETTING in os.environ.get(name, "") for name in _OPTIONS):
        return []
    found = next((file for file in named or [_USUAL] if Path(file).is_file()), None)
    if found is None:
        return []
    # Java counts what it reads first. It reads the file again with each log-in, so that lives as long as the process.
    ours = os.memfd_create("krb5.conf")
    os.write(ours, f"include {Path(found).absolute()}\n{_PATIENCE}".encode())
    return [f"-D{_SETTING}=/proc/self/fd/{ours}"]


def log_in(account: Account) -> str:
    """The user as Hadoop knows him; HadoopError when he has no ticket, or is somebody else than he said.

    Java's errors are raised.
    """
    if account.principal and not account.keytab:
        raise HadoopError(
            f"--principal {account.principal} has no keytab",
            remedy="name it with --keytab, or run `kinit`",
        )
    group = jpype.JClass("org.apache.hadoop.security.UserGroupInformation")
    if account.keytab:
        group.loginUserFromKeytab(_principal(account.keytab, account.principal), str(account.keytab))
    else:
        group.loginUserFromSubject(None)  # looks again, also where there was none
        if not group.getLoginUser().hasKerberosCredentials():
            raise _no_ticket_error()
    known = str(group.getLoginUser().getShortUserName())
    check_named(account.user, known)
    return known


def find_remedy(error: Any) -> str:
    """What helps against an error of Java's that is about who somebody is, or what he may; "" for another one."""
    said: list[str] = []
    while error is not None and len(said) < 20:  # some name each other as their cause
        said.append(str(error.getMessage()))
        error = error.getCause()
    return next((remedy for pattern, remedy in _REMEDIES.items() if re.search(pattern, "\n".join(said))), "")


def _principal(keytab: Path, wanted: str | None) -> str:
    """Whose keytab it is, in full, if there is one of them or it is named."""
    if not os.access(keytab, os.R_OK) or not keytab.is_file():
        raise HadoopError(f"the keytab {keytab} cannot be read", remedy="name a file that you may read with --keytab")
    util = jpype.JClass(_UTIL)
    anyone = jpype.JClass("java.util.regex.Pattern").compile(".*")
    try:
        held = sorted({str(name) for name in util.getPrincipalNames(str(keytab), anyone) or ()})
    except jpype.JException:
        held = []
    if not held:
        raise HadoopError(f"{keytab} holds no key that can be read", remedy="name a keytab with --keytab")
    if not wanted and len(held) == 1:
        return held[0]
    if not wanted:
        raise HadoopError(f"{keytab} is of {', '.join(held)}", remedy="name one of them with --principal")
    full = wanted if "@" in wanted else f"{wanted}@{util.getDefaultRealm()}"
    if full not in held:
        raise HadoopError(
            f"{keytab} holds no key of {full}, only of {', '.join(held)}", remedy="name a keytab of this principal"
        )
    return full


def _no_ticket_error() -> HadoopError:
    where = os.environ.get("KRB5CCNAME", "")
    kind, separator, _ = where.partition(":")
    if separator and kind != "FILE" and "/" not in kind:
        return HadoopError(
            f"Java cannot read tickets in {where}",
            remedy="set KRB5CCNAME=FILE:$HOME/.tickets and run `kinit` again",
        )
    return HadoopError(
        f"this cluster has Kerberos, and you have no ticket that is valid now{f' in {where}' if where else ''}",
        remedy="run `kinit`, or name a keytab with --keytab",
    )
