"""What uninstall.yml leaves of a worker and of a master: nothing. Its name comes last, for it ends the cluster."""

from __future__ import annotations

import pytest

import lab
from lab import disks
from tests.lab.playbooks import changes, datanodes, nodemanagers, play, until

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(1800)]

WORKERS = ("worker1", "worker2", "worker3", "worker4")
# Prints all that is left of nodewise and its Hadoop: users, units, processes, files by name and by owner, names of
# machines, authorities that are believed.
LEFT = r"""
getent passwd nodewise hdfs yarn; getent group nodewise hdfs yarn hadoop
systemctl list-units --all --plain --no-legend 'nodewise*' 'hadoop*'
systemctl list-unit-files --no-legend 'nodewise*' 'hadoop*'
ps -eo user:32,args --no-headers | grep -E 'org\.apache\.hadoop|/opt/nodewise/|agent\.pyz'
find / -xdev \( -nouser -o -nogroup -o -iname '*nodewise*' -o -iname '*hadoop*' -o -iname '*hdfs*' \)
grep -n nodewise /etc/hosts
find -L /etc/ssl/certs -type l
keytool -list -cacerts -storepass changeit 2>/dev/null | grep -i nodewise
[ ! -e /usr/bin/mariadb ] || mariadb -N -e "show databases like '%nodewise%'"
[ ! -e /usr/bin/mariadb ] || mariadb -N -e "select user from mysql.user where user like '%nodewise%'"
"""


def left(name: str) -> list[str]:
    """What of nodewise is on a machine; what asks for it is a process, too, and leaves itself out."""
    found = lab.run(name, ["sudo", "sh", "-c", f"{{ {LEFT}\n}} | grep -v 'grep -E'; true"], timeout=120)
    return found.splitlines()


def ports(name: str) -> set[int]:
    """TCP ports on which somebody listens for other machines."""
    sockets = [line.split()[3] for line in lab.run(name, ["ss", "-H", "-t", "-l", "-n"]).splitlines()]
    return {int(socket.rpartition(":")[2]) for socket in sockets if not socket.startswith("127.")}


def test_of_a_worker_that_was_removed_nothing_is_left_and_the_others_work() -> None:
    gone, *others = reversed(WORKERS)
    disks.remember_provisioned(False)
    changes(play("remove.yml", "-e", f"node={gone}"))
    assert left(gone)

    done = changes(play("uninstall.yml", "--limit", gone, "-e", "sure=true"))

    assert set(done) == {gone}
    assert left(gone) == []
    assert ports(gone) == {22}
    until(lambda: datanodes() == nodemanagers() == set(others), 60)


@pytest.mark.long
def test_of_a_whole_cluster_nothing_is_left() -> None:
    disks.remember_provisioned(False)

    changes(play("uninstall.yml", "-e", "sure=true"))

    assert [line for name in ("master", *WORKERS) for line in left(name)] == []
    assert {port for name in ("master", *WORKERS) for port in ports(name)} == {22}
