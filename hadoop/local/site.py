"""Writes Hadoop's site files for the cluster on this machine, from the templates that Ansible uses too."""

from __future__ import annotations

from pathlib import Path

from hadoop.installation import ROOT
from hadoop.local import election_secrets, ports
from hadoop.local.files.own_files import write_own
from hadoop.local.files.templates import TEMPLATES, fill
from hadoop.local.state import MARKER, NAMESERVICE, Cluster

PLUGIN = ROOT / "yarn-plugin"
PLUGIN_JAR = PLUGIN / "target" / "nodewise-yarn-0.1.0.jar"
WITHOUT_LIBHADOOP_JAR = PLUGIN / "target" / "without-libhadoop.jar"
"""Lets NodeManagers with Kerberos show logs where libhadoop is missing; for the cluster of one machine only."""
POLICY_FILE = "nodewise-policy.properties"
ATTRIBUTES_FILE = "node_attributes.conf"
FORMATTED = "formatted"  # a file beside what was made once
FENCE = "fence"  # the program in the cluster's folder that ends a NameNode which was replaced
MOUNTS = "NODEWISE_MOUNTS"  # the variable that tells containers where the mounter of their node listens
# A process's command line has a NUL after each word. The pattern comes from a pipe, so that no other process bears it.
_FENCE = """\
#!/bin/sh
# Ends the NameNode at an address, which another one replaces; one that stands still does not notice by itself.
printf '%s\\n' "-Dnodewise.daemon=namenode@$1" | grep -lzxF -f - /proc/[0-9]*/cmdline 2> /dev/null |
  sed 's|[^0-9]||g' | xargs -r kill -KILL
exit 0
"""
LOOPBACK = "127.0.0.0/8"
"""From where all programs of this machine call, whichever address they call."""
NODE_VCORES = 2
NODE_MEMORY_MB = 6144
MASTERS_SHARE = 0.5  # of a queue, for application masters
MASTERS_SHARE_OF_GPUS = 1.0  # where GPUs are counted, of which only tasks make use, and those are their own masters


def render(cluster: Cluster) -> None:
    """Write HADOOP_CONF_DIR for clients and a single master, and one directory of site files for each other machine."""
    shared = values(cluster) | _more_values(cluster)
    _write(cluster.conf_dir, shared)
    if cluster.ha:
        zookeeper(cluster).mkdir(parents=True, exist_ok=True)
        (zookeeper(cluster) / "zoo.cfg").write_text(fill("ha/zoo.cfg.j2", _zookeeper_values(cluster)), encoding="utf-8")
        election_secrets.prepare(_zookeeper_secrets(cluster))
        _write_fence(cluster)
        for master in cluster.masters:
            _write(conf_dir(cluster, master), shared | master_values(cluster, master))
    for node in cluster.nodes:
        _write(conf_dir(cluster, node), shared | node_values(cluster, node))


def conf_dir(cluster: Cluster, node: str | None) -> Path:
    """Where the site files of the daemons of a node or a master are; without a name, of the first master.

    A single master has those of clients, of two each has its own.
    """
    if node in cluster.nodes:
        return cluster.node_dir(node) / "conf"
    return master_dir(cluster, node or cluster.master) / "conf" if cluster.ha else cluster.conf_dir


def master_dir(cluster: Cluster, master: str) -> Path:
    """The folder of one of two masters."""
    return cluster.state / "masters" / str(cluster.masters.index(master) + 1)


def name_dir(cluster: Cluster, master: str) -> Path:
    """Where a NameNode keeps the names of files; the first one where a single one does."""
    return cluster.state / "namenode" if master == cluster.master else master_dir(cluster, master) / "namenode"


def journal(cluster: Cluster) -> Path:
    """Where the JournalNode keeps what two NameNodes share."""
    return cluster.state / "journal"


def zookeeper(cluster: Cluster) -> Path:
    """The folder of ZooKeeper, with all that it remembers in `data`."""
    return cluster.state / "zookeeper"


def _zookeeper_secrets(cluster: Cluster) -> Path:
    return zookeeper(cluster) / "secrets"


def scratch(cluster: Cluster) -> Path:
    """Where daemons put temporary files, so that nothing of theirs is left in the machine's own place."""
    return cluster.state / "tmp"


def rm_state(cluster: Cluster) -> Path:
    """Where the ResourceManager remembers its applications."""
    return cluster.state / "resourcemanager"


def nm_state(cluster: Cluster, node: str) -> Path:
    """Where a node's NodeManager remembers its containers."""
    return cluster.node_dir(node) / "nodemanager"


def mounts(cluster: Cluster, node: str) -> Path:
    """Where a node's mounter of environments listens."""
    return cluster.node_dir(node) / "mounts"


