"""Copies that are made while a service and a master work bring back what they knew then."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from bench.stage import START_SECONDS
from hadoop.local import lifecycle
from hadoop.local.lifecycle import Cluster
from hadoop.rest.webhdfs import WebHdfs
from infosvc.access.audit_chain import Chain
from infosvc.access.audit_key import read_key
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Kind, Outcome, Producer, Report, Role, Run
from tests.infosvc.conftest import TOKEN, MariaDB, Served, serving
from tests.recipes.pages import block
from tests.recipes.shell import Shell, changed

PICTURE = b"P6 8 8 255\n" + bytes(range(192))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """An operator's shell, with a token as `nodewise serve` leaves it."""
    made = Shell(tmp_path / "home", tmp_path / "copies")
    token = made.home / ".nodewise" / "service" / "token"
    token.parent.mkdir(parents=True, mode=0o700)
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    return made


@contextmanager
def knowing(database: str, key: Path | None = None) -> Iterator[Served]:
    """A service that knows a value with a history, a node with a slot that has failed, and a reader."""
    with serving(database, audit_key=key and str(key)) as service:
        client = service.client
        client.put_producer(Producer("rack", "", 60, Kind.PROGRAM, keep=3600))
        client.put_producer(Producer("cpu", "scripts/cpu_count.sh", 60))
        client.put_node("n1", "127.0.0.1:9")
        client.put_slot("n1", "cpu", True)
        client.report("n1", Report("b", 1, runs=(Run("cpu", Outcome.FAILED, 0.1, reason="no /proc"),)))
        for value in ("r1", "r2"):
            client.put_value("rack", "n1", value)
            time.sleep(0.01)  # two moments in the history
        yield service


def spoil(service: Served) -> None:
    """What happens after the copy was made."""
    service.client.put_value("rack", "n1", "too late")
    service.client.put_value("rack", "n2", "too late")
    service.client.delete_node("n1")
    service.client.put_producer(Producer("later", "", 60, Kind.PROGRAM))


def check(service: Served, viewer: str) -> None:
    """All is as it was when the copy was made."""
    client = service.client
    assert [(one.node_name, one.data_value) for one in client.data("rack")] == [("n1", "r2")]
    assert [value for _, value in client.history("rack", "n1").points] == ["r1", "r2"]
    (slot,) = client.slots("n1").slots
    assert (slot.data_name, slot.running) == ("cpu", True)
    assert client.data("cpu")[0].reason == "no /proc"
    with pytest.raises(NotFound):
        client.producer("later")
    assert InfoClient(service.url, viewer).nodes()[0].node_name == "n1"
    assert "PUT /api/v1/data/rack/n1" in [entry.call for entry in client.audit()]


def check_log(service: Served, key: Path) -> None:
    """The audit log is whole by its key, which has come back."""
    chain = Chain(key=read_key(key))
    assert chain.follow(service.client.audit()) and chain.end() and chain.sequence > 0, chain.broken


def test_sqlite_is_copied_while_it_works_and_restored(shell: Shell) -> None:
    place = shell.home / ".nodewise" / "service"
    database, key = f"sqlite:///{place / 'infosvc.db'}", place / "audit.key"
    with knowing(database, key) as service:
        _, viewer = service.client.create_token("viewer", Role.READER)
        shell.run(block("back-up-sqlite"))
        spoil(service)
    assert {file.name: file.stat().st_mode & 0o077 for file in shell.folder.glob("*backup*")} == {
        "infosvc.backup.db": 0,
        "audit.key.backup": 0,
        "token.backup": 0,
    }
    (place / "token").unlink()
    key.unlink()

    shell.run(block("restore-sqlite"))

    assert (place / "token").read_text().strip() == TOKEN
    assert (place / "token").stat().st_mode & 0o077 == 0
    with serving(database, audit_key=str(key)) as service:
        check(service, viewer)
        check_log(service, key)


