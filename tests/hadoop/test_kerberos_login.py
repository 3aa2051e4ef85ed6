"""Who speaks to a Hadoop with Kerberos: what is refused before anything is asked of it, and what is said then."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from hadoop.client.jars import JARS
from hadoop.client.kerberos import login

ROOT = Path(__file__).parents[2]
SECURE = """<configuration>
<property><name>hadoop.security.authentication</name><value>Kerberos</value></property>
</configuration>"""
CLOCKS_APART = 37
# Each line of input is a keytab and a principal, each may be empty; what is said comes back as JSON.
LOGGING_IN = """
import json, os, sys
from pathlib import Path
from hadoop.client.jvm import HadoopHome, start
from hadoop.client.kerberos.login import Account
from hadoop.errors import HadoopError
os.environ["HADOOP_USER_NAME"] = "ada"
said = []
for keytab, principal in json.load(sys.stdin):
    account = Account(None, Path(keytab) if keytab else None, principal or None)
    try:
        start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "ada", account))
    except HadoopError as error:
        said.append(str(error))
print(json.dumps([said, os.environ.get("HADOOP_USER_NAME")]))
"""


@pytest.fixture
def conf_dir(tmp_path: Path) -> Path:
    (tmp_path / "core-site.xml").write_text(SECURE)
    return tmp_path


def keytab_of(file: Path, *principals: str) -> str:
    """A keytab with a key of each, as MIT's Kerberos writes it."""
    content = b"\x05\x02"
    for principal in principals:
        name, _, realm = principal.partition("@")
        texts = [realm, *name.split("/")]
        entry = struct.pack(">H", len(texts) - 1) + b"".join(
            struct.pack(">H", len(text)) + text.encode() for text in texts
        )
        entry += struct.pack(">IIBHH", 1, 0, 1, 18, 32) + bytes(32)
        content += struct.pack(">i", len(entry)) + entry
    file.write_bytes(content)
    return str(file)


QUICK = " kdc_timeout = 2000\n max_retries = 1\n"


