"""Two services as the playbook has them run, with its settings, certificates and accounts, on a real MariaDB.

Their machines are two addresses of this one, and whatever lies below / on them is in a folder of each.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ansible.conftest import ROOT, Answer, played
from tests.ansible.rendering import ROLES, Texts, render
from tests.ansible.test_kerberos import SERVICE
from tests.ansible.test_units import start_command
from tests.infosvc.conftest import SBIN, MariaDB, database_server
from tests.ports import free_port

FIRST, SECOND, DATABASE = "127.0.0.2", "127.0.0.3", "127.0.0.1"
MACHINES = {"master": [FIRST, SECOND], "workers": [DATABASE]}
PASSWORD = 'it\'s a "word" with \\ in it'
PATIENCE_SECONDS = 120.0
TEMPLATES = {
    "infosvc.service": SERVICE["infosvc.service"],
    "infosvc.env": SERVICE["infosvc.env"],
    "client.env": SERVICE["client.env"],
    "nodewise.cnf": ("mariadb/templates/nodewise.cnf.j2", ""),
}
# This machine has no systemd, so what it would be told is written down.
SYSTEMCTL = '#!/bin/sh\necho "$*" >> "$0.told"\necho LoadState=loaded\necho ActiveState=active\n'

Play = tuple[str, str, Sequence[str], dict[str, Any]]
"""A machine, a role, the names of files with tasks, and variables."""

pytestmark = [
    pytest.mark.usefixtures("unless_tried_in_the_lab"),
    pytest.mark.skipif(os.geteuid() != 0, reason="roles make files of root's"),
    pytest.mark.timeout(1800),  # on a busy machine each run of Ansible takes a minute
]


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


@dataclass
class Site:
    """A folder for all that the playbook leaves on machines, and what the inventory tells."""

    folder: Path
    told: dict[str, Any]

    def play(self, *plays: Play, **more: object) -> Answer:
        """Run tasks of roles as the playbook includes them."""
        path = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        book = [
            {
                "hosts": machine,
                "gather_facts": False,
                "environment": path,
                "tasks": [{"include_role": {"name": role, "tasks_from": name}, "vars": variables} for name in names],
            }
            for machine, role, names, variables in plays
        ]
        (self.folder / "play.yml").write_text(json.dumps(book))
        (self.folder / "told.json").write_text(json.dumps(self.told | more))
        groups = {group: {"hosts": dict.fromkeys(names)} for group, names in MACHINES.items()}
        inventory = {"all": {"children": groups, "vars": {"ansible_connection": "local"}}}
        answer = played(self.folder, self.folder / "play.yml", inventory, "-e", f"@{self.folder}/told.json", "--diff")
        assert answer.returncode == 0, answer.stdout[-6000:]
        assert "PRIVATE KEY" not in answer.stdout
        return answer

    @property
    def systemctl(self) -> list[str]:
        """What systemd was told."""
        return (self.folder / "bin/systemctl.told").read_text().splitlines()

    def below(self, machine: str, text: str) -> str:
        """The text, with this machine's own folder in place of the folder of all."""
        return text.replace(f"{self.folder}/", f"{self.folder}/{machine}/")

    def file(self, machine: str, name: str) -> Path:
        """A file of a machine."""
        return self.folder / machine / name


