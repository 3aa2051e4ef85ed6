"""Fills in the templates of roles by Ansible itself, with the roles' own defaults and what an inventory says."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.ansible.conftest import ROOT, played

ROLES = ROOT / "ansible" / "roles"
VARIABLES = [
    file
    for role in ("nodewise", "mariadb", "infosvc", "hadoop", "kdc")
    for folder in ("defaults", "vars")
    if (file := ROLES / role / folder / "main.yml").exists()
]
HADOOP = "hadoop/templates"
SITE = {f"{name}.xml": (f"{HADOOP}/{name}.xml.j2", name) for name in ("core-site", "hdfs-site", "yarn-site")}
PROGRAMS = {name: (f"{HADOOP}/bin/program.j2", name) for name in ("hdfs", "yarn")}
"""By the name of what is made: the template below the roles, and what `item` is meanwhile."""

Texts = dict[str, str]


@cache
def _facts() -> tempfile.TemporaryDirectory[str]:
    """What Ansible has found of this machine, which is the same for all machines of all inventories here."""
    return tempfile.TemporaryDirectory(prefix="facts-")


def keys(text: str) -> dict[str, str]:
    """What a site file says."""
    found = ElementTree.fromstring(text).iter("property")
    return {one.findtext("name") or "": (one.findtext("value") or "").strip() for one in found}


def unit(kind: str) -> dict[str, tuple[str, str]]:
    """The unit of a daemon."""
    return {f"{kind}.service": (f"{HADOOP}/systemd/daemon.service.j2", kind)}


def render(
    folder: Path,
    machines: Mapping[str, Sequence[str]],
    told: Mapping[str, object],
    templates: Mapping[str, tuple[str, str]],
) -> dict[str, Texts]:
    """The text of each template for each machine of these groups, where the inventory tells these variables."""
    folder.mkdir(parents=True, exist_ok=True)
    book = {
        "hosts": "all",
        "gather_subset": ["!all", "hardware"],
        "vars_files": [str(file) for file in VARIABLES],
        "tasks": [*_filling(templates), _writing(folder)],
    }
    (folder / "write.yml").write_text(json.dumps([book]))
    payload = {f"{name}.tar.gz": {"sha256": name} for name in ("service", "code")}
    (folder / "payload.json").write_text(json.dumps(payload))
    groups: dict[str, Any] = {group: {"hosts": {name: {} for name in names}} for group, names in machines.items()}
    variables = {"ansible_connection": "local", "nodewise_payload": str(folder), **told}
    inventory = {"all": {"children": groups, "vars": variables}}
    # Defaults of roles stand in files of variables here, which the inventory's would not replace.
    (folder / "told.json").write_text(json.dumps(variables))
    kept = {"GATHERING": "smart", "CACHE_PLUGIN": "jsonfile", "CACHE_PLUGIN_CONNECTION": _facts().name}
    settings = {f"ANSIBLE_{name}": value for name, value in kept.items()}
    answer = played(folder, folder / "write.yml", inventory, "-e", f"@{folder}/told.json", **settings)
    assert answer.returncode == 0, answer.stdout[-4000:]
    found: dict[str, Texts] = json.loads((folder / "texts.json").read_text())
    return found


def _filling(templates: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Tasks that fill in with the machine's own name, as the role does on masters and on workers."""
    task = {
        "set_fact": {"texts": "{{ texts | default({}) | combine({one.name: lookup('template', one.source)}) }}"},
        "loop": [
            {"name": name, "source": str(ROLES / source), "item": item} for name, (source, item) in templates.items()
        ],
        "loop_control": {"loop_var": "one"},
    }
    item, name = {"item": "{{ one.item }}"}, "{{ inventory_hostname }}"
    master = {"hadoop_master_name": name, "hadoop_zookeeper_secrets": "{{ hadoop_secrets_dir }}"}
    return [
        {**task, "vars": item | master, "when": "inventory_hostname in groups.master"},
        {**task, "vars": item | {"hadoop_node_name": name}, "when": "inventory_hostname in groups.workers"},
    ]


def _writing(folder: Path) -> dict[str, Any]:
    texts = "{{ dict(groups.all | zip(groups.all | map('extract', hostvars, 'texts'))) | to_json }}"
    return {"copy": {"content": texts, "dest": f"{folder}/texts.json", "mode": "0600"}, "run_once": True}
