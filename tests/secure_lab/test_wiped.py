"""What uninstall.yml leaves of Kerberos and of two masters: nothing. Its name comes last, for it ends the cluster."""

from __future__ import annotations

import pytest

import lab
from lab.places import SECURE
from tests.lab.playbooks import changes, play

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(1800)]

NAMES = ("master", "second", "worker1", "worker2", "worker3")
PLACES = ("/etc/krb5.conf", "/etc/security/keytabs", "/var/lib/nodewise-kdc", "/etc/hadoop", "/var/lib/hadoop")
LEFT = f"""
ls -d {" ".join(PLACES)} 2> /dev/null
systemctl list-units --all --plain --no-legend 'nodewise*' 'hadoop*'
systemctl list-unit-files --no-legend 'nodewise*' 'hadoop*'
pgrep -a krb5kdc
true
"""


def test_of_a_whole_cluster_nothing_is_left() -> None:
    assert lab.run("master", ["sudo", "sh", "-c", LEFT])

    changes(play("uninstall.yml", "-e", "sure=true", inventory=SECURE))

    assert [line for name in NAMES for line in lab.run(name, ["sudo", "sh", "-c", LEFT]).splitlines()] == []
