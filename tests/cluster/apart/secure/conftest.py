"""One cluster with Kerberos and two of each master for all tests of this folder, started as docs/operate.md says.

Its tokens are good for a minute, and all that Hadoop sends is protected against changes. Modules come in the order of
their names: the last one stops the cluster.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bench.stage import START_SECONDS
from hadoop.local import lifecycle
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Kind, Producer
from jobs.images.datasets import make
from tests.cluster.apart.secure.place import (
    CAPABILITY,
    LOADED,
    OUTLIVING,
    PACKAGES,
    PICTURES,
    ROOT,
    TOKEN_SECONDS,
    Command,
    Place,
)
from tests.cluster.hadoop_scripts import Scripts, scripts_of
from tests.cluster.site import ANSWER_SECONDS, until
from tests.recipes.pages import block
from tests.recipes.shell import Shell, changed


@pytest.fixture(scope="package")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Two nodes; what the page starts is up, with a ticket of alice's, and pictures that are hers."""
    folder = tmp_path_factory.mktemp("secure")
    shell = Shell(folder, folder / "work")
    protected = f"--protection integrity --token-life {TOKEN_SECONDS}"
    up = f"--wait {START_SECONDS:.0f} {protected} --kerberos --ha --nodes 2"
    # The subnet is the first that is free, which need not be the page's.
    master = "$(nodewise cluster status --names | head -n 1 | sed 's/[.][0-9]*$/.1/')"
    recipe = changed(block("secure-cluster"), ("--kerberos --ha --nodes 2", up), ("127.0.2.1", master))
    try:
        begun = time.monotonic()
        said = shell.run(recipe, timeout=2 * START_SECONDS)
        print(f"the page's commands took {time.monotonic() - begun:.1f} s")
        assert "Default principal: alice@NODEWISE.TEST" in said
        assert '"SecurityEnabled" : true' in said
        made = Place(lifecycle.load(folder / ".nodewise"), folder)
        make(folder / "pictures", PICTURES)
        assert made.load(f"hdfs://nodewise{LOADED}") == PICTURES
        yield made
    finally:
        lifecycle.down(folder / ".nodewise")


@pytest.fixture(scope="package")
def alice(place: Place) -> Iterator[Scripts]:
    """Scripts that run beside Hadoop's client with her ticket."""
    with scripts_of(place.cluster, variables=place.script_variables()) as made:
        yield made


@pytest.fixture(scope="package")
def service(place: Place) -> Iterator[Place]:
    """A service that submits tasks and reads Hadoop by alice's keytab, and has judged the nodes alike."""
    home, host = str(place.cluster.home), place.cluster.master
    serve = [sys.executable, "-m", "nodewise", "--home", home, "serve", "--submit", "--host", host]
    variables = place.variables() | place.by_keytab()
    process = subprocess.Popen(serve, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL)
    try:
        _judge(place)
        yield place
    finally:
        process.terminate()  # its submitter ends with it
        process.wait(60)


@pytest.fixture(scope="package")
def environment(place: Place) -> Any:
    """An environment, `plain@1`, that alice makes with her ticket."""
    return place.ask_command("env", "make", "plain", "--version", "1", *PACKAGES)


@pytest.fixture(scope="package")
def long_job(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Command, Path]]:
    """A job that outlives its tokens while other tests run, and the copy that it makes of them."""
    copy = tmp_path_factory.mktemp("long") / "tokens"
    with place.start_using(copy, OUTLIVING) as command:
        yield command, copy


def _judge(place: Place) -> None:
    until(lambda: _answers(place))
    with InfoClient.from_token_file(place.url, place.token_file, ANSWER_SECONDS) as client:
        client.put_producer(Producer(CAPABILITY, cmd="", time_max=86400, kind=Kind.PROGRAM))
        for node in place.cluster.nodes:
            client.put_node(node, f"{node}:8410")
            client.put_value(CAPABILITY, node, 1.0)


def _answers(place: Place) -> bool:
    with suppress(OSError):
        place.ask("/producers")
        return True
    return False
