"""What uninstall.yml leaves of Kerberos, two masters and two services: nothing. Its name is last, as it ends them."""

from __future__ import annotations

import pytest

import lab
from lab.places import SECURE
from tests.lab.playbooks import changes, play

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(1800)]

NAMES = ("master", "second", "worker1", "worker2", "worker3")
PLACES = (
    *("/etc/krb5.conf", "/etc/security/keytabs", "/var/lib/nodewise-kdc", "/etc/hadoop", "/var/lib/hadoop"),
    *("/etc/nodewise", "/var/lib/nodewise", "/etc/mysql/nodewise.key", "/etc/systemd/system/mariadb.service.d"),
)
LEFT = f"""
ls -d {" ".join(PLACES)} 2> /dev/null
systemctl list-units --all --plain --no-legend 'nodewise*' 'hadoop*'
systemctl list-unit-files --no-legend 'nodewise*' 'hadoop*'
pgrep -a krb5kdc
[ ! -e /usr/bin/mariadb ] || mariadb -N -e "show databases like 'nodewise'"
[ ! -e /usr/bin/mariadb ] || mariadb -N -e "select host from mysql.user where user = 'nodewise'"
true
"""


def test_of_a_whole_cluster_nothing_is_left() -> None:
    assert lab.run("master", ["sudo", "sh", "-c", LEFT])

    changes(play("uninstall.yml", "-e", "sure=true", inventory=SECURE))

    assert [line for name in NAMES for line in lab.run(name, ["sudo", "sh", "-c", LEFT]).splitlines()] == []