def log_in(conf_dir: Path, kdc: str, *tries: tuple[str, str], patience: str = QUICK, **variables: str) -> list[str]:
    """What is said of each try, by a process of its own."""
    (conf_dir / "krb5.conf").write_text(
        "[libdefaults]\n default_realm = HERE.TEST\n dns_lookup_kdc = false\n udp_preference_limit = 1\n"
        f"{patience}[realms]\n HERE.TEST = {{\n  kdc = {kdc}\n }}\n"
    )
    own: Mapping[str, str] = {
        "KRB5_CONFIG": f"/nowhere/krb5.conf:{conf_dir}/krb5.conf",
        "KRB5CCNAME": f"FILE:{conf_dir}/tickets",
    }
    done = subprocess.run(
        [sys.executable, "-c", LOGGING_IN, str(conf_dir), str(JARS)],
        cwd=ROOT,
        env={**os.environ, **own, **variables},
        input=json.dumps(tries),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said, user = json.loads(done.stdout)
    assert user is None, "Hadoop is told another user than the ticket's"
    assert len(said) == len(tries), said
    return list(said)


def test_who_has_no_ticket_and_no_right_keytab_hears_what_to_do(conf_dir: Path) -> None:
    own = keytab_of(conf_dir / "own", "ada@HERE.TEST")
    two = keytab_of(conf_dir / "two", "ada@HERE.TEST", "web/host@HERE.TEST")
    other = keytab_of(conf_dir / "other", "ada@THERE.TEST")
    (conf_dir / "text").write_text("no keytab at all")

    said = log_in(
        conf_dir,
        "127.0.0.1:1",
        ("", ""),
        ("", "ada"),
        (str(conf_dir / "missing"), ""),
        (str(conf_dir / "text"), ""),
        (two, ""),
        (own, "bob"),
        (other, "ada"),
        (other, ""),
        (own, ""),
    )

    assert said[:7] == [
        f"this cluster has Kerberos, and you have no ticket that is valid now in FILE:{conf_dir}/tickets: "
        "run `kinit`, or name a keytab with --keytab",
        "--principal ada has no keytab: name it with --keytab, or run `kinit`",
        f"the keytab {conf_dir}/missing cannot be read: name a file that you may read with --keytab",
        f"{conf_dir}/text holds no key that can be read: name a keytab with --keytab",
        f"{two} is of ada@HERE.TEST, web/host@HERE.TEST: name one of them with --principal",
        f"{own} holds no key of bob@HERE.TEST, only of ada@HERE.TEST: name a keytab of this principal",
        f"{other} holds no key of ada@HERE.TEST, only of ada@THERE.TEST: name a keytab of this principal",
    ]
    assert "krb5.conf names no Kerberos of this realm" in said[7]
    assert "Kerberos itself does not answer" in said[8]


def test_a_kind_of_cache_that_java_cannot_read_is_named(conf_dir: Path) -> None:
    (said,) = log_in(conf_dir, "127.0.0.1:1", ("", ""), KRB5CCNAME="KCM:1000")

    assert said.startswith("Java cannot read tickets in KCM:1000: set KRB5CCNAME=FILE:")


def test_clocks_that_differ_are_named(conf_dir: Path) -> None:
    own = keytab_of(conf_dir / "own", "ada@HERE.TEST")
    with refusing_kdc(CLOCKS_APART) as address:
        (said,) = log_in(conf_dir, address, (own, ""))

    assert "the clocks of this machine, Kerberos and Hadoop differ: set them by NTP" in said


@pytest.mark.parametrize(("patience", "least", "most"), [("", 8, 30), (QUICK, 1, 8)], ids=["ours", "of_krb5_conf"])
def test_a_kdc_that_hangs_is_given_up_within_seconds(conf_dir: Path, patience: str, least: float, most: float) -> None:
    own = keytab_of(conf_dir / "own", "ada@HERE.TEST")
    asked: list[tuple[socket.socket, float]] = []
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        deaf.settimeout(120)
        hearing = threading.Thread(target=lambda: asked.append((deaf.accept()[0], time.monotonic())))
        hearing.start()
        started = time.monotonic()
        (said,) = log_in(conf_dir, f"127.0.0.1:{deaf.getsockname()[1]}", (own, ""), patience=patience)
        ended = time.monotonic()
        hearing.join()

    assert "Kerberos itself does not answer: see that the KDC that krb5.conf names is up" in said
    connection, begun = asked[0]
    assert least < ended - started, "with the start of Java, as its call may be taken late"
    assert ended - begun < most
    connection.close()


def test_java_is_led_nowhere_else_than_its_own_variable_leads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Djava.security.krb5.conf=/somewhere/krb5.conf")
    monkeypatch.delenv("KRB5_CONFIG", raising=False)

    assert login.java_options() == []


@contextmanager
def refusing_kdc(code: int) -> Iterator[str]:
    """A Kerberos that answers every question with one error; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    message = _error(code)
                    connection.sendall(struct.pack(">I", len(message)) + message)

        threading.Thread(target=answer, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def _error(code: int) -> bytes:
    """A KRB-ERROR of RFC 4120 in DER."""
    name = _der(0x30, _der(0xA0, _integer(2)) + _der(0xA1, _der(0x30, _text(b"krbtgt") + _text(b"HERE.TEST"))))
    fields = {0: _integer(5), 1: _integer(30), 4: _der(0x18, b"20260101000000Z"), 5: _integer(0), 6: _integer(code)}
    fields |= {9: _text(b"HERE.TEST"), 10: name}
    return _der(0x7E, _der(0x30, b"".join(_der(0xA0 + number, value) for number, value in fields.items())))


def _der(tag: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([tag, len(content)]) + content


def _integer(number: int) -> bytes:
    return _der(0x02, bytes([number]))


def _text(value: bytes) -> bytes:
    return _der(0x1B, value)
