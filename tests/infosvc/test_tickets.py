"""Log-in by ticket: a real KDC, real tickets, and `nodewise serve` with a keytab of more keys than it believes."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hadoop.errors import NoTicket
from hadoop.local.kerberos import programs
from hadoop.local.kerberos.realm import REALM, Realm
from hadoop.rest import spnego
from infosvc.access import ticket_token
from infosvc.access.tickets import LARGEST, find_user
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Forbidden, NotFound, Unauthorized
from infosvc.wire.kerberos import gssapi
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from tests.in_process import nodewise
from tests.infosvc.conftest import TOKEN, Hands, serving
from tests.kdc import running
from tests.ports import free_port

OTHER = "OTHER.TEST"
CALL = "/api/v1/session/ticket"
SHORT_SECONDS = 6
SKEW = 300
"""Seconds that Kerberos takes a ticket longer, for clocks that differ."""


@dataclass(frozen=True)
class Kerberos:
    """Two realms that know each other, of which the second has a user, and a keytab of the service."""

    realm: Realm
    krb5_conf: Path
    stranger: Path
    keytab: Path

    def log_in(self, user: str, keytab: Path, *words: str) -> None:
        """Run kinit."""
        kinit = programs.find("kinit")
        argv = [str(kinit), *words, "-k", "-t", str(keytab), user]
        subprocess.run(argv, check=True, env={**os.environ, **programs.libraries(kinit)})


def add_other_realm(realm: Realm, folder: Path) -> dict[str, str]:
    """Make a second realm whose users the first one knows; the variables of a KDC of both."""
    ours, theirs = realm.folder / "kdc.conf", folder / "kdc.conf"
    text = ours.read_text()
    section = text[text.index(f"  {REALM} = {{") : text.index("[logging]")]
    database = folder / "database"
    database.mkdir()
    other = section.replace(REALM, OTHER).replace(str(realm.folder / "database"), str(database))
    theirs.write_text(text.replace("[logging]", f"{other}\n[logging]"))
    told = realm.environment_of_kdc() | {"KRB5_KDC_PROFILE": str(theirs)}

    def call(*words: str, said: str) -> None:
        env = {**os.environ, **told}
        subprocess.run([str(programs.find(words[0])), *words[1:]], input=said, text=True, env=env, check=True)

    trust = f"addprinc -pw between -e aes256-cts-hmac-sha1-96:normal krbtgt/{REALM}@{OTHER}\n"
    call("kdb5_util", "create", "-s", "-r", OTHER, said="secret\nsecret\n")
    users = f"addprinc -randkey alice@{OTHER}\nktadd -norandkey -k {folder}/stranger.keytab alice@{OTHER}\n"
    call("kadmin.local", "-r", OTHER, said=f"{trust}{users}quit\n")
    keys = "".join(f"ktadd -norandkey -k {folder}/service.keytab {name}\n" for name in ("HTTP/127.0.0.1", "nn/nodes"))
    call("kadmin.local", "-r", REALM, said=f"{trust}{keys}quit\n")
    return told


@pytest.fixture(scope="module")
def kerberos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberos]:
    folder, here = tmp_path_factory.mktemp("realm"), ("127.0.0.1",)
    realm = Realm(folder, folder, f"127.0.0.1:{free_port()}", here, (), here, "me", ("alice", "admin"))
    realm.prepare()
    told = add_other_realm(realm, folder)
    conf = folder / "both.conf"
    both = f"[realms]\n  {OTHER} = {{\n    kdc = {realm.kdc}\n  }}\n[domain_realm]\n  127.0.0.1 = {REALM}\n"
    conf.write_text(realm.krb5_conf.read_text() + both)
    with running(realm, (REALM, OTHER), told):
        yield Kerberos(realm, conf, folder / "stranger.keytab", folder / "service.keytab")


@dataclass(frozen=True)
class Service:
    """`nodewise serve`; `admin` may do everything there."""

    url: str
    admin: InfoClient

    def show(self, authorization: str | None, **headers: str) -> tuple[int, dict[str, str], Any]:
        """The answer to a log-in by ticket."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        try:
            sent = headers | ({"Authorization": authorization} if authorization else {})
            connection.request("POST", CALL, headers=sent)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), json.loads(answer.read())
        finally:
            connection.close()


