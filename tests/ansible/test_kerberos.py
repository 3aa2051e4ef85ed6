"""What the playbook writes onto the machines of a cluster with Kerberos, and of one without."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ansible.rendering import HADOOP, PROGRAMS, ROLES, SITE, Texts, keys, render, unit
from tests.ansible.test_units import start_command

MACHINES = {"master": ["head"], "workers": ["worker1"]}
SERVICE = {
    "infosvc.service": ("infosvc/templates/nodewise-infosvc.service.j2", ""),
    "infosvc.env": ("infosvc/templates/infosvc.env.j2", ""),
    "nodewise.sh": ("infosvc/templates/nodewise.sh.j2", ""),
    "client.env": ("infosvc/templates/client.env.j2", ""),
}
TEMPLATES = {**SITE, **PROGRAMS, **SERVICE, **unit("namenode"), **unit("nodemanager")}
SECURE = {
    **TEMPLATES,
    "krb5.conf": (f"{HADOOP}/kerberos/krb5.conf.j2", ""),
    "kdc.service": ("kdc/templates/nodewise-kdc.service.j2", ""),
    "ssl-server.xml": (f"{HADOOP}/kerberos/ssl-server.xml.j2", ""),
    "ssl-client.xml": (f"{HADOOP}/kerberos/ssl-client.xml.j2", ""),
}
REALM = "LAB.EXAMPLE.ORG"
TOLD = {"hadoop_realm": REALM, "kdc_users": ["alice"], "hadoop_protection": "privacy", "hadoop_kdc": "head:88"}
OF_KERBEROS = ("kerberos", "keytab", "krb5", "kinit", "principal", "https", "ticket", "ssl.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of the inventory of the cluster with Kerberos."""
    return tmp_path_factory.mktemp("secure")


@pytest.fixture(scope="module")
def secure(folder: Path) -> dict[str, Texts]:
    """What the machines of a cluster with Kerberos are given."""
    return render(folder, MACHINES, {"hadoop_kerberos": True, **TOLD}, SECURE)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Texts]:
    """What they are given without it."""
    return render(tmp_path_factory.mktemp("plain"), MACHINES, {}, TEMPLATES)


def lines(text: str) -> set[str]:
    return set(text.splitlines())


def test_without_it_nothing_of_it_is_written(plain: dict[str, Texts]) -> None:
    for texts in plain.values():
        for name, text in texts.items():
            said = [line for line in text.splitlines() if not line.startswith(("NODEWISE_URL=", "Documentation="))]
            assert [line for line in said if any(word in line.lower() for word in OF_KERBEROS)] == [], name


def test_its_variables_change_nothing_without_it(plain: dict[str, Texts], tmp_path: Path) -> None:
    told = {**TOLD, "kdc_host": "kdc", "hadoop_namenode_https_port": 1, "hadoop_proxy_users": ["nodewise"]}
    told |= {"hadoop_kerberos": False, "infosvc_log_in_by_ticket": True}

    assert render(tmp_path, MACHINES, told, TEMPLATES) == plain


def test_daemons_have_the_names_of_their_machines_and_keytabs_of_their_own_users(secure: dict[str, Texts]) -> None:
    hdfs, yarn = (keys(secure["worker1"][f"{name}-site.xml"]) for name in ("hdfs", "yarn"))

    for daemon in ("namenode", "datanode", "journalnode"):
        assert hdfs[f"dfs.{daemon}.kerberos.principal"] == f"{daemon[0]}n/_HOST@{REALM}"
    assert yarn["yarn.nodemanager.principal"] == f"nm/_HOST@{REALM}"
    assert yarn["yarn.resourcemanager.principal"] == f"rm/_HOST@{REALM}"
    assert hdfs["dfs.datanode.keytab.file"] == "/etc/security/keytabs/${user.name}/dn.keytab"
    secret = keys(secure["head"]["core-site.xml"])["hadoop.http.authentication.signature.secret.file"]
    assert secret == "/etc/security/keytabs/${user.name}/http-secret"


def test_the_names_that_daemons_have_become_their_users(secure: dict[str, Texts]) -> None:
    rules = keys(secure["head"]["core-site.xml"])["hadoop.security.auth_to_local"].split()

    assert rules == [
        f"RULE:[2:$1@$0]([ndj]n@{REALM})s/.*/hdfs/",
        f"RULE:[2:$1@$0]([rn]m@{REALM})s/.*/yarn/",
        "DEFAULT",
    ]


