"""Makes what a cluster remembers: HDFS's empty file system, and where two masters look which of them is active."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from hadoop.local import daemons, site
from hadoop.local.daemons import Daemon
from hadoop.local.state import Cluster

_DRAFT = ".new"


def make(cluster: Cluster) -> None:
    """Make what is missing; with two masters their ZooKeeper and JournalNode have to listen."""
    if not cluster.ha:
        _make_file_system(cluster)
        return
    with ThreadPoolExecutor(max_workers=2) as pool:
        elections = pool.submit(_make_elections, cluster)
        _make_file_system(cluster)
        elections.result()
    _copy_file_system(cluster)


def _make_file_system(cluster: Cluster) -> None:
    """Make an empty file system, once; begin again after an interrupted attempt."""
    directory = site.name_dir(cluster, cluster.master)
    done = directory / site.FORMATTED
    if done.exists():
        return
    if directory.exists():
        shutil.rmtree(directory)
    namenode = Daemon(cluster, "namenode")
    _run(namenode, "could not make a new file system", "-format", "-nonInteractive", "-force")
    done.touch()


def _copy_file_system(cluster: Cluster) -> None:
    """Give the second NameNode the names of the empty file system; what comes later it reads in the journal."""
    first, second = (site.name_dir(cluster, master) for master in cluster.masters)
    if second.exists():
        return
    draft = second.with_name(second.name + _DRAFT)
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(first, draft, ignore=shutil.ignore_patterns(site.FORMATTED))
    draft.rename(second)


def _make_elections(cluster: Cluster) -> None:
    """Make the place in ZooKeeper where the NameNodes' fail-over controllers meet."""
    done = site.zookeeper(cluster) / "data" / site.FORMATTED
    if done.exists():
        return
    _run(Daemon(cluster, "zkfc"), "could not prepare ZooKeeper", "-formatZK", "-nonInteractive", "-force")
    done.touch()


def _run(daemon: Daemon, failure: str, *arguments: str) -> None:
    """Run a daemon's program for one task; HadoopError with the reason when it fails."""
    result = subprocess.run(
        daemons.command(daemon, *arguments),
        env=daemons.environment(daemon.cluster),
        cwd=daemon.cluster.state,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        daemon.output.write_text(result.stdout + result.stderr, encoding="utf-8")
        raise daemons.failure(daemon, failure)
