"""`nodewise doctor` as people run it, against real services and against nothing at all."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Outcome, Report, Role, Run
from nodewise.doctor.finding import PATIENCE_SECONDS
from tests.infosvc.test_tls import Authority
from tests.ports import free_port

if TYPE_CHECKING:
    from tests.nodewise.conftest import Doctor, Serving

CHECKS = (
    "python", "worker python", "java", "jars", "disk", "cluster ports", "hdfs", "yarn", "hadoop version",
    "service port", "service", "token", "token file", "agents", "agent versions", "ssh", "clock",
)  # fmt: skip


def test_with_nothing_there_everything_to_come_is_skipped_and_nothing_is_made(doctor: Doctor, home: Path) -> None:
    report = doctor("--url", f"http://127.0.0.1:{free_port()}")
    assert not home.exists()
    assert report["hdfs"][0] == report["yarn"][0] == "skipped"
    assert "nodewise cluster up" in report["hdfs"][2]
    assert report["token file"][0] == report["agents"][0] == report["clock"][0] == "skipped"


def test_json_has_the_same_checks_in_the_same_order_whatever_is_there(doctor: Doctor, serve: Serving) -> None:
    with serve() as url:
        reports = [doctor("--url", url), doctor("--url", "http://127.0.0.1:9")]
    for report in reports:
        assert set(report.body) == {"ok", "findings"}
        assert tuple(finding["name"] for finding in report.body["findings"]) == CHECKS
        assert all(set(finding) == {"name", "state", "what", "remedy"} for finding in report.body["findings"])
        assert report.status == (0 if report.body["ok"] else 1)


def test_a_service_that_is_well_is_told_so(doctor: Doctor, serve: Serving, token: Path) -> None:
    with serve() as url:
        report = doctor(NODEWISE_URL=url)
    assert report["service"] == ("ok", f"{url} answers and is ready", "")
    assert report["token"] == ("ok", "accepted, role admin", "")
    assert report["token file"][0] == report["service port"][0] == "ok"
    assert report["clock"] == ("ok", "within 5 s of information service", "")
    assert report["agents"][0] == "skipped"


def test_a_wrong_token_fails(doctor: Doctor, serve: Serving, token: Path) -> None:
    token.write_text("nw_admin_of-another-service\n")
    with serve() as url:
        report = doctor(NODEWISE_URL=url)
    assert report.status == 1
    assert report["service"][0] == "ok"
    state, what, remedy = report["token"]
    assert (state, what.partition(":")[0]) == ("fail", "the call shows a token that this service does not know")
    assert "nodewise token create" in remedy


def test_a_revoked_token_fails_with_its_name(doctor: Doctor, serve: Serving, token: Path) -> None:
    with serve() as url:
        with InfoClient(url, token.read_text().strip()) as client:
            made, text = client.create_token("grafana", Role.READER)
            token.write_text(text)
            assert doctor(NODEWISE_URL=url)["token"] == ("ok", "accepted, role reader", "")
            client.revoke_token(made.token_id)
        assert doctor(NODEWISE_URL=url)["token"][1].startswith("the token 'grafana' was revoked")


def test_no_token_is_enough_only_where_reading_is_open(doctor: Doctor, serve: Serving) -> None:
    with serve() as url:
        assert doctor(NODEWISE_URL=url)["token"][0] == "warn"
    with serve(open_reading=False) as url:
        report = doctor(NODEWISE_URL=url)
    assert (report.status, report["token"][0], report["service"][0]) == (1, "fail", "ok")


def test_a_token_that_others_can_read_fails(doctor: Doctor, serve: Serving, token: Path) -> None:
    token.chmod(0o644)
    with serve() as url:
        report = doctor(NODEWISE_URL=url)
    state, what, remedy = report["token file"]
    assert (report.status, state) == (1, "fail")
    assert "mode 0644" in what
    assert f"chmod 600 {token}" in remedy


def test_a_token_file_that_is_not_there_is_named(doctor: Doctor) -> None:
    report = doctor(NODEWISE_TOKEN_FILE="/nowhere/token")
    assert report["token file"][:2] == ("fail", "there is no /nowhere/token")
    assert "/nowhere/token" in report["service"][1]


def test_a_named_service_that_is_away_fails(doctor: Doctor) -> None:
    report = doctor(NODEWISE_URL="http://127.0.0.1:9")
    state, what, remedy = report["service"]
    assert (report.status, state) == (1, "fail")
    assert what.startswith("the information service at http://127.0.0.1:9 does not answer")
    assert remedy.startswith("start it with `nodewise serve`")
    assert report["token"][0] == report["agents"][0] == "skipped"


def test_https_is_trusted_by_the_authority_that_is_named(doctor: Doctor, serve: Serving, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    cert, key = authority.issue("service")
    with serve(tls_cert=str(cert), tls_key=str(key)) as url:
        trusted, untrusted = doctor(NODEWISE_URL=url, NODEWISE_CA_FILE=str(authority.file)), doctor(NODEWISE_URL=url)
        nowhere = doctor(NODEWISE_URL=url, NODEWISE_CA_FILE="/nowhere/ca.pem")
    assert url.startswith("https:")
    assert (trusted["service"][0], trusted["clock"][0]) == ("ok", "ok")
    assert (untrusted["service"][0], untrusted["service port"][0]) == ("fail", "ok")
    assert "is not trusted" in untrusted["service"][1]
    assert "NODEWISE_CA_FILE" in untrusted["service"][2]
    assert (nowhere["service"][0], nowhere["service port"][0]) == ("fail", "skipped")
    assert "/nowhere/ca.pem" in nowhere["service"][1]


def test_whoever_else_listens_there_is_found_out(doctor: Doctor) -> None:
    with _answering(b"<html>hello</html>") as url:
        report = doctor(NODEWISE_URL=url)
    assert "is not an information service" in report["service"][1]
    assert report["service port"][0] == "fail"


def test_a_silent_service_and_a_silent_cluster_hold_nobody_up(doctor: Doctor, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        site = f"<property><name>dfs.namenode.http-address</name><value>{address}</value></property>"
        (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{site}</configuration>")
        begun = time.monotonic()
        doctor(NODEWISE_URL="http://127.0.0.1:9", HADOOP_CONF_DIR="/nowhere")
        usual = time.monotonic() - begun
        report = doctor(NODEWISE_URL=f"http://{address}", HADOOP_CONF_DIR=str(tmp_path))
        assert time.monotonic() - begun - usual < usual + 45
    assert report["service"][0] == report["hdfs"][0] == report["yarn"][0] == "fail"
    assert "does not answer (timed out)" in report["service"][1], "its own patience ended it, and not that for all"
    assert f"the NameNode at http://{address} does not answer (timed out)" in report["hdfs"][1]
    assert report["cluster ports"][0] == "skipped"


def test_a_slow_service_is_given_as_long_as_the_environment_says(doctor: Doctor) -> None:
    with _answering(b"<html>hello</html>", after=PATIENCE_SECONDS + 1) as url:
        report = doctor(NODEWISE_URL=url, NODEWISE_SERVICE_TIMEOUT="60")
    assert "is not an information service" in report["service"][1], "and not: does not answer"


def test_a_patience_that_is_no_number_is_refused_in_one_sentence(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run(NODEWISE_SERVICE_TIMEOUT="soon")
    assert (done.returncode, done.stdout) == (1, "")
    assert "NODEWISE_SERVICE_TIMEOUT is 'soon'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_agents_that_are_silent_or_old_are_named(doctor: Doctor, serve: Serving, token: Path) -> None:
    # Three silent heartbeats of the usual length are soon over where the command alone takes seconds to start.
    with serve(heartbeat=100.0, lost_after=1000.0) as url, InfoClient(url, token.read_text().strip()) as client:
        client.put_node("w1", "127.0.0.1:9", "of-old")
        client.put_node("w2", "127.0.0.1:9")
        client.report("w1", Report("b", 1, "of-old", (Run("x", Outcome.OK, 0.1, "1"),)))
        report = doctor(NODEWISE_URL=url)
    assert report["agents"][0] == "warn"
    assert report["agents"][1].endswith(": w2")
    assert report["agent versions"][0] == "warn"
    assert report["agent versions"][1].startswith("w1 run of-old, and ")
    assert "nodewise producer push --all" in report["agent versions"][2]


def test_logins_are_tried_when_asked_for(doctor: Doctor, serve: Serving, token: Path, tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "config"
    config.write_text(f"Host w1\n  HostName 127.0.0.1\n  Port {port}\n")
    with serve() as url, InfoClient(url, token.read_text().strip()) as client:
        client.put_node("w1", "127.0.0.1:9")
        report = doctor("--ssh", "-F", str(config), NODEWISE_URL=url)
    state, what, _ = report["ssh"]
    assert (report.status, state) == (1, "fail")
    assert what.startswith(f"1 of 1 logins failed (w1): 127.0.0.1 cannot be reached over SSH, port {port}")


def test_the_table_is_plain_in_a_pipe_and_says_what_to_do(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run(NODEWISE_URL="http://127.0.0.1:9")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr, "\x1b" in done.stdout) == (1, "", False)
    assert lines[0].split() == ["check", "state", "found"]
    failed = next(number for number, line in enumerate(lines) if line.startswith("service  ") and "fail" in line)
    assert lines[failed + 1].strip().startswith("-> start it with `nodewise serve`")
    assert lines[-1].split(", ")[-1].endswith("skipped")


def test_a_java_of_another_version_fails_with_what_to_install(doctor: Doctor, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2020-01-01' >&2\n")
    program.chmod(0o755)
    report = doctor(JAVA_HOME=str(tmp_path))
    assert (report.status, report["java"][0]) == (1, "fail")
    assert "Java 11" in report["java"][1]
    assert "apt-get install openjdk-17" in report["java"][2]


def test_a_damaged_cluster_is_a_finding_and_no_traceback(doctor: Doctor, home: Path) -> None:
    (home / "cluster").mkdir(parents=True)
    (home / "cluster" / "cluster.json").write_text("{")
    report = doctor()
    assert report["cluster ports"][0] == "fail"
    assert "cluster.json is damaged" in report["cluster ports"][1]
    assert "nodewise cluster down" in report["cluster ports"][2]


@contextmanager
def _answering(body: bytes, after: float = 0.0) -> Iterator[str]:
    """A web server that says the same to every call, after so many seconds."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(after)
            self.send_response(404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