def test_a_proxy_user_asks_from_a_master_for_users_that_the_inventory_names(
    secure: dict[str, Texts], tmp_path: Path
) -> None:
    told = {"hadoop_kerberos": True, **TOLD, "hadoop_proxy_users": ["nodewise"]}
    other = told | {"hadoop_proxy_hosts": ["web"], "hadoop_proxied_users": [], "hadoop_proxied_groups": ["research"]}

    assert proxies(secure) == {}
    assert proxies(render(tmp_path / "usual", MACHINES, told, SITE)) == {"hosts": "head", "users": "alice"}
    assert proxies(render(tmp_path / "other", MACHINES, other, SITE)) == {"hosts": "web", "groups": "research"}


def proxies(texts: dict[str, Texts]) -> dict[str, str]:
    """What the master is told of the service as a proxy user."""
    said = keys(texts["head"]["core-site.xml"])
    start = "hadoop.proxyuser.nodewise."
    return {name.removeprefix(start): value for name, value in said.items() if name.startswith(start)}


def test_hdfs_shows_its_pages_over_https_by_the_playbooks_authority(secure: dict[str, Texts]) -> None:
    hdfs = keys(secure["worker1"]["hdfs-site.xml"])
    server, client = (keys(secure["worker1"][f"ssl-{name}.xml"]) for name in ("server", "client"))

    assert hdfs["dfs.namenode.https-address"] == "head:9871"
    assert hdfs["dfs.datanode.https.address"] == "worker1:9865"
    assert server["ssl.server.keystore.location"] == "/etc/security/keytabs/hdfs/pages.p12"
    assert len(server["ssl.server.keystore.password"]) == 32
    assert client["ssl.client.truststore.location"] == "/etc/ssl/certs/java/cacerts"


def test_the_service_shows_a_ticket_of_its_own(secure: dict[str, Texts], plain: dict[str, Texts]) -> None:
    keytab = "/etc/security/keytabs/nodewise/nodewise.keytab"
    said = lines(secure["head"]["infosvc.env"])

    assert {f"KRB5_CLIENT_KTNAME={keytab}", f"NODEWISE_KEYTAB={keytab}"} <= said
    assert "HADOOP_USER_NAME=nodewise" in lines(plain["head"]["infosvc.env"]) - said


TICKETS = {
    "infosvc.service": SERVICE["infosvc.service"],
    "infosvc.env": SERVICE["infosvc.env"],
    "places": ("{folder}/places.j2", ""),
}


@pytest.mark.parametrize(("told", "takes"), [({}, True), ({"infosvc_log_in_by_ticket": False}, False)])
def test_the_service_believes_tickets_by_a_keytab_of_its_own_on_its_own_machine(
    tmp_path: Path, told: dict[str, object], takes: bool
) -> None:
    (tmp_path / "places.j2").write_text("{{ kdc_places | selectattr('user', 'eq', nodewise_user) | to_json }}")
    templates = {name: (source.format(folder=tmp_path), item) for name, (source, item) in TICKETS.items()}
    machines = MACHINES | {"master": ["head", "second"]}
    texts = render(tmp_path, machines, {"hadoop_kerberos": True, **TOLD, **told}, templates)
    command = start_command(texts["head"]["infosvc.service"])
    shown = command[command.index("--submit") + 1 :]
    places = {host: [place["name"] for place in json.loads(text["places"])] for host, text in texts.items()}

    assert shown == (["--spnego-keytab", "/etc/security/keytabs/nodewise/HTTP.keytab"] if takes else [])
    assert ("KRB5RCACHEDIR=/var/lib/nodewise/service" in lines(texts["head"]["infosvc.env"])) == takes
    assert places == {"head": ["nodewise", "HTTP"] if takes else ["nodewise"], "second": ["nodewise"], "worker1": []}
    assert "\nRestart=on-failure\n" in texts["head"]["infosvc.service"]


PRINTS = '#!/bin/sh\nprintf "%s %s\\n" "$(basename "$0")" "$*"\nenv | grep -E "^(KRB5|NODEWISE_(KEYTAB|HOME))" | sort\n'


