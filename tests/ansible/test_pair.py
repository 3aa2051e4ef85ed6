"""What the playbook writes onto the machines of a cluster with two services, and of one with a single service."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.ansible.conftest import ROOT, played
from tests.ansible.rendering import HADOOP, Texts, keys, render
from tests.ansible.test_kerberos import SERVICE, TOLD, lines
from tests.ansible.test_units import start_command

MACHINES = {"master": ["head", "second"], "workers": ["worker1", "worker2"]}
BOTH = "https://head:8400,https://second:8400"
TWO = {"hadoop_ha": True, "infosvc_ha": True, "mariadb_host": "worker2"}
TEMPLATES = {
    **SERVICE,
    "nodewise.cnf": ("mariadb/templates/nodewise.cnf.j2", ""),
    "policy": (f"{HADOOP}/nodewise-policy.properties.j2", ""),
    "attributes": (f"{HADOOP}/node_attributes.conf.j2", ""),
    "core-site.xml": (f"{HADOOP}/core-site.xml.j2", "core-site"),
}
OF_TWO = ("shared", "proxy", "second", "ssl", "verify")


def read_options(unit: str) -> dict[str, list[str]]:
    """The options of the service, and what each is given."""
    found: dict[str, list[str]] = {}
    words = start_command(unit)
    for name, value in zip(words, [*words[1:], ""], strict=True):
        if name.startswith("--"):
            found.setdefault(name, []).append(value)
    return found


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Texts]:
    """What the machines of a cluster with two services are given."""
    told = {**TWO, "nodewise_address": "192.0.2.7"}  # of either master, as far as this is about
    return render(tmp_path_factory.mktemp("pair"), MACHINES, told, TEMPLATES)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Texts]:
    """What they are given with one service and two masters."""
    return render(tmp_path_factory.mktemp("single"), MACHINES, {"hadoop_ha": True}, TEMPLATES)


def test_with_one_service_nothing_of_two_is_written(single: dict[str, Texts]) -> None:
    for name in ("infosvc.service", "infosvc.env", "client.env", "nodewise.cnf", "policy", "attributes"):
        said = single["head"][name].splitlines()
        assert [line for line in said if any(word in line.lower() for word in OF_TWO)] == [], name
    assert {"bind-address = 127.0.0.1", "port = 3306", "skip-name-resolve"} <= lines(single["head"]["nodewise.cnf"])
    env = lines(single["head"]["infosvc.env"])
    assert "NODEWISE_DATABASE=mysql+pymysql://nodewise@127.0.0.1:3306/nodewise" in env
    assert read_options(single["head"]["infosvc.service"])["--agent-ca"] == ["/etc/nodewise/tls/authority.pem"]


@pytest.mark.parametrize(("host", "other"), [("head", "second"), ("second", "head")])
def test_each_service_listens_on_its_own_machine_and_knows_the_other_one(
    pair: dict[str, Texts], host: str, other: str
) -> None:
    unit = pair[host]["infosvc.service"]
    options = read_options(unit)

    assert options["--host"] == [host]
    assert options["--shared-with"] == [f"https://{other}:8400"]
    assert options["--trusted-proxy"] == ["192.0.2.7"]
    assert options["--agent-ca"] == ["/etc/nodewise/tls/ca.pem"], "by which it believes the other one, too"
    assert "--submit" in options
    assert {f"Documentation=https://{host}:8400/api/v1/", "Restart=on-failure", "StartLimitIntervalSec=0"} <= lines(
        unit
    )


def test_where_no_address_is_known_no_proxy_is_trusted(tmp_path: Path) -> None:
    told = {**TWO, "nodewise_address": "second.example.org"}
    texts = render(tmp_path, MACHINES, told, {"infosvc.service": SERVICE["infosvc.service"]})

    assert "--trusted-proxy" not in read_options(texts["head"]["infosvc.service"])


def test_both_have_the_one_database_and_ask_it_who_it_is(pair: dict[str, Texts]) -> None:
    said = "NODEWISE_DATABASE=mysql+pymysql://nodewise@worker2:3306/nodewise?ssl_ca=/etc/nodewise/tls/ca.pem"

    assert [said in lines(pair[host]["infosvc.env"]) for host in MACHINES["master"]] == [True, True]
    assert {
        "bind-address = 192.0.2.7",
        "skip-name-resolve",
        "ssl_cert = /etc/mysql/nodewise.pem",
        "ssl_key = /etc/mysql/nodewise.key",
    } <= lines(pair["worker2"]["nodewise.cnf"])


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ({"ansible_host": "192.0.2.8"}, "192.0.2.8"),
        ({"ansible_host": "192.0.2.8", "machine_manage_hosts": False}, "worker2"),
    ],
)
def test_mariadb_looks_no_name_up_that_may_stand_in_etc_hosts_twice(
    tmp_path: Path, told: dict[str, Any], address: str
) -> None:
    """It would take its port at the one address twice, and end."""
    texts = render(tmp_path, MACHINES, {**TWO, **told}, {"nodewise.cnf": TEMPLATES["nodewise.cnf"]})

    assert f"bind-address = {address}" in lines(texts["worker2"]["nodewise.cnf"])


def test_a_database_of_somebody_elses_is_asked_as_its_address_says(tmp_path: Path) -> None:
    told = {**TWO, "mariadb_host": "db.example.org", "mariadb_password": "word"}
    texts = render(tmp_path, MACHINES, told, {"infosvc.env": SERVICE["infosvc.env"]})

    said = "NODEWISE_DATABASE=mysql+pymysql://nodewise@db.example.org:3306/nodewise"
    assert [said in lines(texts[host]["infosvc.env"]) for host in MACHINES["master"]] == [True, True]


def test_commands_yarn_and_nodes_know_both(pair: dict[str, Texts]) -> None:
    assert [f"NODEWISE_URL={BOTH}" in lines(pair[host]["client.env"]) for host in MACHINES["master"]] == [True, True]
    assert [f"service.url = {BOTH}" in lines(pair[host]["policy"]) for host in MACHINES["master"]] == [True, True]
    assert f"service = {BOTH}" in lines(pair["worker1"]["attributes"])


@pytest.mark.parametrize(
    ("line", "is_ours"),
    [
        ("https://head:8400", True),
        (BOTH, True),
        ("https://head:8400,https://elsewhere:9000", False),
        ("https://other:8400", False),
        ("https://head:8400/", False),
    ],
)
def test_what_was_written_once_is_told_of_another_number_of_services_unless_the_operator_wrote_it(
    known: str, line: str, is_ours: bool
) -> None:
    assert bool(re.search(f"^service = {known}", f"service = {line}")) == is_ours


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    """How the role finds the services in a file that it has written before."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "known.j2").write_text("{{ hadoop_known_services }}")
    return render(folder, MACHINES, TWO, {"known": (f"{folder}/known.j2", "")})["head"]["known"]


