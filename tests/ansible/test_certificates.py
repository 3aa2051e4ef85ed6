"""The tasks that make certificates, run by ansible itself on this machine, into a folder of the test."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOK = ROOT / ".venv-ansible" / "bin" / "ansible-playbook"
DAY = 86_400

# On a busy machine each run of Ansible takes a minute.
pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("unless_tried_in_the_lab")]

PLAY = """
- hosts: master
  gather_facts: false
  tasks:
    - ansible.builtin.import_role: {name: infosvc, tasks_from: certificates}
- hosts: workers
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: infosvc
        tasks_from: certificate
        apply: {delegate_to: master}
      vars:
        infosvc_holder: "{{ inventory_hostname }}"
        infosvc_file: "{{ infosvc_agents_dir }}/{{ inventory_hostname }}"
"""


# This machine has no systemd that could restart anything, so what it would be told is written down.
SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/told"
[ "$1" != show ] || printf 'LoadState=loaded\\nActiveState=active\\n'
"""


class Authority:
    """The folder of a master's certificates, and what ansible makes of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tls = folder / "conf" / "tls"
        self.told = folder / "bin" / "told"

    def run(self, address: str = "10.9.0.10", limit: str = "all", **given: object) -> str:
        """Run the tasks for a master at this address, on the hosts of `limit` alone; what ansible printed."""
        (self.folder / "conf").mkdir(exist_ok=True)
        self._stand_in_for_systemd()
        values = {"nodewise_conf_dir": str(self.folder / "conf"), "nodewise_user": "root"} | given
        inventory = self.folder / "inventory.yml"
        local = "{ansible_connection: local, ansible_python_interpreter: /usr/bin/python3, ansible_host: %s}"
        hosts = {"master": {"master": address}, "workers": {"worker1": "10.9.0.11", "worker2": "worker2.example.org"}}
        text = "".join(
            f"{group}:\n  hosts:\n" + "".join(f"    {name}: {local % address}\n" for name, address in members.items())
            for group, members in hosts.items()
        )
        inventory.write_text(text)
        play = self.folder / "play.yml"
        play.write_text(PLAY)
        argv = [str(PLAYBOOK), "-i", str(inventory), str(play), "-e", json.dumps(values, default=str)]
        argv += ["--limit", limit]
        settings = {"ANSIBLE_CONFIG": str(ROOT / "ansible" / "ansible.cfg"), "ANSIBLE_HOME": f"{self.folder}/ansible"}
        settings["ANSIBLE_ROLES_PATH"] = str(ROOT / "ansible" / "roles")
        settings["PATH"] = f"{self.told.parent}:{os.environ['PATH']}"
        done = subprocess.run(argv, capture_output=True, text=True, env=os.environ | settings)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def verify(self, name: str, *words: str) -> bool:
        """Whether openssl believes the certificate, as a caller of this host or address would ask."""
        argv = ["openssl", "verify", "-purpose", "sslserver", "-x509_strict", "-CAfile", f"{self.tls}/authority.pem"]
        done = subprocess.run([*argv, *words, str(self.tls / f"{name}.pem")], capture_output=True, text=True)
        return done.returncode == 0

    def files(self) -> dict[str, bytes]:
        """Every file, by its name."""
        return {str(file.relative_to(self.tls)): file.read_bytes() for file in self.tls.rglob("*") if file.is_file()}

    def restarted(self) -> bool:
        """Whether the last run had the service take a new certificate."""
        return "restart nodewise-infosvc" in self.told.read_text().splitlines()

    def _stand_in_for_systemd(self) -> None:
        self.told.parent.mkdir(exist_ok=True)
        self.told.write_text("")
        systemctl = self.told.with_name("systemctl")
        systemctl.write_text(SYSTEMCTL)
        systemctl.chmod(0o755)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """What the first run makes; tests that run again take `again`."""
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    authority.run()
    assert authority.restarted()
    return authority


@pytest.fixture
def again(made: Authority, tmp_path: Path) -> Authority:
    """The same in a folder of its own."""
    return Authority(shutil.copytree(made.folder, tmp_path / "again"))


def test_the_service_is_believed_under_its_name_and_its_address(made: Authority) -> None:
    assert made.verify("service", "-verify_hostname", "master", "-verify_ip", "10.9.0.10")
    assert not made.verify("service", "-verify_hostname", "worker1")
    assert not made.verify("service", "-verify_ip", "10.9.0.11")


def test_each_agent_is_believed_under_its_own_name_alone(made: Authority) -> None:
    assert made.verify("agents/worker1", "-verify_hostname", "worker1", "-verify_ip", "10.9.0.11")
    assert made.verify("agents/worker2", "-verify_hostname", "worker2.example.org")
    assert not made.verify("agents/worker2", "-verify_hostname", "worker1")


def test_a_key_belongs_to_its_certificate_and_python_takes_the_pair(made: Authority) -> None:
    for name in ("service", "agents/worker1", "agents/worker2"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.tls / f"{name}.pem", made.tls / f"{name}.key")


def test_an_agent_cannot_sign_certificates(made: Authority, tmp_path: Path) -> None:
    agent, forged = made.tls / "agents" / "worker1", tmp_path / "forged.pem"
    argv = ["openssl", "req", "-x509", "-new", "-config", str(made.tls / "service.cnf"), "-days", "9"]
    argv += ["-key", f"{made.tls}/service.key", "-CA", f"{agent}.pem", "-CAkey", f"{agent}.key", "-out", str(forged)]
    subprocess.run(argv, check=True, capture_output=True)
    chain = ["openssl", "verify", "-CAfile", f"{made.tls}/authority.pem", "-untrusted", f"{agent}.pem", str(forged)]

    assert subprocess.run(chain, capture_output=True).returncode != 0


def test_keys_are_their_owners_alone(made: Authority) -> None:
    keys = sorted(made.tls.rglob("*.key"))

    assert [key.stem for key in keys] == ["worker1", "worker2", "authority", "service"]
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    assert stat.S_IMODE((made.tls / "agents").stat().st_mode) == 0o700


def test_a_second_run_changes_nothing(again: Authority) -> None:
    before = again.files()

    said = again.run()

    assert said.count("changed=0") == len(("master", "worker1", "worker2"))
    assert again.files() == before
    assert not again.restarted()


def test_what_ends_soon_is_renewed_with_the_same_key(again: Authority) -> None:
    before, later = again.files(), ("-attime", str(int(time.time()) + 500 * DAY))
    assert not again.verify("service", *later)

    again.run(infosvc_renewal_days=400, infosvc_certificate_days=800)

    assert again.restarted()
    assert again.verify("service", *later, "-verify_hostname", "master")
    assert again.verify("agents/worker1", *later, "-verify_hostname", "worker1")
    changed = {name for name, text in again.files().items() if text != before[name]}
    assert changed == {"service.pem", "agents/worker1.pem", "agents/worker2.pem"}


def test_another_address_of_the_master_means_another_certificate_for_it_alone(again: Authority) -> None:
    before = again.files()

    again.run(address="10.9.0.99", limit="master,worker1")

    assert again.verify("service", "-verify_ip", "10.9.0.99", "-verify_hostname", "master")
    assert again.restarted()
    assert {name for name, text in again.files().items() if text != before[name]} == {"service.cnf", "service.pem"}


def test_an_authority_that_ends_is_renewed_and_what_it_signed_stays_good(again: Authority) -> None:
    before = again.files()

    days: dict[str, Any] = {"infosvc_authority_days": 8000, "infosvc_certificate_days": 7000}
    again.run(limit="master", infosvc_renewal_days=4000, **days)

    now = again.files()
    assert now["authority.pem"] != before["authority.pem"]
    assert now["authority.key"] == before["authority.key"]
    (again.tls / "older.pem").write_bytes(before["agents/worker1.pem"])
    assert again.verify("older", "-verify_hostname", "worker1")


PERMITTED = ["DNS:master", "DNS:worker1", "DNS:example.org", "DNS:worker2", "IP:10.9.0.0/255.255.255.0"]


def test_an_authority_certifies_nothing_beyond_what_it_is_permitted(again: Authority) -> None:
    before = again.files()
    again.run(infosvc_authority_permits=PERMITTED)
    told = again.files()

    assert again.restarted()
    assert {name for name, text in told.items() if text != before[name]} == {"authority.cnf", "authority.pem"}
    assert again.verify("service", "-verify_hostname", "master", "-verify_ip", "10.9.0.10")
    assert again.verify("agents/worker2", "-verify_hostname", "worker2.example.org")

    stranger = again.tls / "stranger"
    for name, good in (("elsewhere.example.com", False), ("other.example.org", True)):
        asked = again.tls.joinpath("service.cnf").read_text().replace("DNS:master", f"DNS:{name}")
        stranger.with_suffix(".cnf").write_text(asked)
        argv = ["openssl", "req", "-x509", "-new", "-config", f"{stranger}.cnf", "-key", f"{again.tls}/service.key"]
        argv += ["-CA", f"{again.tls}/authority.pem", "-CAkey", f"{again.tls}/authority.key", "-out", f"{stranger}.pem"]
        subprocess.run(argv, check=True, capture_output=True)
        assert again.verify("stranger", "-verify_hostname", name) is good


def test_a_machine_that_the_authority_may_not_certify_is_refused(again: Authority) -> None:
    with pytest.raises(AssertionError, match="add both to infosvc_authority_permits"):
        again.run(address="10.77.0.10", limit="master", infosvc_authority_permits=PERMITTED)


def test_an_operators_own_certificate_is_taken_whole(again: Authority) -> None:
    given = {"cert": "agents/worker1.pem", "key": "agents/worker1.key", "ca": "authority.pem"}
    own: dict[str, Any] = {
        f"infosvc_tls_{kind}": shutil.copy(again.tls / file, again.folder / kind) for kind, file in given.items()
    }

    again.run(limit="master", **own)

    assert again.restarted()
    assert again.files()["service.pem"] == again.files()["agents/worker1.pem"]
    assert again.files()["service.key"] == again.files()["agents/worker1.key"]
    assert stat.S_IMODE((again.tls / "service.key").stat().st_mode) == 0o600


def test_half_of_an_own_certificate_is_refused(again: Authority) -> None:
    with pytest.raises(AssertionError, match="belong together"):
        again.run(limit="master", infosvc_tls_cert=str(again.tls / "service.pem"))
