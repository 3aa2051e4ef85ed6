"""Two services whose MariaDB dies go on with its replica, and nothing that they acknowledged is lost."""

from __future__ import annotations

import configparser
import shlex
from typing import TYPE_CHECKING

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Producer
from infosvc.wire.task_spec import TaskSpec
from tests.collectors.relay import Relay
from tests.infosvc.conftest import PASSWORD, TOKEN, MariaDB, database_server
from tests.infosvc.test_faults import NAMES, Writers
from tests.infosvc.test_pair import find_values, forked, is_following, is_ready, set_claim
from tests.ports import free_port
from tests.recipes.pages import block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import ExitStack

ALL_DONE = "Slave has read all relay log; waiting for more updates"


def read_settings(server_id: int) -> list[str]:
    """What the page puts into the settings of a server, as options of mariadbd."""
    found = configparser.ConfigParser()
    found.read_string(block("replica-settings"))
    return [f"--{name}={value}" for name, value in {**found["mysqld"], "server_id": str(server_id)}.items()]


def follow_page(server: MariaDB, recipe: str, source: MariaDB | None = None) -> None:
    """Do on a server what a recipe says, with the place of the server that it copies."""
    text = recipe.replace("'PASSWORD'", f"'{PASSWORD}'")
    for host in ("'db1'", "'db2'"):
        text = text.replace(host, f"'127.0.0.1', MASTER_PORT = {source.port if source else 0}")
    server.sql(*(statement for statement in text.split(";") if statement.strip()))


def copy_of(source: MariaDB, server: MariaDB) -> None:
    """Make a server that has nothing the replica of another one."""
    dump, read = (shlex.split(command) for command in block("replica-copy").split("|"))
    server.run(*read[1:], said=source.run(*dump[3:]))
    follow_page(server, block("replica-second"), source)


@pytest.fixture
def servers(stack: ExitStack) -> Iterator[tuple[MariaDB, MariaDB]]:
    """The first server and its replica, by the recipes of the page."""
    first, second = (stack.enter_context(database_server(*read_settings(number))) for number in (1, 2))
    follow_page(first, block("replica-first"))
    copy_of(first, second)
    follow_page(first, block("replica-both"))
    yield first, second


def is_copied(server: MariaDB) -> bool:
    """Whether a replica receives what its source stores."""
    said = server.row("SHOW SLAVE STATUS")
    return said["Slave_IO_Running"] == said["Slave_SQL_Running"] == "Yes" and has_done_all(server)


def has_done_all(server: MariaDB) -> bool:
    """Whether a replica has done all that it has received."""
    said = server.row("SHOW SLAVE STATUS")
    assert not said["Last_SQL_Error"], said["Last_SQL_Error"]
    return bool(said["Slave_SQL_Running_State"] == ALL_DONE)


@pytest.mark.timeout(900)
def test_two_services_go_on_with_the_replica_of_a_database_that_died(
    servers: tuple[MariaDB, MariaDB],
    stack: ExitStack,
    eventually: Callable[[Callable[[], bool]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_claim(monkeypatch)
    one, other = servers
    eventually(lambda: is_copied(other))
    address = Relay(("127.0.0.1", one.port))  # `db` of the page
    stack.callback(address.close)
    database = one.new_database().replace(f":{one.port}/", f":{address.address.partition(':')[2]}/")
    ports = (free_port(), free_port())
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    stack.enter_context(forked(database, ports[0], ports[1]))
    eventually(lambda: is_ready(urls[0]))
    stack.enter_context(forked(database, ports[1], ports[0]))
    eventually(lambda: is_following(urls[1]))
    both = stack.enter_context(InfoClient(",".join(urls), TOKEN, timeout=120, retries=100))
    for name in range(NAMES):
        both.put_producer(Producer(f"x{name}", "x", 60.0))
    for node in range(3):
        both.put_node(f"n{node}", "127.0.0.1:9")
    task = both.submit_task(TaskSpec(["train"], name="mnist"))
    writers = Writers(",".join(urls), 3)
    writers.run(0.5)

    one.kill()
    follow_page(other, block("replica-drain"))
    eventually(lambda: has_done_all(other))
    follow_page(other, block("replica-promote"))
    address.target = ("127.0.0.1", other.port)

    both.put_producer(Producer("after", "x", 60.0))
    writers.end()
    found = find_values(both)
    for node, acknowledged in enumerate(writers.acknowledged):
        assert acknowledged > 0
        assert all(int(found[f"x{name}", f"n{node}"] or 0) >= acknowledged for name in range(NAMES))
    assert both.task(task.task_id) == task
    eventually(lambda: any(is_ready(url, 60) for url in urls))
    assert not all(is_ready(url, 60) for url in urls)

    with database_server(*read_settings(1)) as again:
        copy_of(other, again)
        follow_page(other, block("replica-both"))
        eventually(lambda: is_copied(again))
        both.put_value("after", "n0", "with a replica again")
        written = (
            f"SELECT data_name FROM {database.partition('?')[0].rpartition('/')[2]}.t_Data "
            "WHERE data_value = 'with a replica again'"
        )
        eventually(lambda: again.sql(written) == [("after",)])  # what it has, it does a moment later
