"""Asks the daemons of a cluster over HTTP with a ticket of whoever runs the cluster.

By curl, whose SPNEGO is Kerberos' own library: it costs a process of some 30 ms for each page, and neither a JVM nor a
compiler. A keytab of the cluster gives it the ticket, so nobody has to log in before he starts one.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any

from hadoop.errors import HadoopError
from hadoop.local.kerberos.realm import Realm

_SECONDS = 10


def read_json(realm: Realm, url: str) -> Any:
    """Get a page of JSON; HadoopError when the daemon does not answer with one."""
    try:
        return json.loads(_curl(realm, [url]))
    except ValueError:
        raise HadoopError(f"{url} answers, but not with JSON") from None


def put(realm: Realm, urls: Sequence[str]) -> None:
    """Send a PUT to one address after another; HadoopError at the first that is refused."""
    _curl(realm, ["--request", "PUT", "--fail-early", *urls])


def _curl(realm: Realm, words: Sequence[str]) -> str:
    """What curl prints, without the settings that a user has made for himself (~/.curlrc)."""
    standing = ["--silent", "--show-error", "--fail-with-body", "--negotiate", "--user", ":", "--noproxy", "*"]
    trusted = ["--cacert", str(realm.certificates.certificate), "--max-time", str(_SECONDS)]
    done = subprocess.run(
        ["curl", "--disable", *standing, *trusted, *words],
        env={**os.environ, **_environment(realm)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"curl ended with {done.returncode}"])[-1]
        raise HadoopError(f"{words[-1]} does not answer: {reason} {done.stdout[:500]}")
    return done.stdout


def _environment(realm: Realm) -> dict[str, str]:
    return {
        "KRB5_CONFIG": str(realm.krb5_conf),
        "KRB5_CLIENT_KTNAME": str(realm.keytab(realm.user)),
        "KRB5CCNAME": f"FILE:{realm.folder}/asking.tickets",
    }
