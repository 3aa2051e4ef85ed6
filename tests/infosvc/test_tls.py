"""https with a certificate authority of our own, and files that the service refuses before it listens."""

from __future__ import annotations

import datetime
import http.client
import ipaddress
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from infosvc.commands.serve import serve
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput, Unreachable
from infosvc.wire.records import Role


@dataclass
class Authority:
    """A certificate authority with its files in one directory."""

    directory: Path

    def __post_init__(self) -> None:
        self.directory.mkdir()
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.directory.name)])
        made = _builder(self.name, self.name, self.key.public_key())
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
        self.file = self.directory / "ca.pem"
        self.file.write_bytes(made.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, password: bytes | None = None) -> tuple[Path, Path]:
        """The files of a certificate for 127.0.0.1 and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        where = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        made = _builder(own, self.name, key.public_key()).add_extension(where, critical=False)
        signed = made.add_extension(issuer, critical=False).sign(self.key, hashes.SHA256())
        cert, private = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        form = serialization.PrivateFormat.PKCS8
        private.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, lock))
        private.chmod(0o600)
        return cert, private


def _builder(own: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(own).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=1))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that signs for the service."""
    return Authority(tmp_path_factory.mktemp("tls") / "ours")


def _start(home: Path, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "nodewise", "--home", str(home), "serve", "--port", "0", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


@dataclass
class Secure:
    """A service that speaks https, as `nodewise serve` starts it."""

    url: str
    token: str


@pytest.fixture(scope="module")
def secure(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """One for all tests of this file."""
    home = tmp_path_factory.mktemp("home")
    cert, key = authority.issue("service")
    process = _start(home, "--tls-cert", cert, "--tls-key", key, "--agent-ca", authority.file)
    assert process.stdout
    try:
        url = process.stdout.readline().split()[2].rstrip(",")
        yield Secure(url, (home / "service" / "token").read_text().strip())
    finally:
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (0, "")


def test_agents_that_are_spoken_to_in_plain_are_warned_of(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.issue("warned")
    process = _start(tmp_path, "--tls-cert", cert, "--tls-key", key)
    assert process.stdout and process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, warned = process.communicate(timeout=120)
    assert "plain http with the agents: give it --agent-ca" in warned


def test_the_sessions_cookie_is_of_this_very_host(secure: Secure, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=authority.file)

    def ask(method: str, body: str | None, cookie: str) -> tuple[str, dict[str, Any]]:
        connection = http.client.HTTPSConnection(urlsplit(secure.url).netloc, context=context, timeout=60)
        connection.request(method, "/api/v1/session", body, {"Cookie": cookie})
        answer = connection.getresponse()
        said = json.loads(answer.read() or b"{}")
        connection.close()
        return (answer.headers["Set-Cookie"] or "").partition(";")[0], said

    cookie, _ = ask("POST", json.dumps({"token": secure.token}), "")
    assert cookie.startswith("__Host-nodewise_session")
    assert ask("GET", None, cookie)[1]["role"] == "admin"
    assert ask("GET", None, cookie.removeprefix("__Host-"))[1]["name"] == "anonymous", "another host may have set it"


def _nodewise(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nodewise", *words],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
    )


def test_a_client_that_trusts_the_authority_reads_and_writes(secure: Secure, authority: Authority) -> None:
    assert secure.url.startswith("https://127.0.0.1:")
    with InfoClient(secure.url, secure.token, ca_file=authority.file) as client:
        client.put_node("n1", "127.0.0.1:9")
        assert [node.node_name for node in client.nodes()] == ["n1"]
        _, text = client.create_token("a", Role.READER)
    with InfoClient(secure.url, text, ca_file=authority.file) as reader:
        assert [node.node_name for node in reader.nodes()] == ["n1"]


def test_a_client_refuses_a_service_of_another_authority(secure: Secure, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    for ca_file in (other.file, None):
        with InfoClient(secure.url, secure.token, ca_file=ca_file, timeout=60, retries=0) as client:
            with pytest.raises(Unreachable, match="certificate") as caught:
                client.nodes()
            assert "\n" not in str(caught.value)


def test_the_command_says_in_one_sentence_what_is_wrong(secure: Secure, authority: Authority, tmp_path: Path) -> None:
    whole = _nodewise("node", "list", "--json", "--url", secure.url, NODEWISE_CA_FILE=str(authority.file))
    assert whole.returncode == 0, whole.stderr
    plain = secure.url.replace("https", "http")
    other = Authority(tmp_path / "other")
    for url, ca_file in [(plain, authority.file), (secure.url, other.file)]:
        failed = _nodewise("node", "list", "--url", url, "--ca-file", str(ca_file))
        assert (failed.returncode, failed.stdout) == (1, "")
        assert failed.stderr.startswith("Error: ") and failed.stderr.count("\n") == 1, failed.stderr


def test_plain_http_gets_no_answer_from_it(secure: Secure) -> None:
    where = urlsplit(secure.url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
    try:
        with pytest.raises((http.client.HTTPException, OSError)):
            connection.request("GET", "/healthz")
            connection.getresponse()
    finally:
        connection.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_it_speaks_both_versions_of_tls_that_are_sound(
    secure: Secure, authority: Authority, version: ssl.TLSVersion
) -> None:
    where = urlsplit(secure.url)
    context = ssl.create_default_context(cafile=authority.file)
    context.minimum_version = context.maximum_version = version
    connection = http.client.HTTPSConnection(str(where.hostname), where.port, timeout=60, context=context)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    connection.close()


Broken = Callable[[Authority, Path], tuple[object, ...]]


def _only_cert(authority: Authority, _: Path) -> tuple[object, ...]:
    return ("--tls-cert", authority.issue("a")[0])


def _only_key(authority: Authority, _: Path) -> tuple[object, ...]:
    return ("--tls-key", authority.issue("a")[1])


def _mixed(authority: Authority, _: Path) -> tuple[object, ...]:
    return ("--tls-cert", authority.issue("a")[0], "--tls-key", authority.issue("b")[1])


def _readable_by_others(authority: Authority, _: Path) -> tuple[object, ...]:
    cert, key = authority.issue("a")
    key.chmod(0o640)
    return ("--tls-cert", cert, "--tls-key", key)


def _locked(authority: Authority, _: Path) -> tuple[object, ...]:
    cert, key = authority.issue("a", password=b"secret")
    return ("--tls-cert", cert, "--tls-key", key)


def _no_pem(authority: Authority, directory: Path) -> tuple[object, ...]:
    cert, key = directory / "cert", authority.issue("a")[1]
    cert.write_text("no certificate\n")
    return ("--tls-cert", cert, "--tls-key", key)


def _missing(authority: Authority, directory: Path) -> tuple[object, ...]:
    return ("--tls-cert", directory / "none", "--tls-key", authority.issue("a")[1])


def _no_authority(authority: Authority, directory: Path) -> tuple[object, ...]:
    (directory / "ca").write_text("no authority\n")
    return ("--agent-ca", directory / "ca")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (_only_cert, "belong together"),
        (_only_key, "belong together"),
        (_mixed, "key values mismatch"),
        (_readable_by_others, "chmod 600"),
        (_locked, "unencrypted private key"),
        (_no_pem, "cannot be used for TLS (it is not PEM)"),
        (_missing, "No such file"),
        (_no_authority, "not an authority that can be used"),
    ],
)
def test_files_that_cannot_be_used_are_refused_before_it_listens(
    authority: Authority, tmp_path: Path, broken: Broken, said: str
) -> None:
    # Whatever the files are let pass for ends at the port, which is taken.
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InvalidInput) as caught:
        words = ["--port", str(taken.getsockname()[1]), *map(str, broken(authority, tmp_path))]
        serve.main(words, standalone_mode=False, obj=tmp_path)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_the_command_says_which_file_is_refused(authority: Authority, tmp_path: Path) -> None:
    process = _start(tmp_path / "home", *_mixed(authority, tmp_path))
    out, error = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert error.startswith("Error: ") and error.count("\n") == 1, error
