"""Writes Hadoop's site files for the cluster on this machine, from the templates that Ansible uses too."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hadoop.installation import ROOT
from hadoop.local import ports
from hadoop.local.state import MARKER, Cluster

TEMPLATES = ROOT / "ansible" / "roles" / "hadoop" / "templates"
PLUGIN = ROOT / "yarn-plugin"
PLUGIN_JAR = PLUGIN / "target" / "nodewise-yarn-0.1.0.jar"
POLICY_FILE = "nodewise-policy.properties"
ATTRIBUTES_FILE = "node_attributes.conf"
MOUNTS = "NODEWISE_MOUNTS"  # the variable that tells containers where the mounter of their node listens
NODE_VCORES = 2
NODE_MEMORY_MB = 6144
MASTERS_SHARE = 0.5  # of a queue, for application masters
MASTERS_SHARE_OF_GPUS = 1.0  # where GPUs are counted, of which only tasks make use, and those are their own masters


def render(cluster: Cluster) -> None:
    """Write HADOOP_CONF_DIR for clients and the master's daemons, and one directory of site files for each node."""
    _write(cluster.conf_dir, values(cluster))
    for node in cluster.nodes:
        _write(conf_dir(cluster, node), values(cluster) | node_values(cluster, node))


def conf_dir(cluster: Cluster, node: str | None) -> Path:
    """Where the site files of one node's daemons are; without a node, those of the master and of clients."""
    return cluster.conf_dir if node is None else cluster.node_dir(node) / "conf"


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
        "hadoop_rm_wait_ms": 10_000,
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
        "hadoop_datanode_ipc_port": ports.DATANODE_IPC + number,
        "hadoop_nodemanager_port": ports.NODEMANAGER,
        "hadoop_nodemanager_http_port": ports.NODEMANAGER_HTTP,
        "hadoop_node_gpus": cluster.gpus[number - 1] if cluster.gpus else 0,
        "hadoop_container_env": f"{MARKER}={cluster.id},{MOUNTS}={mounts(cluster, node)}",
        # A client gives up soon; a NodeManager waits for a ResourceManager that is still starting.
        "hadoop_rm_wait_ms": 300_000,
    }


def _write(directory: Path, variables: dict[str, object]) -> None:
    # Ansible's template module trims blocks too, so both render the same text; values go into XML, hence autoescape.
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    directory.mkdir(parents=True, exist_ok=True)
    for template in sorted(TEMPLATES.glob("*.j2")):
        file = directory / template.stem
        if file.name in (POLICY_FILE, ATTRIBUTES_FILE) and (file.exists() or not variables["hadoop_plugin"]):
            continue  # its owner edits it, and it is read again
        file.write_text(environment.get_template(template.name).render(variables), encoding="utf-8")
