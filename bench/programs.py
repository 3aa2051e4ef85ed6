"""Programs that run beside a bench, in processes of their own, and what they print."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from bench.info.errors import BenchError
from bench.info.processes import ROOT
from hadoop.local import variables
from hadoop.local.lifecycle import Cluster

TOLD = 3000
"""Characters from the end of what a program that failed has said."""


def output(argv: Sequence[str], what: str, env: Mapping[str, str] | None = None, seconds: float | None = None) -> str:
    """What a program prints; BenchError with its last words when it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, env=env, timeout=seconds, check=False)
    if done.returncode:
        raise BenchError(f"{what} failed: {(done.stdout + done.stderr).strip()[-TOLD:]}")
    return done.stdout


def environment_of(cluster: Cluster) -> dict[str, str]:
    """Our own variables, but those of a cluster in use here; with Kerberos, where tickets of the cluster's user are."""
    kept = {name: value for name, value in os.environ.items() if name != "HADOOP_CONF_DIR"}
    if not cluster.kerberos:
        return kept
    told = variables.of(cluster)
    return kept | told | {"PATH": f"{cluster.realm.commands}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def log_in(cluster: Cluster) -> None:
    """Get the cluster's user a ticket, where it has Kerberos; BenchError when he gets none."""
    if cluster.kerberos:
        output(["kinit", "-k", "-i", cluster.user], "kinit", environment_of(cluster))


def with_jvm(cluster: Cluster, module: str, *words: str, seconds: float | None = None) -> str:
    """What one of our modules prints that needs a JVM for itself: it is told the cluster first, then the words.

    BenchError when it fails, TimeoutExpired when it takes longer than `seconds`.
    """
    where = (str(cluster.conf_dir), str(cluster.jars), cluster.user)
    argv = [sys.executable, "-m", module, *where, *words]
    return output(argv, " ".join([module, *words]), environment_of(cluster), seconds)
