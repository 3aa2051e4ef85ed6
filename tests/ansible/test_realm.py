"""A realm that the role makes with the real Kerberos: what it gives to a machine, and that it stays as it is."""

from __future__ import annotations

import getpass
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from hadoop.local.kerberos import programs
from tests.ansible.conftest import Answer, played

REALM = "LAB.EXAMPLE.ORG"
NAMES = ("nn", "service")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="the role makes files of root's"),
    pytest.mark.usefixtures("unless_tried_in_the_lab"),
]


def play(folder: Path) -> Answer:
    """Make a realm and the keytabs of a machine below a folder; all is the caller's here."""
    user = getpass.getuser()
    settings = {"KRB5_KDC_PROFILE": f"{folder}/kdc/kdc.conf", "KRB5_CONFIG": f"{folder}/krb5.conf"}
    told = {
        "kdc_dir": f"{folder}/kdc",
        "kdc_address": "127.0.0.1",
        "kdc_maker": str(programs.find("kdb5_util")),
        "kdc_keeper": str(programs.find("kadmin.local")),
        "kdc_environment": settings | programs.libraries(programs.find("kadmin.local")),
        "kdc_users": ["alice"],
        "kdc_places": [{"user": user, "name": name} for name in NAMES],
        "hadoop_realm": REALM,
        "hadoop_kdc_plugins": str(programs.plugins() or "/usr/lib/x86_64-linux-gnu/krb5/plugins/kdb"),
        "nodewise_keytab_dir": f"{folder}/keytabs",
        "nodewise_user": "service",
        "nodewise_hdfs_user": user,
        "nodewise_yarn_user": user,
    }
    (folder / "krb5.conf").write_text(f"[libdefaults]\n  default_realm = {REALM}\n")
    steps = [
        {"import_role": {"name": "kdc", "tasks_from": name}} for name in ("realm", "users", "principals", "keytabs")
    ]
    # No unit runs here that could be restarted.
    (folder / "systemctl").write_text("#!/bin/sh\necho LoadState=loaded\necho ActiveState=active\n")
    (folder / "systemctl").chmod(0o755)
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    book = {"hosts": "head", "gather_facts": False, "tasks": steps, "environment": path}
    (folder / "make.yml").write_text(json.dumps([book]))
    (folder / "told.json").write_text(json.dumps(told))
    groups = {"master": {"hosts": {"head": {"ansible_connection": "local"}}}, "workers": {"hosts": {}}}
    return played(folder, folder / "make.yml", {"all": {"children": groups}}, "-e", f"@{folder}/told.json")


def held(keytab: Path) -> list[str]:
    """The principals in a keytab."""
    klist = programs.find("klist")
    environment = {**os.environ, **programs.libraries(klist)}
    done = subprocess.run([klist, "-k", keytab], env=environment, capture_output=True, text=True, check=True)
    return re.findall(r"^ +\d+ (\S+)$", done.stdout, re.MULTILINE)


def changed(answer: Answer) -> int:
    assert answer.returncode == 0, answer.stdout[-4000:]
    return int(re.findall(r"changed=(\d+)", answer.stdout)[-1])


def test_a_machine_gets_its_own_keytabs_and_a_second_run_brings_back_what_was_lost_alone(tmp_path: Path) -> None:
    first = play(tmp_path)
    keytabs = {name: tmp_path / "keytabs" / getpass.getuser() / f"{name}.keytab" for name in NAMES}

    assert changed(first) > 0
    assert {name: held(file) for name, file in keytabs.items()} == {
        "nn": [f"nn/head@{REALM}"],
        "service": [f"service@{REALM}"],
    }
    made = [*keytabs.values(), keytabs["nn"].with_name("http-secret"), *(tmp_path / "kdc").glob("*[a-z]")]
    assert [file for file in made if file.stat().st_mode & 0o077] == []
    secret = (tmp_path / "secrets" / "cookie_secret").read_text().strip()
    assert secret == keytabs["nn"].with_name("http-secret").read_text()
    assert secret not in first.stdout
    before = {file: file.read_bytes() for file in keytabs.values()}

    keytabs["nn"].unlink()
    assert changed(play(tmp_path)) == 1, "nothing but the keytab that was lost"
    assert {file: file.read_bytes() for file in keytabs.values()} == before
