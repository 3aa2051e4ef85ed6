"""What Ansible writes onto machines: site files as the local cluster has them, commands, checks."""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, meta

from hadoop.client import jre
from hadoop.local import site
from hadoop.local.files.templates import TEMPLATES
from tests.ansible.conftest import ROOT, played
from tests.ports import free_port

ROLES = ROOT / "ansible" / "roles"
DEFAULTS = [ROLES / room for room in ("nodewise/defaults/main.yml", "hadoop/defaults/main.yml", "hadoop/vars/main.yml")]
FILES = sorted(template.stem for template in TEMPLATES.glob("*.j2"))
UNITS = ["namenode", "resourcemanager", "datanode", "nodemanager"]
# What only some machines have, or only a cluster on one machine.
OPTIONAL = {
    *("hadoop_node_name", "hadoop_master_name", "hadoop_journal_name"),
    *("hadoop_container_env", "hadoop_groups", "hadoop_token_seconds", "hadoop_user", "hadoop_zookeeper_secrets"),
}


def named() -> set[str]:
    """Every variable that a template of the site files names."""
    texts = [template.read_text() for template in TEMPLATES.glob("*.j2")]
    return {name for text in texts for name in meta.find_undeclared_variables(Environment(autoescape=True).parse(text))}


def template(source: str, items: list[str], suffix: str = "", **keywords: object) -> dict[str, Any]:
    """A task that fills in a template of the role once for each item, and adds what this makes to `texts`."""
    # The lookup fills in as the module of the same name does, but starts no Python on the machine for each file.
    filled = f"lookup('template', '{source}.j2')".replace("{{ item }}", "' ~ item ~ '")
    return {
        "set_fact": {"texts": f"{{{{ texts | default({{}}) | combine({{item ~ '{suffix}': {filled}}}) }}}}"},
        "loop": items,
        **keywords,
    }