def run(folder: Path, text: str, user: str, *words: str, **environment: str) -> list[str]:
    """What a program of the machines does, where Java, Python, kinit and id only say how they were called."""
    for name in ("kinit", "jre/bin/java", "service/bin/python", "id", "program"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\necho {user}\n" if name == "id" else text if name == "program" else PRINTS)
        file.chmod(0o755)
    (folder / "program").write_text(text.replace("/opt/nodewise", str(folder)))
    environment |= {"PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run([folder / "program", *words], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("host", "program", "user", "principal"),
    [
        ("head", "hdfs", "hdfs", "nn/head"),
        ("head", "yarn", "yarn", "rm/head"),
        ("worker1", "hdfs", "hdfs", "dn/worker1"),
    ],
)
def test_commands_of_daemons_users_get_a_ticket_by_a_keytab(
    secure: dict[str, Texts], tmp_path: Path, host: str, program: str, user: str, principal: str
) -> None:
    text = secure[host][program].replace("/usr/lib/jvm/java-17-openjdk-amd64", f"{tmp_path}/jre")
    keytab = f"/etc/security/keytabs/{user}/{principal.split('/')[0]}.keytab"
    cache = f"KRB5CCNAME=FILE:/var/lib/hadoop/{user}/tickets"

    said = run(tmp_path, text, user, "version")

    assert said[:2] == [f"kinit -k -t {keytab} {principal}@{REALM}", cache]
    assert said[2].startswith("java ") and said[3] == cache


def test_nobody_elses_commands_do(secure: dict[str, Texts], tmp_path: Path) -> None:
    text = secure["head"]["hdfs"].replace("/usr/lib/jvm/java-17-openjdk-amd64", f"{tmp_path}/jre")

    assert run(tmp_path, text, "alice", "version")[0].startswith("java ")
    assert run(tmp_path, text, "hdfs", "namenode", HADOOP_DAEMON_OPTS="-Xmx9m")[0].startswith("java -Xmx9m ")
    assert run(tmp_path, text, "hdfs", "version", KRB5CCNAME="FILE:/mine")[1:] == ["KRB5CCNAME=FILE:/mine"]


def test_the_command_nodewise_is_the_service_for_its_own_user_alone(secure: dict[str, Texts], tmp_path: Path) -> None:
    settings = tmp_path / "client.env"
    settings.write_text("")
    text = secure["head"]["nodewise.sh"].replace("/etc/nodewise/client.env", str(settings))
    keytab = "/etc/security/keytabs/nodewise/nodewise.keytab"

    assert run(tmp_path, text, "alice", "job")[1:] == []
    assert run(tmp_path, text, "nodewise", "job")[1:] == [
        "KRB5CCNAME=FILE:/var/lib/nodewise/tickets",
        f"KRB5_CLIENT_KTNAME={keytab}",
        f"NODEWISE_KEYTAB={keytab}",
    ]


def test_who_may_not_read_the_home_of_the_service_has_another_one(plain: dict[str, Texts], tmp_path: Path) -> None:
    settings, home = tmp_path / "client.env", tmp_path / "home"
    settings.write_text(f"NODEWISE_HOME={home}\n")
    text = plain["head"]["nodewise.sh"].replace("/etc/nodewise/client.env", str(settings))

    assert run(tmp_path, text, "alice", "login")[1:] == []
    home.mkdir()
    assert run(tmp_path, text, "nodewise", "login")[1:] == [f"NODEWISE_HOME={home}"]


@pytest.mark.parametrize("program", ["hdfs", "yarn"])
def test_commands_are_sound_shell(secure: dict[str, Texts], tmp_path: Path, program: str) -> None:
    file = tmp_path / program
    file.write_text(secure["head"][program])
    checker = Path(sys.executable).with_name("shellcheck")

    assert subprocess.run([checker, file], capture_output=True, text=True, check=False).stdout == ""


def test_the_kdc_can_open_its_port_and_its_database_and_nothing_else(secure: dict[str, Texts]) -> None:
    said = lines(secure["head"]["kdc.service"])

    assert {"CapabilityBoundingSet=CAP_NET_BIND_SERVICE", "ProtectSystem=strict", "NoNewPrivileges=true"} <= said
    assert {
        "ReadWritePaths=/var/lib/nodewise-kdc",
        "Environment=KRB5_KDC_PROFILE=/var/lib/nodewise-kdc/kdc.conf",
    } <= said


@pytest.mark.usefixtures("secure")
def test_a_password_that_was_made_is_the_operators_alone(folder: Path) -> None:
    assert stat.S_IMODE((folder / "secrets" / "store_password").stat().st_mode) == 0o600


def test_a_machine_that_its_address_calls_otherwise_is_found() -> None:
    script = (ROLES / "kdc/files/other_names.py").read_text()
    words = [sys.executable, "-c", script, "localhost", "127.0.0.1", "no-such-name.invalid"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()

    assert said[0] == "127.0.0.1 of 127.0.0.1 leads to localhost"
    assert said[1].startswith("the address of no-such-name.invalid leads to no name")
    assert len(said) == 2


def test_no_task_gives_a_secret_as_an_argument_or_to_the_log() -> None:
    """What is secret comes by stdin or as a file's content, in tasks that nothing is logged of."""
    secrets = ("hadoop_key_store_password", "kdc_cookie_secret", "builtin.password")
    for file in (*ROLES.glob("kdc/tasks/*.yml"), *ROLES.glob("hadoop/tasks/*.yml")):
        for task in file.read_text().split("- name: "):
            if any(word in task for word in secrets):
                assert "no_log: true" in task, task
                for line in task.splitlines():
                    if any(word in line for word in secrets):
                        assert line.strip().startswith(("stdin:", "content:")), line
