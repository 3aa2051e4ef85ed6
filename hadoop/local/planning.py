"""What cluster is wanted: by what was asked for, else as it was before, else by the defaults."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from hadoop.client.jars import JARS, check_jars
from hadoop.client.jre import find_java
from hadoop.errors import HadoopError
from hadoop.local import ports, preflight, site, sshd, state
from hadoop.local.state import PROTECTIONS, Cluster

DEFAULT_NODES = 4
_OF_KERBEROS = {"--principal": "principals", "--protection": "protection", "--token-life": "token_seconds"}


class Wanted(TypedDict, total=False):
    """What was asked for; what is None or not there shall be as before.

    `cpus` names one CPU for each node, `gpus` how many GPUs YARN counts on it. `protection` is one of PROTECTIONS,
    `principals` are users who get a keytab beside those that have one; a token that nobody renews is good for
    `token_seconds`. With `ha` there are two of each master.
    """

    nodes: int | None
    subnet: str | None
    cpus: Sequence[int] | None
    jars: Path | None
    plugin: bool | None
    mapreduce: bool | None
    gpus: Sequence[int] | None
    kerberos: bool | None
    protection: str | None
    principals: Sequence[str]
    token_seconds: int | None
    ha: bool | None


def plan(home: Path, recorded: Cluster | None, wanted: Wanted) -> Cluster:
    """Describe the wanted cluster; HadoopError when there can be none like this."""
    sshd.program()
    subnet, cpus, gpus = wanted.get("subnet"), wanted.get("cpus"), wanted.get("gpus")
    size = _size(recorded, wanted)
    if recorded and recorded.user != state.current_user():
        raise HadoopError(
            f"this cluster belongs to user {recorded.user}", remedy="start it as that user, or use another --home"
        )
    before = recorded or Cluster(home, "", size, state.current_user(), JARS, Path())
    planned = Cluster(
        home=home,
        subnet=ports.check_subnet(subnet) if subnet else before.subnet,
        size=size,
        user=before.user,
        jars=(wanted.get("jars") or state.kept_jars(recorded)).absolute(),
        java=find_java(os.environ.get("JAVA_HOME")),
        cpus=tuple(cpus) if cpus is not None else before.cpus,
        plugin=_either(wanted.get("plugin"), before.plugin),
        mapreduce=_either(wanted.get("mapreduce"), before.mapreduce),
        gpus=tuple(gpus) if gpus is not None else before.gpus,
        kerberos=_either(wanted.get("kerberos"), before.kerberos),
        protection=wanted.get("protection") or before.protection,
        principals=tuple(dict.fromkeys((*before.principals, *wanted.get("principals", ())))),
        token_seconds=wanted.get("token_seconds") or before.token_seconds,
        ha=_either(wanted.get("ha"), before.ha),
    )
    state.check_path(planned.jars, "--jars")
    _check_cpus(planned)
    _check_gpus(planned)
    _check_security(planned, wanted)
    _check_masters(planned)
    return planned


def check(cluster: Cluster, min_free_bytes: int) -> None:
    """Raise HadoopError when something is missing that it needs."""
    check_jars(cluster.jars)
    if cluster.plugin:
        preflight.check_plugin(site.PLUGIN_JAR)
    if cluster.kerberos:
        preflight.check_kerberos(site.WITHOUT_LIBHADOOP_JAR)
    preflight.check_disk(cluster.state, min_free_bytes)


def refuse_moves(recorded: Cluster, planned: Cluster) -> None:
    """Raise HadoopError when something would change under daemons that run."""
    unchanged = {
        "--subnet": recorded.subnet == planned.subnet,
        "--jars": recorded.jars == planned.jars or not recorded.jars.is_dir(),
        "--cpus": _is_continued(recorded.cpus, planned.cpus),
        "--gpus": _is_continued(recorded.gpus, planned.gpus),
        "--plugin": recorded.plugin == planned.plugin,
        "--mapreduce": recorded.mapreduce == planned.mapreduce,
        "--kerberos": recorded.kerberos == planned.kerberos,
        "--protection": recorded.protection == planned.protection,
        "--token-life": recorded.token_seconds == planned.token_seconds,
        "--principal": recorded.principals == planned.principals,
        "--ha": recorded.ha == planned.ha,
    }
    for option, same in unchanged.items():
        if not same:
            raise HadoopError(f"{option} cannot change while the cluster runs", remedy="`nodewise cluster down` first")


def _either(wanted: bool | None, before: bool) -> bool:
    return before if wanted is None else wanted


def _size(recorded: Cluster | None, wanted: Wanted) -> int:
    nodes = wanted.get("nodes")
    size = nodes if nodes is not None else recorded.size if recorded else DEFAULT_NODES
    if not 1 <= size <= state.MAX_NODES:
        raise HadoopError(f"--nodes {size} is not allowed", remedy=f"give 1 to {state.MAX_NODES}")
    if recorded and size < recorded.size:
        raise HadoopError(
            f"this cluster has {recorded.size} nodes with data on each and cannot shrink to {size}",
            remedy=f"use another --home, or `nodewise cluster down` and delete {recorded.state}",
        )
    return size


def _check_cpus(cluster: Cluster) -> None:
    usable = os.sched_getaffinity(0)
    if not cluster.cpus:
        return
    if len(cluster.cpus) != cluster.size:
        raise HadoopError(
            f"--cpus names {len(cluster.cpus)} CPUs for {cluster.size} nodes", remedy="name one for each node"
        )
    for cpu in cluster.cpus:
        if cpu not in usable:
            raise HadoopError(f"--cpus names CPU {cpu}, and this machine offers {sorted(usable)}")


def _check_gpus(cluster: Cluster) -> None:
    if cluster.gpus and len(cluster.gpus) != cluster.size:
        raise HadoopError(
            f"--gpus has {len(cluster.gpus)} numbers for {cluster.size} nodes", remedy="give one for each node"
        )


def _check_security(cluster: Cluster, wanted: Wanted) -> None:
    if cluster.protection not in PROTECTIONS:
        raise HadoopError(
            f"--protection {cluster.protection!r} is not known", remedy=f"give one of {', '.join(PROTECTIONS)}"
        )
    if not cluster.kerberos:
        given = {option for option, key in _OF_KERBEROS.items() if wanted.get(key)}
        for option in sorted(given):
            raise HadoopError(f"{option} means nothing without Kerberos", remedy="give --kerberos, too")
        return
    from hadoop.local.kerberos import realm  # other clusters need nothing of it

    realm.check_principals(wanted.get("principals", ()))


def _check_masters(cluster: Cluster) -> None:
    """Refuse to change how HDFS keeps its files' names, which two NameNodes have in their journal."""
    has_data = (site.name_dir(cluster, cluster.master) / site.FORMATTED).exists()
    if has_data and cluster.ha != site.journal(cluster).exists():
        raise HadoopError(
            f"this cluster's HDFS was made with{'out' if cluster.ha else ''} --ha and stays so",
            remedy=f"use another --home, or `nodewise cluster down` and delete {cluster.state}",
        )


def _is_continued(before: Sequence[int], now: Sequence[int]) -> bool:
    """Whether what there is for each node is the same for those nodes that were there before."""
    return before == now[: len(before)] and bool(before) == bool(now)
