"""Pages that want a ticket of Kerberos: a real KDC, real tickets, and daemons that accept them by their own keytab."""

from __future__ import annotations

import os
import re
import secrets
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hadoop.errors import HadoopError, NoTicket
from hadoop.local.kerberos import programs
from hadoop.local.kerberos.realm import REALM, Realm
from hadoop.rest import connections, spnego
from hadoop.rest.connections import Limits
from hadoop.rest.container_logs import read_since
from hadoop.rest.pages import NotKnown, Pages
from hadoop.rest.resourcemanager import ResourceManager
from hadoop.rest.webhdfs import WebHdfs
from hadoop.rest.webhdfs_writing import WritableHdfs
from infosvc.wire.kerberos import gssapi
from jobs.commands import options
from tests.hadoop.hadoop_pages import Asked, Daemon, Hdfs, Said, say
from tests.in_process import nodewise
from tests.kdc import running
from tests.ports import free_port

Start = Callable[..., Daemon]
ALICE = f"alice@{REALM}"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    folder = tmp_path_factory.mktemp("realm")
    here = ("127.0.0.1",)
    made = Realm(folder, folder, f"127.0.0.1:{free_port()}", here, (), here, "me", ("alice",))
    made.prepare()
    with running(made):
        yield made


@pytest.fixture
def nobody(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process, in the realm and without a ticket; the daemons of the tests have their keytab."""
    told = {
        "KRB5_CONFIG": str(realm.krb5_conf),
        "KRB5_KTNAME": str(realm.folder / "keytabs" / "HTTP.keytab"),
        "KRB5RCACHENAME": "none:",
        "KRB5CCNAME": f"MEMORY:{secrets.token_hex(4)}",
    }
    for name, text in told.items():
        monkeypatch.setenv(name, text)
    for name in ("KRB5_CLIENT_KTNAME", "NODEWISE_KEYTAB", "NODEWISE_PRINCIPAL", "HADOOP_TOKEN_FILE_LOCATION"):
        monkeypatch.delenv(name, raising=False)
    spnego._take_keytab.cache_clear()


def log_in(realm: Realm, folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Get the ticket of alice's `kinit`."""
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{folder}/tickets")
    kinit = programs.find("kinit")
    argv = [str(kinit), *words, "-k", "-t", str(realm.keytab("alice")), "alice"]
    subprocess.run(argv, check=True, env={**os.environ, **programs.libraries(kinit)})


@pytest.fixture
def alice(nobody: None, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, with a ticket of alice's."""
    log_in(realm, tmp_path, monkeypatch)


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(answer: Callable[[Asked], Said], context: ssl.SSLContext | None = None) -> Daemon:
            made = Daemon(answer, kerberos=True, context=context)
            stack.callback(made.close)
            return made

        yield begin


def name_caller(asked: Asked) -> Said:
    return say({"user": asked.user})


@pytest.mark.usefixtures("alice")
def test_a_ticket_is_shown_once_to_a_daemon_that_wants_one(start: Start) -> None:
    daemon = start(name_caller)
    pages = Pages("NameNode", daemon.address)

    assert [pages.read_json("/jmx", "it") for _ in range(3)] == [{"user": ALICE}] * 3
    assert Pages("NameNode", daemon.address).read_json("/jmx", "it") == {"user": ALICE}
    assert (daemon.handshakes, len(daemon.asked)) == (1, 4)


@pytest.mark.usefixtures("alice")
def test_two_daemons_of_one_host_do_not_get_what_the_other_one_gave(start: Start) -> None:
    daemons = [start(name_caller) for _ in range(2)]
    both = [Pages("NameNode", daemon.address, kept=1) for daemon in daemons]

    for _ in range(3):
        assert [pages.read_json("/jmx", "it") for pages in both] == [{"user": ALICE}] * 2
    assert [daemon.handshakes for daemon in daemons] == [1, 1]


@pytest.mark.usefixtures("alice")
def test_a_daemon_that_does_not_know_us_any_more_is_shown_a_ticket_again(start: Start) -> None:
    daemon = start(name_caller)
    pages = Pages("NameNode", daemon.address)
    pages.read_json("/jmx", "it")

    daemon.cookies.clear()

    assert pages.read_json("/jmx", "it") == {"user": ALICE}
    assert daemon.handshakes == 2


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("variable", ["KRB5_CLIENT_KTNAME", "NODEWISE_KEYTAB"])
def test_a_keytab_gives_a_service_its_ticket(
    start: Start, realm: Realm, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", "")  # so that what is set in between is taken back
    monkeypatch.delenv("KRB5_CLIENT_KTNAME")
    monkeypatch.setenv(variable, str(realm.keytab("alice")))
    assert Pages("NameNode", start(name_caller).address).read_json("/jmx", "it") == {"user": ALICE}


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(("principal", "user"), [("me", f"me@{REALM}"), (ALICE, ALICE), (None, f"me@{REALM}")])
def test_of_a_keytab_of_several_one_may_be_named(
    start: Start, realm: Realm, principal: str | None, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = "KRB5_CLIENT_KTNAME", "KRB5CCNAME"
    for name in names:  # so that what is set in between is taken back
        monkeypatch.setenv(name, os.environ.get(name, ""))
    both = tmp_path / "both.keytab"
    both.write_bytes(realm.keytab("me").read_bytes() + realm.keytab("alice").read_bytes()[2:])
    monkeypatch.setenv("NODEWISE_KEYTAB", str(both))
    if principal:
        monkeypatch.setenv("NODEWISE_PRINCIPAL", principal)
    assert Pages("NameNode", start(name_caller).address).read_json("/jmx", "it") == {"user": user}


@pytest.mark.usefixtures("nobody")
def test_the_option_of_a_command_names_a_keytab_too(
    start: Start, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KRB5_CLIENT_KTNAME", "NODEWISE_KEYTAB", "NODEWISE_PRINCIPAL"):  # which are taken back then
        monkeypatch.setenv(name, "")
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    monkeypatch.setattr("hadoop.client.jvm.check_jars", lambda jars: None)

    options.hadoop_home(tmp_path, tmp_path, tmp_path, None, realm.keytab("alice"), "alice")

    assert Pages("NameNode", start(name_caller).address).read_json("/jmx", "it") == {"user": ALICE}


@pytest.mark.usefixtures("alice")
def test_a_command_that_reads_pages_is_whom_the_ticket_says_and_nobody_else(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = start(Hdfs()).address.removeprefix("http://")
    for name, key, text in (
        ("core-site.xml", "hadoop.security.authentication", "kerberos"),
        ("hdfs-site.xml", "dfs.namenode.http-address", host),
        ("yarn-site.xml", "yarn.resourcemanager.webapp.address", host),
    ):
        content = f"<configuration><property><name>{key}</name><value>{text}</value></property></configuration>"
        (tmp_path / name).write_text(content)
    monkeypatch.setattr("hadoop.client.jvm.check_jars", lambda jars: None)
    given = {"hadoop_conf": tmp_path, "jars": tmp_path}

    assert options.page_reader(tmp_path, given | {"user": None}).user == "alice"
    assert options.page_reader(tmp_path, given | {"user": "alice"}).user == "alice"
    with pytest.raises(HadoopError, match="--user bob is refused: this cluster has Kerberos, for which you are alice"):
        options.page_reader(tmp_path, given | {"user": "bob"})
    done = nodewise("--home", str(tmp_path), "usage", "--hadoop-conf", str(tmp_path), "--user", "bob")
    assert (done.returncode, "--user bob is refused" in done.stderr) == (1, True), done


@pytest.mark.usefixtures("nobody")
def test_a_principal_that_a_keytab_does_not_hold_is_said(
    start: Start, realm: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", "")
    monkeypatch.setenv("NODEWISE_KEYTAB", str(realm.keytab("alice")))
    monkeypatch.setenv("NODEWISE_PRINCIPAL", "bob")
    with pytest.raises(NoTicket, match="bob"):
        Pages("NameNode", start(name_caller).address).ask("/jmx")


@pytest.mark.usefixtures("nobody")
def test_without_a_ticket_the_sentence_says_kinit(start: Start) -> None:
    daemon = start(name_caller)
    with pytest.raises(NoTicket, match=r"127\.0\.0\.1 want a ticket.*none \(.+\): run `kinit`, or name a keytab") as no:
        ResourceManager(daemon.address).is_running("application_1_1")
    assert not isinstance(no.value, NotKnown)
    with pytest.raises(NoTicket, match="run `kinit`"):
        read_since("container_1_1", daemon.address, "stdout", "me", 0)
    with pytest.raises(NoTicket, match="run `kinit`"):
        WebHdfs(daemon.address, "me").exists("/data")
    assert daemon.asked == []


@pytest.mark.usefixtures("alice")
def test_other_reasons_have_other_remedies(tmp_path: Path, realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoTicket, match=r"elsewhere want.*not found in Kerberos database.*: let Hadoop's site files"):
        spnego.make_token("elsewhere")
    wrong = tmp_path / "krb5.conf"
    wrong.write_text(realm.krb5_conf.read_text().replace(realm.kdc, f"127.0.0.1:{free_port()}"))
    monkeypatch.setenv("KRB5_CONFIG", str(wrong))
    with pytest.raises(NoTicket, match=r"Cannot contact any KDC.*: see that the KDC in krb5\.conf"):
        spnego.make_token("another")


@pytest.mark.usefixtures("nobody")
def test_a_kdc_that_hangs_is_given_up_in_time(
    start: Start, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.keytab("alice")))
    wrong = tmp_path / "krb5.conf"
    monkeypatch.setenv("KRB5_CONFIG", str(wrong))
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        wrong.write_text(realm.krb5_conf.read_text().replace(realm.kdc, f"127.0.0.1:{deaf.getsockname()[1]}"))
        monkeypatch.setattr(connections, "_TICKET_SECONDS", 60.0)
        page = Pages("NameNode", start(name_caller).address, Limits(seconds=16.0))
        # What the page has left of its time once it has asked for a ticket; the library itself would take longer.
        within = r"within ([1-9]|1[0-6]) s\)"
        with pytest.raises(NoTicket, match=rf"Cannot contact any KDC {within}: see that the KDC in krb5\.conf"):
            page.ask("/jmx")


@pytest.mark.usefixtures("nobody")
def test_a_keytab_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", f"FILE:{tmp_path}/missing")
    with pytest.raises(NoTicket, match=r"the keytab /.*/missing cannot be read\): name a file that this user may read"):
        spnego.make_token("127.0.0.1")


@pytest.mark.usefixtures("nobody")
def test_an_expired_ticket_is_none(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_in(realm, tmp_path, monkeypatch, "-l", "1s")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            spnego.make_token("127.0.0.1")
        except NoTicket as error:
            assert re.search(r"expired|No Kerberos credentials", error.message), error
            assert "run `kinit`" in error.remedy
            return
        time.sleep(0.1)
    pytest.fail("the ticket has not expired")


@pytest.mark.usefixtures("nobody")
def test_a_machine_without_the_library_is_told_what_brings_it(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gssapi, "LIBRARY", "libnothing.so.1")
    gssapi.load.cache_clear()
    with pytest.raises(NoTicket) as pages:
        Pages("NameNode", start(name_caller).address).ask("/jmx")
    done = nodewise("login", "--url", "http://127.0.0.1:1")

    reason = "libnothing.so.1: cannot open shared object file: No such file or directory"
    ends = f"want a ticket of Kerberos, and libnothing.so.1 is not there ({reason}): `apt-get install libgssapi-krb5-2`"
    assert str(pages.value) == f"the pages of Hadoop on 127.0.0.1 {ends}"
    assert done.stderr == f"Error: log-ins at the service on 127.0.0.1 {ends}\n"


@pytest.mark.usefixtures("alice")
def test_a_ticket_is_shown_over_https(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    argv += ["-days", "2", "-subj", "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1"]
    argv += ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run(argv, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    assert Pages("NameNode", start(name_caller, context).address).read_json("/jmx", "it") == {"user": ALICE}


@pytest.mark.usefixtures("alice")
def test_who_is_known_and_may_not_is_refused_and_not_told_that_there_is_nothing(start: Start) -> None:
    daemon = start(lambda _: say({"RemoteException": {"message": "Permission denied: user=alice"}}, 403))
    with pytest.raises(HadoopError, match=r"does not show application application_1_1 to this user \(status 403") as no:
        ResourceManager(daemon.address).is_running("application_1_1")
    assert not isinstance(no.value, NotKnown)
    with pytest.raises(HadoopError, match="Permission denied: user=alice"):
        WebHdfs(daemon.address, "me").status("/user/bob")


@pytest.mark.usefixtures("alice")
def test_hdfs_is_read_and_written_with_a_ticket(start: Start) -> None:
    hdfs = Hdfs()
    namenode = start(hdfs)
    datanode = Daemon(hdfs)  # which is shown what the NameNode put into the address
    hdfs.datanode = datanode.address
    try:
        WritableHdfs(namenode.address, "me").write("/data/a", b"content")
        assert WebHdfs(namenode.address, "me").read("/data/a") == b"content"
        assert {asked.user for asked in namenode.asked} == {ALICE}
        assert namenode.handshakes == 1
    finally:
        datanode.close()
