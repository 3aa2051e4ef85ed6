"""The tokens that containers get where Hadoop has Kerberos."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hadoop.client.jars import JARS

# Tokens by kind and service; what workers get of them, for a NameNode that the site files name in two ways.
GIVING = """
import json, sys
from pathlib import Path
from hadoop.client.jvm import HadoopHome, java, start
from hadoop.client.kerberos import tokens
start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "ada"))
text = java("org.apache.hadoop.io.Text")

def held(service, authority):
    credentials = java("org.apache.hadoop.security.Credentials")()
    for kind, where in (("HDFS_DELEGATION_TOKEN", service), ("YARN_AM_RM_TOKEN", "rm"), ("RM_DELEGATION_TOKEN", "rm2")):
        token = java("org.apache.hadoop.security.token.Token")(kind.encode(), b"secret", text(kind), text(where))
        credentials.addToken(text(where), token)
    given = tokens.of_hdfs(credentials)
    tokens.name_as_written(given, service, authority)
    return sorted((str(one.getKind()), str(one.getService()), bytes(one.getPassword()).decode())
                  for one in given.getAllTokens())

print(json.dumps([tokens.is_secure(), held("127.0.0.1:8020", "localhost:8020"), held("ha-hdfs:ns1", "ns1"),
                  held("127.0.0.1:8020", "127.0.0.1:8020")]))
"""

# A token of a NameNode that gives one, for a ResourceManager that gives none, or for an application that ends as told.
SUBMITTING = """
import sys
from pathlib import Path
from hadoop.client.jvm import HadoopHome, configuration, java, start
from hadoop.client.kerberos import tokens
start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "ada"))
tokens.is_secure()  # so that Hadoop has looked at its settings
text, security = java("org.apache.hadoop.io.Text"), "org.apache.hadoop.hdfs.security.token.delegation"

class NameNode:
    def addDelegationTokens(self, renewer, held):
        name = java(f"{security}.DelegationTokenIdentifier")(text("ada"), text("yarn"), text(""))
        kind, where = text("HDFS_DELEGATION_TOKEN"), text(sys.argv[3])
        held.addToken(where, java("org.apache.hadoop.security.token.Token")(name.getBytes(), b"secret", kind, where))

class ResourceManager:
    def getRMDelegationToken(self, renewer):
        if sys.argv[4] == "no token":
            raise java("java.io.IOException")("none to be had")
        kind = "RM_DELEGATION_TOKEN"
        return java("org.apache.hadoop.yarn.api.records.Token").newInstance(b"name", kind, b"secret", "127.0.0.1:1")

conf = configuration()
conf.setLong("yarn.resourcemanager.connect.max-wait.ms", 500)
conf.setInt("ipc.client.connect.max.retries", 0)
try:
    with tokens.for_master(NameNode(), ResourceManager(), conf):
        if sys.argv[4] == "refused":
            raise java("org.apache.hadoop.yarn.exceptions.YarnException")("no such queue")
except Exception as error:
    print(error)
"""


SITE = """<configuration>
<property><name>yarn.resourcemanager.principal</name><value>rm/head@HERE.TEST</value></property>
</configuration>"""


def run(folder: Path, program: str, *words: str) -> str:
    """What a program says in a process of its own, which has a Java."""
    (folder / "core-site.xml").write_text(SITE)
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), str(JARS), *words],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def deaf_namenode() -> Iterator[tuple[str, list[bytes]]]:
    """The address of one that hangs up on whoever has asked for something, and what it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(60)
                    heard = b""
                    while b"DelegationToken" not in heard and (more := connection.recv(65536)):
                        heard += more
                    asked.append(heard)

        threading.Thread(target=listen, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}", asked
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("outcome", "said"), [("refused", "no such queue"), ("no token", "none to be had"), ("accepted", "")]
)
def test_tokens_of_a_submission_that_fails_are_cancelled(tmp_path: Path, outcome: str, said: str) -> None:
    with deaf_namenode() as (address, asked):
        heard = run(tmp_path, SUBMITTING, address, outcome)

    assert said in heard
    assert bool(heard) == bool(said)
    assert [b"cancelDelegationToken" in one for one in asked] == ([] if outcome == "accepted" else [True])


def test_workers_get_the_tokens_of_hdfs_alone_and_find_them_by_the_written_name(tmp_path: Path) -> None:
    said = run(tmp_path, GIVING)

    kind = "HDFS_DELEGATION_TOKEN"
    assert json.loads(said) == [
        False,
        [[kind, "127.0.0.1:8020", "secret"], [kind, "localhost:8020", "secret"]],
        [[kind, "ha-hdfs:ns1", "secret"]],
        [[kind, "127.0.0.1:8020", "secret"]],
    ]