def start(home: Path, *words: object, **environment: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "nodewise", "--home", str(home), "serve", "--port", "0", *map(str, words)]
    env = os.environ | {"PYTHONUNBUFFERED": "1"} | environment
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


@pytest.fixture(scope="module")
def service(kerberos: Kerberos, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("home")
    told = {"KRB5_CONFIG": str(kerberos.krb5_conf), "KRB5RCACHEDIR": str(home)}
    process = start(home, "--spnego-keytab", kerberos.keytab, "--no-open-reading", **told)
    assert process.stdout
    try:
        url = process.stdout.readline().split()[2].rstrip(",")
        yield Service(url, InfoClient(url, (home / "service" / "token").read_text().strip(), 60.0))
    finally:
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (0, "")


@pytest.fixture(autouse=True)
def nobody(kerberos: Kerberos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process, in the realm and without a ticket."""
    monkeypatch.setenv("KRB5_CONFIG", str(kerberos.krb5_conf))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/tickets")
    monkeypatch.setenv("KRB5RCACHEDIR", str(tmp_path))
    for name in ("KRB5_CLIENT_KTNAME", "NODEWISE_KEYTAB", "NODEWISE_PRINCIPAL", "NODEWISE_TOKEN_FILE", "NODEWISE_URL"):
        monkeypatch.delenv(name, raising=False)
    spnego._take_keytab.cache_clear()


@pytest.fixture
def alice(nobody: None, kerberos: Kerberos) -> None:
    """The same, with a ticket of alice's."""
    kerberos.log_in("alice", kerberos.realm.keytab("alice"))


def ticket() -> str:
    return f"Negotiate {spnego.make_token('127.0.0.1')}"


def short_ticket(kerberos: Kerberos) -> str:
    """A ticket that ends soon; from another log-in where it has ended before it was made, on a busy machine."""
    deadline = time.monotonic() + 60
    while True:
        kerberos.log_in("alice", kerberos.realm.keytab("alice"), "-l", f"{SHORT_SECONDS}s")
        try:
            return ticket()
        except NoTicket:
            if time.monotonic() > deadline:
                raise


def calls_of(service: Service) -> list[tuple[str, str, int]]:
    return [(entry.who, entry.call, entry.status) for entry in service.admin.audit()]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.usefixtures("alice")
def test_a_ticket_becomes_a_token_in_the_file_where_commands_look(service: Service, tmp_path: Path) -> None:
    done = nodewise("--home", str(tmp_path), "login", "--url", service.url)
    file = tmp_path / "service" / "token"

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("alice: token of role user until 20")
    assert done.stdout.endswith(f" written to {file}\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with InfoClient(service.url, file.read_text().strip(), 60.0) as client:
        assert client.submit_task(TaskSpec(["true"]), "of-a-ticket").owner == "alice"
        with pytest.raises(Forbidden, match="a token of role user may not do this"):
            client.tokens()
    wait_for(lambda: ("alice (by ticket)", f"POST {CALL}", 201) in calls_of(service))
    assert ("alice (by ticket)", "POST /api/v1/tasks", 201) in calls_of(service)
    both = f"http://127.0.0.1:{free_port()},{service.url}"
    done = nodewise("--home", str(tmp_path), "login", "--url", both)
    assert done.returncode == 0, f"its own token may go, and one of two services may be away: {done.stderr}"


@pytest.mark.usefixtures("alice")
def test_a_file_with_another_token_stays(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(service.admin.create_token("grafana", Role.READER)[1])
    before = file.read_text()

    done = nodewise("login", "--url", service.url, "--token-file", str(file))

    assert (done.returncode, file.read_text()) == (1, before)
    assert "it holds another token, which would be lost): name another with --token-file" in done.stderr


def test_without_a_ticket_there_is_no_token(service: Service, tmp_path: Path) -> None:
    done = nodewise("--home", str(tmp_path), "login", "--url", service.url)

    assert done.returncode == 1
    assert done.stderr.startswith("Error: log-ins at the service on 127.0.0.1 want a ticket of Kerberos, and there is")
    assert "run `kinit`" in done.stderr
    assert not (tmp_path / "service").exists()


@pytest.mark.usefixtures("alice")
def test_the_answer_proves_the_service_to_curl(service: Service) -> None:
    argv = ["curl", "-sS", "-q", "--negotiate", "-u", ":", "-X", "POST", f"{service.url}{CALL}"]
    made = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)

    assert (made["name"], made["role"]) == ("alice", "user")
    status, headers, _ = service.show(ticket())
    assert (status, headers["cache-control"]) == (201, "no-store")
    assert base64.b64decode(headers["www-authenticate"].removeprefix("Negotiate "))


@pytest.mark.usefixtures("alice")
def test_the_token_opens_a_session_until_it_ends(service: Service) -> None:
    made = service.show(ticket())[2]
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=60)
    connection.request("POST", "/api/v1/session", json.dumps({"token": made["token"]}))
    answer = connection.getresponse()
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    answer.read()
    connection.request("GET", "/api/v1/session", headers={"Cookie": cookie})
    who = json.loads(connection.getresponse().read())
    connection.close()

    assert (answer.status, who["name"], who["role"]) == (204, "alice (by ticket)", "user")
    assert who["expires_at"] == made["expires_at"]
    assert who["takes_tickets"]


@pytest.mark.usefixtures("alice")
def test_a_ticket_counts_once(service: Service) -> None:
    shown = ticket()

    assert service.show(shown)[0] == 201
    status, headers, said = service.show(shown)
    assert (status, headers["www-authenticate"]) == (401, "Negotiate")
    assert "replay" in said["error"]["message"]


def test_a_ticket_that_has_expired_is_refused(
    sqlite_url: str, kerberos: Kerberos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = tmp_path / "exact.conf"  # else Kerberos takes a ticket five minutes longer, for clocks that differ
    exact.write_text(kerberos.krb5_conf.read_text().replace("[libdefaults]", "[libdefaults]\n  clockskew = 1", 1))
    monkeypatch.setenv("KRB5_CONFIG", str(exact))
    shown, ends = short_ticket(kerberos), time.time() + SHORT_SECONDS

    with serving(sqlite_url, spnego_keytab=str(kerberos.keytab)) as served:
        wait_for(lambda: time.time() > ends + 2)
        answer = served.ask("POST", CALL, token=None, headers={"Authorization": shown})

    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Negotiate")
    assert answer.error["message"] == (
        "the ticket is refused (Ticket expired): run `kinit` and `nodewise login`, or log in with a token"
    )


@pytest.mark.parametrize(("life", "most"), [("1d", 12 * 3600), ("1h", 3600 + SKEW)])
def test_the_token_ends_with_the_ticket_and_after_half_a_day(
    sqlite_url: str, kerberos: Kerberos, hands: Hands, life: str, most: int
) -> None:
    kerberos.log_in("alice", kerberos.realm.keytab("alice"), "-l", life)
    with serving(sqlite_url, hands, spnego_keytab=str(kerberos.keytab), open_reading=False) as served:
        made = served.client.exchange_ticket(spnego.make_token("127.0.0.1"))
        left = made.expires_at - hands.epoch - hands.now
        assert most - 60 < left <= most
        with InfoClient(served.url, made.token, 60.0) as client:
            hands.turn(left - 1)
            client.nodes()
            hands.turn(1)
            with pytest.raises(Unauthorized, match="the token that alice got by a ticket has expired"):
                client.nodes()


@pytest.mark.usefixtures("alice")
def test_a_ticket_for_another_service_is_refused(service: Service) -> None:
    port = urlsplit(service.url).port
    argv = ["curl", "-sS", "-q", "--negotiate", "-u", ":", "--resolve", f"nodes:{port}:127.0.0.1", "-X", "POST"]
    argv += ["--service-name", "nn", f"http://nodes:{port}{CALL}"]
    told = subprocess.run([*argv, "-v"], check=True, capture_output=True, text=True)

    assert "Authorization: Negotiate YII" in told.stderr, "curl had a ticket, of which the keytab has the key"
    assert "the ticket is refused" in json.loads(told.stdout)["error"]["message"]


def test_a_user_of_another_realm_is_nobody_here(service: Service, kerberos: Kerberos) -> None:
    kerberos.log_in(f"alice@{OTHER}", kerberos.stranger)
    status, headers, said = service.show(ticket())

    assert (status, "www-authenticate" in headers) == (403, False)
    assert said["error"]["message"] == (
        f"alice@{OTHER} is of another realm than this service, which is of {REALM}: "
        f"get a ticket of {REALM} with `kinit`, or log in with a token"
    )


def test_a_new_key_of_the_service_counts_at_once(service: Service, kerberos: Kerberos) -> None:
    draft = kerberos.keytab.with_name("draft.keytab")
    lines = f"cpw -randkey HTTP/127.0.0.1\nktadd -norandkey -k {draft} HTTP/127.0.0.1\nquit\n"
    env = {**os.environ, **kerberos.realm.environment_of_kdc()}
    subprocess.run([programs.find("kadmin.local"), "-r", REALM], input=lines, text=True, env=env, check=True)
    kerberos.log_in("alice", kerberos.realm.keytab("alice"))
    assert "(Request ticket server HTTP/127.0.0.1" in service.show(ticket())[2]["error"]["message"]

    draft.replace(kerberos.keytab)

    assert service.show(ticket())[0] == 201


def test_nobody_becomes_the_first_admin_by_name(service: Service, kerberos: Kerberos) -> None:
    kerberos.log_in("admin", kerberos.realm.keytab("admin"))
    status, _, said = service.show(ticket())

    assert status == 403
    assert said["error"]["message"].startswith(f"admin@{REALM} cannot be a user here")


@pytest.mark.parametrize(
    "principal",
    ["Alice@R", "alice/admin@R", "HTTP/master@R", "a\\@b@R", "alice@S\\@R", "@R", "alice", "", "x" * 33 + "@R", "é@R"],
)
def test_other_principals_are_no_users(principal: str) -> None:
    with pytest.raises(Forbidden):
        find_user(principal, "HTTP/master@R")


@pytest.mark.parametrize(
    ("shown", "status", "words"),
    [
        (None, 401, "this call wants a ticket of Kerberos, and shows none"),
        ("Negotiate", 401, "shows none"),
        (f"Bearer {TOKEN}", 401, "shows none"),
        ("Negotiate ?!", 401, "no Base64"),
        ("Negotiate " + base64.b64encode(b"garbage" * 100).decode(), 401, "the ticket is refused"),
        ("Negotiate TlRMTVNTUAABAAAAB4IIogAAAAAAAAAAAAAAAAAAAAAGAbEdAAAADw==", 401, "the ticket is refused"),
        ("Negotiate " + base64.b64encode(bytes(LARGEST)).decode(), 401, "the ticket is refused"),
        ("Negotiate " + base64.b64encode(bytes(LARGEST + 1)).decode(), 413, f"more than {LARGEST} bytes"),
        ("Negotiate " + "A" * (LARGEST * 4), 413, f"more than {LARGEST} bytes"),
    ],
)
def test_what_is_no_ticket_is_refused(service: Service, shown: str | None, status: int, words: str) -> None:
    answered, headers, said = service.show(shown)

    assert (answered, headers.get("www-authenticate")) == (status, "Negotiate" if status == 401 else None)
    assert words in said["error"]["message"]
    wait_for(lambda: ("anonymous", f"POST {CALL}", status) in calls_of(service))


@pytest.mark.usefixtures("alice")
def test_a_page_of_another_site_gets_no_token(service: Service) -> None:
    status, _, said = service.show(ticket(), Origin="http://elsewhere.example")

    assert status == 403
    assert said["error"]["field"] == "Origin"


def test_other_calls_name_tokens_alone(service: Service) -> None:
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=60)
    connection.request("GET", "/api/v1/nodes")
    answer = connection.getresponse()
    connection.close()

    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")


def test_a_service_without_a_keytab_takes_neither_tickets_nor_tokens_of_them(sqlite_url: str) -> None:
    text = ticket_token.text_of("alice", int(time.time()) + 3600, TOKEN)
    with serving(sqlite_url, open_reading=False) as served:
        answer = served.ask("POST", CALL, token=None)
        assert (answer.status, answer.error["message"].partition(":")[0]) == (
            404,
            "this service takes no tickets of Kerberos",
        )
        assert "www-authenticate" not in answer.headers
        assert not served.ask("GET", "/api/v1/session", token=None).json["takes_tickets"]
        with InfoClient(served.url, text, 60.0) as client, pytest.raises(Unauthorized, match="does not know"):
            client.nodes()
        with pytest.raises(NotFound):
            served.client.exchange_ticket("AAAA")


@pytest.mark.parametrize("changed", ["alice", "bob", "later", "proof"])
def test_a_token_of_a_ticket_cannot_be_altered(sqlite_url: str, kerberos: Kerberos, changed: str) -> None:
    until = int(time.time()) + 3600
    text = ticket_token.text_of("alice", until, TOKEN)
    altered = {
        "alice": text,
        "bob": text.replace("alice", "bob"),
        "later": text.replace(str(until), str(until + 1)),
        "proof": text[:-1] + ("1" if text.endswith("0") else "0"),
    }[changed]
    with serving(sqlite_url, open_reading=False, spnego_keytab=str(kerberos.keytab)) as served:
        answer = served.ask("GET", "/api/v1/nodes", token=altered)
        assert answer.status == (200 if altered == text else 401)


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (None, 0, "No such file or directory"),
        (b"no keytab", 0o600, "cannot be used"),
        (b"\x05\x02", 0o600, "cannot be used"),
        ("own", 0o644, "can be read by everybody: chmod o="),
        ("users", 0o600, "HTTP"),
    ],
)
def test_a_keytab_that_is_no_use_is_refused_at_the_start(
    tmp_path: Path, kerberos: Kerberos, content: bytes | str | None, mode: int, words: str
) -> None:
    file = tmp_path / "keytab"
    if content is not None:
        ours = {"own": kerberos.keytab, "users": kerberos.realm.keytab("alice")}
        file.write_bytes(ours[content].read_bytes() if isinstance(content, str) else content)
        file.chmod(mode)
    done = nodewise("--home", str(tmp_path), "serve", "--port", "0", "--spnego-keytab", str(file))

    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: the keytab {file} ")
    assert words in done.stderr
    assert "chmod" in done.stderr or "with the key of HTTP/HOST" in done.stderr
    assert not (tmp_path / "service").exists()


def test_a_service_whose_machine_has_no_kerberos_says_what_brings_it(
    tmp_path: Path, kerberos: Kerberos, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gssapi, "LIBRARY", "libnothing.so.1")
    gssapi.load.cache_clear()
    done = nodewise("--home", str(tmp_path), "serve", "--port", "0", "--spnego-keytab", str(kerberos.keytab))

    assert done.stderr.startswith("Error: tickets of Kerberos want libnothing.so.1, which is not there (")
    assert done.stderr.endswith("): `apt-get install libgssapi-krb5-2`\n")