def tasks(names: list[str]) -> list[dict[str, Any]]:
    """Write all that Ansible writes, by the roles' own defaults, and what these variables are, into one file a host."""
    node = {"hadoop_node_name": "{{ inventory_hostname }}"}
    variables = "{{ {'variables.json': dict(names | zip(q('vars', *names))) | to_json} }}"
    return [
        template(f"{TEMPLATES}/{{{{ item }}}}", FILES, when="inventory_hostname in groups.master"),
        template(f"{TEMPLATES}/{{{{ item }}}}", FILES, when="inventory_hostname in groups.workers", vars=node),
        template(f"{TEMPLATES}/bin/program", ["hdfs", "yarn"]),
        template(f"{TEMPLATES}/systemd/daemon.service", UNITS, ".service"),
        {
            "copy": {"content": "{{ texts | combine(variables) | to_json }}", "dest": "{{ file }}", "mode": "0644"},
            "vars": {"names": names, "variables": variables},
        },
    ]


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all that Ansible wrote for a master and a worker, with a Java that says what it was given."""
    folder = tmp_path_factory.mktemp("machines")
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$HADOOP_CONF_DIR" "$@"\n')
    java.chmod(0o755)
    book = {
        "hosts": "all",
        "gather_subset": ["!all", "hardware"],
        "vars_files": [str(file) for file in DEFAULTS],
        "vars": {"file": f"{folder}/{{{{ inventory_hostname }}}}.json"},
        "tasks": tasks(sorted(named() - OPTIONAL)),
    }
    (folder / "write.yml").write_text(json.dumps([book]))
    groups: dict[str, Any] = {"master": {"hosts": {"head": {}}}, "workers": {"hosts": {"worker1": {}}}}
    inventory = {"all": {"children": groups, "vars": {"ansible_connection": "local"}}}

    answer = played(folder, folder / "write.yml", inventory, "-e", f"nodewise_java_home={folder}/java")

    assert answer.returncode == 0, answer.stdout
    for host in ("head", "worker1"):
        (folder / host).mkdir()
        for name, text in json.loads((folder / f"{host}.json").read_text()).items():
            (folder / host / name).write_text(text)
            (folder / host / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("host", ["head", "worker1"])
@pytest.mark.parametrize("file", FILES)
def test_ansible_and_the_local_cluster_write_the_same_text(
    machines: Path, tmp_path: Path, host: str, file: str
) -> None:
    variables = json.loads((machines / host / "variables.json").read_text())
    node = {"hadoop_node_name": host} if host == "worker1" else {}

    site._write(tmp_path, variables | node)

    assert (machines / host / file).read_text() == (tmp_path / file).read_text()


def test_an_operator_finds_every_setting_among_the_defaults() -> None:
    documented = (ROLES / "hadoop/defaults/main.yml").read_text()

    assert [
        name for name in sorted(named() - {"hadoop_node_name", "hadoop_user"}) if f"{name}: " not in documented
    ] == []


def test_a_worker_is_known_by_its_name_in_the_inventory(machines: Path) -> None:
    for file, key in (("hdfs-site.xml", "dfs.datanode.hostname"), ("yarn-site.xml", "yarn.nodemanager.hostname")):
        assert f"<name>{key}</name><value>worker1</value>" in (machines / "worker1" / file).read_text()
        assert key not in (machines / "head" / file).read_text()


def test_no_daemon_listens_on_every_address(machines: Path) -> None:
    assert [path for path in machines.glob("*/*.xml") if "0.0.0.0" in path.read_text()] == []


def run(machines: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program, *arguments = words
    argv = [str(machines / "head" / program), *arguments]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)


def test_commands_give_java_what_hadoop_needs(machines: Path) -> None:
    folder, *said = run(machines, "hdfs", "dfs", "-put", "a file", "/there").stdout.splitlines()

    assert folder == "/etc/hadoop"
    assert {*jre.OPENS, "-Xmx256m"} <= set(said)
    assert said[-6:] == [
        "-cp",
        "/etc/hadoop:/opt/nodewise/hadoop/*",
        "org.apache.hadoop.fs.FsShell",
        "-put",
        "a file",
        "/there",
    ]


def test_the_plugin_is_on_the_class_path_of_the_resourcemanager_alone(machines: Path) -> None:
    class_paths = {
        kind: run(machines, "yarn", kind).stdout.splitlines()[-2] for kind in ("resourcemanager", "nodemanager")
    }

    assert class_paths == {
        "resourcemanager": "/etc/hadoop:/opt/nodewise/plugin/nodewise-yarn.jar:/opt/nodewise/hadoop/*",
        "nodemanager": "/etc/hadoop:/opt/nodewise/hadoop/*",
    }


def test_daemons_have_their_units_options_in_place_of_the_commands(machines: Path) -> None:
    said = run(machines, "yarn", "nodemanager", HADOOP_DAEMON_OPTS="-Xmx9m -Dkey=value").stdout.splitlines()

    assert said[1:3] == ["-Xmx9m", "-Dkey=value"]
    assert "-Xmx256m" not in said


@pytest.mark.parametrize("words", [["hdfs"], ["hdfs", "resourcemanager"], ["yarn", "dfs"]])
def test_a_command_that_is_none_says_which_there_are(machines: Path, words: list[str]) -> None:
    answer = run(machines, *words)

    assert answer.returncode == 2
    assert answer.stderr.startswith(f"usage: {words[0]} ")


@pytest.mark.parametrize("program", ["hdfs", "yarn"])
def test_commands_are_sound_shell(machines: Path, program: str) -> None:
    checked = subprocess.run(
        [ROOT / ".venv/bin/shellcheck", machines / "head" / program], capture_output=True, text=True, check=False
    )

    assert checked.stdout == ""


@pytest.mark.parametrize("kind", UNITS)
def test_no_daemon_runs_as_root_or_can_become_it(machines: Path, kind: str) -> None:
    unit = (machines / "head" / f"{kind}.service").read_text().splitlines()

    assert {"User=hdfs", "User=yarn"} & set(unit)
    assert {"NoNewPrivileges=true", "CapabilityBoundingSet=", "ProtectHome=true"} <= set(unit)


@pytest.mark.parametrize(
    ("host", "kind"), [("head", kind) for kind in UNITS[:2]] + [("worker1", kind) for kind in UNITS[2:]]
)
def test_a_daemon_has_its_temporary_folder_where_nobody_else_can_make_it(machines: Path, host: str, kind: str) -> None:
    unit = (machines / host / f"{kind}.service").read_text()
    user = next(line.removeprefix("User=") for line in unit.splitlines() if line.startswith("User="))
    core = (machines / host / "core-site.xml").read_text()

    assert "<name>hadoop.tmp.dir</name><value>/var/lib/hadoop/${user.name}/tmp</value>" in core
    assert f"-Djava.io.tmpdir=/var/lib/hadoop/{user}/tmp " in unit
    writable = [line for line in unit.splitlines() if line.startswith("ReadWritePaths=")]
    assert kind == "nodemanager" or f"/var/lib/hadoop/{user}/tmp" in writable[0].split()


def test_no_role_knows_a_port_that_a_variable_holds() -> None:
    variables = {"9870": "hadoop_namenode_http_port", "8088": "hadoop_resourcemanager_http_port"}
    variables |= {"8042": "hadoop_nodemanager_http_port"}
    found = [
        line
        for file in ROLES.rglob("*")
        if file.suffix in (".yml", ".j2")
        for line in file.read_text().splitlines()
        for port, variable in variables.items()
        if re.search(rf"\b{port}\b", line) and variable not in line
    ]

    assert found == []


@pytest.mark.parametrize(
    ("role", "unit", "memory"), [("infosvc", "nodewise-infosvc", "2G"), ("agent", "nodewise-agent", "1G")]
)
def test_the_service_and_the_agent_leave_memory_and_tasks_to_others(role: str, unit: str, memory: str) -> None:
    lines = (ROLES / role / "defaults/main.yml").read_text().splitlines()
    defaults = dict(line.split(": ", 1) for line in lines if line.startswith(f"{role}_") and ": " in line)
    text = (ROLES / role / "templates" / f"{unit}.service.j2").read_text()
    lines = Environment(autoescape=True).from_string(text).render(defaults).splitlines()

    assert {f"MemoryMax={memory}", "TasksMax=512"} <= set(lines)


def test_the_service_and_the_agent_see_no_ssh_key_and_write_into_their_own_folders_alone() -> None:
    """What systemd makes of these lines is seen in the lab."""
    service = (ROLES / "infosvc/templates/nodewise-infosvc.service.j2").read_text().splitlines()
    agent = (ROLES / "agent/templates/nodewise-agent.service.j2").read_text().splitlines()

    assert {"PrivateUsers=yes", "ProtectSystem=strict", "ReadWritePaths={{ infosvc_state_dir }}"} <= set(service)
    assert "InaccessiblePaths={{ infosvc_hidden_dirs | join(' ') }}" in service
    assert {"PrivateUsers=yes", "ReadOnlyPaths={{ nodewise_home }}"} <= set(agent)
    assert "InaccessiblePaths={{ agent_ssh_dir }}" in agent


def start_command(unit: str) -> list[str]:
    """What systemd runs for the unit's ExecStart."""
    (line,) = [line for line in unit.replace("\\\n", "").splitlines() if line.startswith("ExecStart=")]
    return [word.replace("$$", "$") for word in shlex.split(line.removeprefix("ExecStart="))]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, []),
        ({"infosvc_notify_hosts": ["a.example.org", "b"]}, ["--notify-host", "a.example.org", "--notify-host", "b"]),
        ({"infosvc_notify_secret_file": "/etc/word"}, ["--notify-secret-file", "/etc/word"]),
        ({"infosvc_open_paths": ["/data", "/my 5%"]}, ["--open-path", "/data", "--open-path", "/my 5%%"]),
    ],
)
def test_the_service_is_told_where_messages_go_and_what_is_open(variables: dict[str, object], words: list[str]) -> None:
    text = (ROLES / "infosvc/templates/nodewise-infosvc.service.j2").read_text()
    rendered = Environment(autoescape=True, trim_blocks=True).from_string(text).render(infosvc_submit=True, **variables)

    command = start_command(rendered)

    assert command[command.index("--submit") + 1 :] == words
    assert "\nRestart=on-failure\n" in rendered