def test_with_kerberos_each_believes_tickets_by_a_keytab_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "places.j2").write_text("{{ kdc_places | selectattr('user', 'eq', nodewise_user) | to_json }}")
    templates = {"places": (f"{tmp_path}/places.j2", ""), "infosvc.service": SERVICE["infosvc.service"]}

    texts = render(tmp_path, MACHINES, {**TWO, "hadoop_kerberos": True, **TOLD}, templates)

    for host in MACHINES["master"]:
        assert [place["name"] for place in json.loads(texts[host]["places"])] == ["nodewise", "HTTP"]
        options = read_options(texts[host]["infosvc.service"])
        assert options["--spnego-keytab"] == ["/etc/security/keytabs/nodewise/HTTP.keytab"]
        assert len(options["--shared-with"]) == 1
    assert json.loads(texts["worker2"]["places"]) == []


def test_the_service_may_ask_hdfs_for_others_from_both_masters(tmp_path: Path) -> None:
    told = {**TWO, "hadoop_kerberos": True, **TOLD, "hadoop_proxy_users": ["nodewise"]}
    texts = render(tmp_path, MACHINES, told, {"core-site.xml": TEMPLATES["core-site.xml"]})

    assert keys(texts["head"]["core-site.xml"])["hadoop.proxyuser.nodewise.hosts"] == "head,second"


@pytest.mark.parametrize(("host", "is_refused"), [("head", True), ("worker2", False)])
def test_a_database_is_not_left_behind(tmp_path: Path, host: str, is_refused: bool) -> None:
    (tmp_path / "settings.cnf").write_text("")
    step = {"import_role": {"name": "preflight", "tasks_from": "database"}}
    (tmp_path / "look.yml").write_text(json.dumps([{"hosts": host, "gather_facts": False, "tasks": [step]}]))
    groups: dict[str, Any] = {group: {"hosts": dict.fromkeys(names)} for group, names in MACHINES.items()}
    told = {"ansible_connection": "local", "nodewise_database_settings": f"{tmp_path}/settings.cnf", **TWO}

    answer = played(tmp_path, tmp_path / "look.yml", {"all": {"children": groups, "vars": told}})

    said = "head has the database of the service, and mariadb_host is worker2: name head there, or take"
    assert (answer.returncode != 0) == is_refused, answer.stdout
    assert (said in " ".join(answer.stdout.split())) == is_refused


def test_every_play_of_services_reaches_the_second_one_too() -> None:
    for playbook in ("site.yml", "upgrade.yml"):
        text = (ROOT / "ansible" / playbook).read_text()
        (play,) = [play for play in text.split("\n- name: ") if "tasks_from: names" in play]
        assert "hosts: master[0:]\n" in play and "serial: 1\n" in play, playbook