def values(cluster: Cluster) -> dict[str, object]:
    """The templates' variables that all of the cluster shares."""
    return {
        "hadoop_master": cluster.master,
        "hadoop_namenode_port": ports.NAMENODE,
        "hadoop_namenode_http_port": ports.NAMENODE_HTTP,
        "hadoop_resourcemanager_http_port": ports.RESOURCEMANAGER_HTTP,
        "hadoop_name_dir": cluster.state / "namenode",
        "hadoop_rm_state_dir": rm_state(cluster),
        "hadoop_attributes_store_dir": cluster.state / "node-attributes",
        "hadoop_tmp_dir": scratch(cluster),
        "hadoop_conf_dir": cluster.conf_dir,
        "hadoop_jars": cluster.jars,
        "hadoop_user": cluster.user,
        "hadoop_replication": min(2, cluster.size),
        "hadoop_node_count": cluster.size,
        "hadoop_masters_share": MASTERS_SHARE_OF_GPUS if any(cluster.gpus) else MASTERS_SHARE,
        "hadoop_node_vcores": NODE_VCORES,
        "hadoop_node_memory_mb": NODE_MEMORY_MB,
        "hadoop_ha": cluster.ha,
        "hadoop_masters": cluster.masters,
        "hadoop_nameservice": NAMESERVICE,
        "hadoop_zookeeper_quorum": f"{cluster.master}:{ports.ZOOKEEPER}",
        "hadoop_journal_hosts": (cluster.master,),
        "hadoop_journal_dir": journal(cluster),
        "hadoop_failover_port": ports.FAILOVER,
        "hadoop_fencing": f"shell({cluster.state / FENCE} $target_host)",
        "hadoop_kerberos": cluster.kerberos,
        "hadoop_namenode_https_port": ports.NAMENODE_HTTPS,
        # Of two ResourceManagers, the other one needs up to ten seconds to take over.
        "hadoop_rm_wait_ms": 30_000 if cluster.ha else 10_000,
        "hadoop_plugin": cluster.plugin,
        "hadoop_mapreduce": cluster.mapreduce,
        "hadoop_counts_gpus": any(cluster.gpus),
        "hadoop_shuffle_port": 0,  # any free one, as all nodes are on one machine
        "hadoop_attributes_script": PLUGIN / "attributes" / "node_attributes.py",
        "hadoop_infosvc_url": f"http://{cluster.master}:{ports.INFOSVC}",
    }


def node_values(cluster: Cluster, node: str) -> dict[str, object]:
    """The templates' variables of one node."""
    number = cluster.nodes.index(node) + 1
    directory = cluster.node_dir(node)
    return {
        "hadoop_node_name": node,
        "hadoop_node_conf_dir": conf_dir(cluster, node),
        "hadoop_data_dir": directory / "data",
        "hadoop_local_dir": directory / "local",
        "hadoop_container_log_dir": directory / "containers",
        "hadoop_nm_recovery_dir": nm_state(cluster, node),
        "hadoop_datanode_port": ports.DATANODE + number,
        "hadoop_datanode_http_port": ports.DATANODE_HTTP + number,
        "hadoop_datanode_https_port": ports.DATANODE_HTTPS + number,
        "hadoop_datanode_ipc_port": ports.DATANODE_IPC + number,
        "hadoop_nodemanager_port": ports.NODEMANAGER,
        "hadoop_nodemanager_http_port": ports.NODEMANAGER_HTTP,
        "hadoop_node_gpus": cluster.gpus[number - 1] if cluster.gpus else 0,
        "hadoop_container_env": _container_environment(cluster, node),
        # A client gives up soon; a NodeManager waits for a ResourceManager that is still starting.
        "hadoop_rm_wait_ms": 300_000,
    }


def _container_environment(cluster: Cluster, node: str) -> str:
    told = {MARKER: cluster.id, MOUNTS: mounts(cluster, node)}
    if cluster.kerberos:
        told |= cluster.realm.environment_of_containers()
    return ",".join(f"{name}={value}" for name, value in told.items())


def _zookeeper_values(cluster: Cluster) -> dict[str, object]:
    return {
        "hadoop_zookeeper_dir": zookeeper(cluster) / "data",
        "hadoop_zookeeper_port": ports.ZOOKEEPER,
        "hadoop_zookeeper_name": cluster.master,
    }


def _write_fence(cluster: Cluster) -> None:
    program = cluster.state / FENCE
    program.write_text(_FENCE, encoding="ascii")
    program.chmod(0o700)


def master_values(cluster: Cluster, master: str) -> dict[str, object]:
    """The templates' variables of one of two masters; the first has the journal, too."""
    more = {"hadoop_journal_name": master} if master == cluster.master else {}
    return more | {
        "hadoop_master_name": master,
        "hadoop_name_dir": name_dir(cluster, master),
        "hadoop_zookeeper_secrets": _zookeeper_secrets(cluster),
    }


def _more_values(cluster: Cluster) -> dict[str, object]:
    """What there is of Kerberos; whoever runs the cluster may ask for its other users, from this machine."""
    if not cluster.kerberos:
        return {}
    life = {"hadoop_token_seconds": cluster.token_seconds} if cluster.token_seconds else {}
    others = {
        "hadoop_proxy_users": (cluster.user,),
        "hadoop_proxy_hosts": (LOOPBACK,),
        "hadoop_proxied_users": cluster.principals,
        "hadoop_proxied_groups": (),
    }
    return cluster.realm.values() | others | life | {"hadoop_protection": cluster.protection}


def _write(directory: Path, variables: dict[str, object]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for template in sorted(TEMPLATES.glob("*.j2")):
        file = directory / template.stem
        if file.name in (POLICY_FILE, ATTRIBUTES_FILE) and not _is_due(file, variables):
            continue
        file.write_text(fill(template.name, variables), encoding="utf-8")
    if variables["hadoop_kerberos"]:
        for name in ("ssl-server.xml", "ssl-client.xml"):
            write_own(directory / name, fill(f"kerberos/{name}.j2", variables).encode())


def _is_due(file: Path, variables: dict[str, object]) -> bool:
    """Whether a file that its owner edits, and that is read again, has to be made; two masters share the clients'."""
    return bool(variables["hadoop_plugin"]) and not file.exists() and "hadoop_master_name" not in variables