def test_an_agent_that_is_not_enrolled_yet_waits_for_its_program_and_then_is_it(tmp_path: Path) -> None:
    text = (ROLES / "agent/templates/nodewise-agent.service.j2").read_text()
    unit = Environment(autoescape=True).from_string(text).render(agent_directory=tmp_path)
    with subprocess.Popen(start_command(unit), stdout=subprocess.PIPE, text=True) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)

        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "agent.pyz").write_text("import os, sys\nprint(os.getpid(), *sys.argv)\n")
        (tmp_path / "current").symlink_to("new")
        told, _ = process.communicate(timeout=30)

    assert told.split() == [
        str(process.pid),
        f"{tmp_path}/current/agent.pyz",
        "--settings",
        f"{tmp_path}/settings.json",
    ]


def test_the_agent_has_the_proc_of_its_machine_as_containers_with_lxcfs_need_it() -> None:
    agent = (ROLES / "agent/templates/nodewise-agent.service.j2").read_text().splitlines()
    settings = {line.split("=")[0] for line in agent}

    assert "ReadOnlyPaths=-/sys/fs/cgroup" in agent
    assert settings.isdisjoint({"ProtectControlGroups", "ProtectKernelTunables", "ProtectProc", "ProcSubset"})


def test_containers_outlive_their_nodemanager(machines: Path) -> None:
    unit = (machines / "worker1" / "nodemanager.service").read_text().splitlines()

    assert {"KillMode=process", "OOMPolicy=continue"} <= set(unit)
    # Its end would take the containers' /tmp away.
    assert "PrivateTmp=true" not in unit


def check(name: str, *arguments: str) -> list[str]:
    script = (ROLES / "preflight/files" / name).read_text()
    # As Ansible runs it: the text as an argument.
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_taken_ports_are_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken, free = server.getsockname()[1], free_port("")

        assert check("taken_ports.py", str(taken), str(free)) == [str(taken)]


def test_names_that_only_this_machine_could_reach_are_unknown() -> None:
    assert check("unknown_names.py", "localhost", "192.0.2.1", "no-such-name.invalid") == [
        "localhost",
        "no-such-name.invalid",
    ]