def test_sqlite_that_was_lost_altogether_is_restored(shell: Shell) -> None:
    place = shell.home / ".nodewise" / "service"
    database, key = f"sqlite:///{place / 'infosvc.db'}", place / "audit.key"
    with knowing(database, key) as service:
        _, viewer = service.client.create_token("viewer", Role.READER)
        shell.run(block("back-up-sqlite"))
    for file in place.iterdir():
        file.unlink()

    shell.run(block("restore-sqlite"))

    with serving(database, audit_key=str(key)) as service:
        check(service, viewer)
        check_log(service, key)


def dfsadmin(cluster: Cluster) -> str:
    """What the program `hdfs` of a master does with its first word taken off, as a script."""
    tool = "org.apache.hadoop.hdfs.tools.DFSAdmin"
    return f'shift\nexec {cluster.java} -cp "{cluster.conf_dir}:{cluster.jars}/*" {tool} "$@"'


@pytest.mark.cluster
@pytest.mark.timeout(1800)
def test_a_master_that_was_lost_is_restored_with_its_files_and_values(shell: Shell) -> None:
    own = shell.home / ".nodewise"
    place = own / "service"
    database, key = f"sqlite:///{place / 'infosvc.db'}", place / "audit.key"
    try:
        cluster = lifecycle.up(own, nodes=1, ready_seconds=START_SECONDS)
        names = cluster.state / "namenode"
        shell.program(
            "sudo", 'if [ "$1" = -u ]; then shift 2; fi\nexec "$@"'
        )  # this user's are all of a master's files
        shell.program("hdfs", dfsadmin(cluster))
        (shell.folder / "pictures").mkdir()
        (shell.folder / "pictures" / "one.ppm").write_bytes(PICTURE)
        shell.run("nodewise images load pictures hdfs:///data/images")
        folders = "/etc/nodewise /etc/hadoop /var/lib/nodewise"
        with knowing(database, key) as service:
            _, viewer = service.client.create_token("viewer", Role.READER)
            shell.run(block("back-up-sqlite"))
            packing = changed(
                block("back-up-master"), (folders, f"{cluster.conf_dir}"), ("/var/lib/hadoop/hdfs/name", f"{names}")
            )
            shell.run(packing)
            spoil(service)
        lifecycle.down(own)
        for folder in (names, place, cluster.conf_dir):
            shutil.rmtree(folder)
        place.mkdir()

        # SQLite is what a service has here, not MariaDB.
        shell.run(changed(block("restore-master"), ("sudo mariadb nodewise < nodewise.sql", "")))
        shell.run(block("restore-sqlite"))

        lifecycle.up(own, ready_seconds=START_SECONDS)
        hdfs = WebHdfs(cluster.namenode_http, cluster.user)
        assert hdfs.read("/data/images/one.ppm") == PICTURE
        with serving(database, audit_key=str(key)) as service:
            check(service, viewer)
            check_log(service, key)
    finally:
        lifecycle.down(own)


def test_mariadb_is_dumped_while_it_works_and_restored(shell: Shell, mariadb: MariaDB) -> None:
    database = mariadb.new_database()
    name = str(make_url(database).database)
    (shell.home / ".my.cnf").write_text(f"[client]\nsocket={mariadb.directory / 'socket'}\nuser=root\n")
    shell.program("sudo", 'exec "$@"')  # the operator of this database is whoever runs the tests
    with knowing(database) as service:
        _, viewer = service.client.create_token("viewer", Role.READER)
        shell.run(changed(block("back-up-mariadb"), (" nodewise >", f" {name} >")))
        spoil(service)
    assert (shell.folder / "nodewise.sql").stat().st_mode & 0o077 == 0

    first, restore, last = block("restore-mariadb").splitlines()
    assert "stop nodewise-infosvc" in first and "start nodewise-infosvc" in last  # as this test does around it
    shell.run(changed(restore, (" nodewise <", f" {name} <")))

    with serving(database) as service:
        check(service, viewer)