@dataclass
class Pair:
    """Two machines with a service each, as their unit and settings say."""

    site: Site
    texts: dict[str, Texts]

    def settings(self, machine: str, name: str) -> dict[str, str]:
        """What a file of settings tells programs on this machine."""
        lines = self.site.below(machine, self.texts[machine][name]).splitlines()
        told = [shlex.split(line)[0].split("=", 1) for line in lines if "=" in line and not line.startswith("#")]
        return dict(told)

    def environment(self, settings: dict[str, str]) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("NODEWISE_", "HADOOP_"))}
        return own | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | settings

    def database(self, machine: str) -> str:
        """The address of the database, as this machine's programs reach it from their own address."""
        return self.settings(machine, "infosvc.env")["NODEWISE_DATABASE"] + f"&bind_address={machine}"

    @contextmanager
    def serving(self, machine: str) -> Iterator[subprocess.Popen[bytes]]:
        """The service of a machine."""
        _, *words = start_command(self.site.below(machine, self.texts[machine]["infosvc.service"]))
        words.append("--no-open-reading")  # as on an address of a network
        settings = self.settings(machine, "infosvc.env") | {"NODEWISE_DATABASE": self.database(machine)}
        with subprocess.Popen([sys.executable, *words], env=self.environment(settings)) as process:
            try:
                yield process
            finally:
                process.send_signal(signal.SIGCONT)
                process.kill()

    def nodewise(self, machine: str, *words: str) -> str:
        """What the command prints on a machine."""
        settings = self.settings(machine, "client.env") | {"NODEWISE_SERVICE_TIMEOUT": f"{PATIENCE_SECONDS:g}"}
        argv = [sys.executable, "-P", "-m", "nodewise", *words]
        done = subprocess.run(argv, env=self.environment(settings), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def token(self) -> Path:
        """A file with a token that reads."""
        return self.site.folder / "conf/tokens/policy"

    def run(self, name: str, *words: str) -> Answer:
        """A program of the role, as its tasks run it."""
        text = (ROLES / "infosvc/files" / name).read_text()
        argv = [sys.executable, "-P", "-c", text, *words]
        return subprocess.run(argv, env=self.environment({}), capture_output=True, text=True, timeout=300)

    def ask(self) -> Answer:
        """Ask, as the proof of the playbook does, which of the two is active."""
        authorities = self.site.file(SECOND, "conf/tls/ca.pem")
        urls = self.settings(SECOND, "client.env")["NODEWISE_URL"].split(",")
        return self.run("one_active.py", str(self.token), str(authorities), *urls)

    def is_active(self, machine: str) -> bool:
        """Whether it is active and the other one follows it."""
        return self.ask().stdout.startswith(f"https://{machine}:")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Where the roles have made certificates for both services and for the database."""
    folder, user = tmp_path_factory.mktemp("machines"), getpass.getuser()
    told = {
        "hadoop_ha": True,
        "infosvc_ha": True,
        "infosvc_submit": False,
        "mariadb_host": DATABASE,
        "mariadb_password": PASSWORD,
        "nodewise_infosvc_port": free_port(),
        "nodewise_user": user,
        "nodewise_conf_dir": f"{folder}/conf",
        "nodewise_home": f"{folder}/home",
        "nodewise_hadoop_conf_dir": f"{folder}/hadoop",
        "mariadb_certificate": f"{folder}/mysql/nodewise",
        "nodewise_database_settings": f"{folder}/mysql/99.cnf",
        "mariadb_waiting": f"{folder}/unit/nodewise.conf",
        "infosvc_unit": f"{folder}/unit/nodewise-infosvc.service",
    }
    made = Site(folder, told)
    for name in ("bin", "conf", "mysql", SECOND):
        (folder / name).mkdir()
    (folder / "bin" / "systemctl").write_text(SYSTEMCTL)
    (folder / "bin" / "systemctl").chmod(0o755)
    second = {"infosvc_holder": SECOND, "infosvc_brought": f"{folder}/{SECOND}/service", "infosvc_reader": user}
    made.play(
        (FIRST, "infosvc", ["early"], {}),
        (DATABASE, "mariadb", ["network"], {}),
        (SECOND, "infosvc", ["bring"], second),
    )
    return made


@pytest.fixture(scope="module")
def texts(site: Site) -> dict[str, Texts]:
    """What the playbook writes onto the machines."""
    return render(site.folder / "texts", MACHINES, site.told, TEMPLATES)


@pytest.fixture(scope="module")
def server(site: Site, texts: dict[str, Texts]) -> Iterator[MariaDB]:
    """The server with the settings of the role, and the accounts that it makes."""
    lines = texts[DATABASE]["nodewise.cnf"].split("[mysqld]\n")[1].splitlines()
    told = [f"--{line.replace(' = ', '=')}" for line in lines if not line.startswith("port")]
    with database_server(*told) as made:
        words = f"{shutil.which('mariadb', path=SBIN)} --no-defaults --socket={made.directory}/socket --user=root"
        wrapper = site.folder / "bin" / "mariadb"
        wrapper.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        wrapper.chmod(0o755)
        site.told["mariadb_port"] = made.port
        site.play((DATABASE, "mariadb", ["database", "user"], {}))
        yield made


@pytest.fixture(scope="module")
def pair(site: Site, server: MariaDB) -> Pair:
    """Both machines with their files."""
    made = Pair(site, render(site.folder / "texts", MACHINES, site.told, TEMPLATES))
    made.token.parent.mkdir()
    shutil.copy2(site.folder / "conf/tls/authority.pem", site.folder / "conf/tls/ca.pem")
    certificates = {FIRST: site.folder / "conf/tls/service", SECOND: site.folder / SECOND / "service"}
    for machine, certificate in certificates.items():
        tls, hadoop = site.file(machine, "conf/tls"), site.file(machine, "hadoop")
        for place in (tls, hadoop, site.file(machine, "home/service")):
            place.mkdir(parents=True)
        shutil.copy2(site.folder / "conf/tls/authority.pem", tls / "ca.pem")
        for ending in ("pem", "key"):
            shutil.copy2(certificate.with_suffix(f".{ending}"), tls / f"service.{ending}")
        site.file(machine, "conf/database_password").write_text(f"{PASSWORD}\n")
        (hadoop / "nodewise-policy.properties").write_text("")
    return made


def test_the_server_waits_for_the_machines_address_and_nothing_starts_that_is_not_there(site: Site) -> None:
    assert "After=network-online.target" in (site.folder / "unit/nodewise.conf").read_text().splitlines()
    assert "restart mariadb" in site.systemctl
    assert "restart nodewise-infosvc" not in site.systemctl, "its certificate is new, but it was never set up"


def test_a_second_run_changes_nothing_and_there_is_one_account(site: Site, server: MariaDB) -> None:
    tasks: Play = (DATABASE, "mariadb", ["database", "user"], {})

    def changed(**more: object) -> int:
        return int(re.findall(r"changed=(\d+)", site.play(tasks, **more).stdout)[-1])

    assert changed() == 0
    assert changed(mariadb_password="another") == 1
    assert changed() == 1
    assert changed(mariadb_from="127.0.0.9") == 2, "and takes the other account away"
    assert server.sql("SELECT Host FROM mysql.user WHERE User = 'nodewise'") == [("127.0.0.9",)]
    assert changed() == 2


def test_the_account_needs_its_password_and_tls_from_its_first_moment(site: Site, server: MariaDB) -> None:
    server.sql("SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = ON")
    site.play((DATABASE, "mariadb", ["user"], {}), mariadb_user="other")
    made = "SELECT argument FROM mysql.general_log WHERE argument LIKE 'CREATE USER%'"
    [(statement,)] = server.sql("SET GLOBAL general_log = OFF", "DROP USER other@'%'", made)

    assert re.fullmatch("CREATE USER IF NOT EXISTS 'other'@'%' IDENTIFIED BY .+ REQUIRE SSL", statement)


def test_the_database_lets_the_service_in_with_its_password_and_tls_alone_and_shows_nothing_else(
    pair: Pair, server: MariaDB
) -> None:
    password = pair.site.file(FIRST, "conf/database_password")
    wrong = pair.site.folder / "wrong"
    wrong.write_text("wrong\n")

    for machine in (FIRST, SECOND):
        done = pair.run("log_in.py", pair.database(machine), str(password))
        assert (done.returncode, done.stdout, done.stderr) == (0, "nodewise@%\n", "")
    for url, file, said in (
        (pair.database(FIRST), wrong, "Access denied for user 'nodewise'@'127.0.0.2'"),
        (re.sub(r"ssl_ca=[^&]*", "ssl_disabled=true", pair.database(FIRST)), password, "'nodewise'@'127.0.0.2'"),
        (pair.database(FIRST).replace(DATABASE, "localhost"), password, "Hostname mismatch"),
    ):
        done = pair.run("log_in.py", url, str(file))
        assert done.returncode == 1 and said in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1 and PASSWORD not in done.stderr
    [(granted,)] = server.sql("SHOW GRANTS FOR nodewise@'%'")[1:]
    assert granted.startswith("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, INDEX, ALTER ON `nodewise`.* TO")


def test_the_account_can_be_for_both_masters_alone(site: Site, pair: Pair) -> None:
    tasks: Play = (DATABASE, "mariadb", ["user"], {})
    both, password = f"{FIRST}/255.255.255.254", str(site.file(FIRST, "conf/database_password"))
    site.play(tasks, mariadb_from=both)
    assert " changed=0 " in site.play(tasks, mariadb_from=both).stdout

    for machine in (FIRST, SECOND):
        assert pair.run("log_in.py", pair.database(machine), password).stdout == f"nodewise@{both}\n"
    url = pair.database(FIRST).replace(f"bind_address={FIRST}", "bind_address=127.0.0.4")
    assert "Access denied for user 'nodewise'@'127.0.0.4'" in pair.run("log_in.py", url, password).stderr
    site.play(tasks)


def test_one_is_active_the_other_follows_and_each_takes_over_from_the_other(pair: Pair) -> None:
    with ExitStack() as held:
        first = held.enter_context(pair.serving(FIRST))
        shared = [pair.site.file(FIRST, f"home/service/{name}") for name in ("token", "audit.key")]
        until(lambda: all(file.exists() for file in shared), "the first service begins")
        made = pair.nodewise(FIRST, "token", "create", "proof", "--role", "reader", "--json")
        pair.token.write_text(json.loads(made)["token"])
        assert "does not answer" in pair.ask().stderr
        for file in shared:  # as the role brings it
            shutil.copy2(file, pair.site.file(SECOND, f"home/service/{file.name}"))
        second = held.enter_context(pair.serving(SECOND))
        until(lambda: pair.is_active(FIRST), "the second one follows it")
        said = pair.site.play(*((machine, "infosvc", ["prove", "prove_two"], {}) for machine in (FIRST, SECOND)))
        assert said.stdout.count(" changed=0 ") == 2

        pair.nodewise(SECOND, "producer", "put", "note", "--kind", "program", "--time-max", "3600")
        first.kill()
        pair.nodewise(FIRST, "data", "put", "note", "worker1", "by the second")
        alone = pair.ask()
        assert alone.returncode == 1
        assert f"https://{FIRST}:{pair.site.told['nodewise_infosvc_port']} does not answer" in alone.stderr
        assert f"https://{SECOND}:{pair.site.told['nodewise_infosvc_port']} is active" in alone.stderr

        held.enter_context(pair.serving(FIRST))
        until(lambda: pair.is_active(SECOND), "the first one follows now")
        second.send_signal(signal.SIGSTOP)  # the other one ends its connection to the database
        pair.nodewise(SECOND, "data", "put", "note", "worker2", "by the first")
        assert "by the second" in pair.nodewise(FIRST, "data", "get", "note")
        second.send_signal(signal.SIGCONT)
        assert second.wait(PATIENCE_SECONDS) == 1, "so that systemd starts it again"


def test_where_one_service_is_enough_the_second_one_goes(site: Site) -> None:
    unit, token = site.folder / "unit/nodewise-infosvc.service", site.folder / "token"
    task: Play = (SECOND, "infosvc", ["no_second"], {})
    for file in (unit, token):
        file.write_text("")

    site.play(task, infosvc_second_files=[str(token)])

    assert not unit.exists() and not token.exists()
    told = site.systemctl
    assert {"stop nodewise-infosvc", "disable nodewise-infosvc"} <= set(told)
    assert "changed=0" in site.play(task, infosvc_second_files=[str(token)]).stdout
    assert site.systemctl == told, "where there is none, nothing is done"


def test_uninstalling_leaves_no_account_and_no_database(site: Site, pair: Pair, server: MariaDB) -> None:
    site.play((DATABASE, "uninstall", ["database"], {}), uninstall_database_files=[f"{site.folder}/unit/nodewise.conf"])

    assert server.sql("SELECT Host FROM mysql.user WHERE User = 'nodewise'") == []
    assert ("nodewise",) not in server.sql("SHOW DATABASES")
    assert not (site.folder / "unit").exists()


def test_uninstalling_leaves_no_unit_that_failed(site: Site) -> None:
    site.play(
        (SECOND, "uninstall", ["units"], {}), uninstall_units=["none-such.service"], uninstall_users=["none-such"]
    )

    assert "reset-failed none-such.service" in site.systemctl
