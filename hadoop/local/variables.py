"""What a shell needs to use a cluster of this machine."""

from __future__ import annotations

import shlex

from hadoop.errors import HadoopError
from hadoop.local.state import Cluster


def of(cluster: Cluster, principal: str | None = None) -> dict[str, str]:
    """Variables by name, for a principal's tickets with Kerberos; PATH is as a shell reads it, others are plain."""
    told = {"HADOOP_CONF_DIR": str(cluster.conf_dir)}
    if not cluster.kerberos:
        if principal:
            raise HadoopError("this cluster has no Kerberos, and so no principals", remedy="leave --principal out")
        return told
    realm = cluster.realm
    user = principal or cluster.user
    if user not in realm.users:
        raise HadoopError(
            f"this cluster has no principal {user}",
            remedy=f"`nodewise cluster down`, then `nodewise cluster up --principal {shlex.quote(user)}`",
        )
    return (
        told
        | realm.environment_of_containers()
        | {
            "KRB5CCNAME": realm.tickets(user),
            "KRB5_CLIENT_KTNAME": str(realm.keytab(user)),
            "PATH": f'{shlex.quote(str(realm.commands))}:"$PATH"',
        }
    )
