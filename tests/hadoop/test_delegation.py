"""The token that YARN gives a container: read from a file as Hadoop 3.5 writes it, and shown to WebHDFS."""

from __future__ import annotations

import base64
from contextlib import closing
from pathlib import Path

import pytest

from hadoop.rest.delegation import parse_token
from hadoop.rest.webhdfs import NotProxy, WebHdfs
from tests.hadoop.hadoop_pages import Daemon, Hdfs, say

# Of an application master, written by org.apache.hadoop.security.Credentials: a token for YARN, then one for HDFS whose
# identifier has 200 bytes; TOKEN is what the second one's encodeToUrlString gave.
FILE = base64.b64decode(
    "SERUUwACAmFtHmFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYQRwcHBwEFlBUk5fQU1fUk1fVE9LRU4MMS4yLjMuNDo4MDMw"
    "EGhhLWhkZnM6bm9kZXdpc2WPyGlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
    "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
    "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpBHFxcXEV"
    "SERGU19ERUxFR0FUSU9OX1RPS0VOEGhhLWhkZnM6bm9kZXdpc2UA"
)
TOKEN = (
    "j8hpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
    "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
    "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaQRxcXFxFUhERlNfREVMRUdBVElPTl9U"
    "T0tFThBoYS1oZGZzOm5vZGV3aXNl"
)


def test_the_token_for_hdfs_is_found_among_others() -> None:
    assert parse_token(FILE) == TOKEN


@pytest.mark.parametrize("length", [0, 4, 7, 20, 100, 300])
def test_a_file_that_is_cut_off_has_none(length: int) -> None:
    assert parse_token(FILE[:length]) is None


def test_another_kind_of_file_and_one_without_such_a_token_have_none() -> None:
    assert parse_token(b"HDTS\x01" + FILE[5:]) is None
    assert parse_token(FILE.replace(b"HDFS_DELEGATION_TOKEN", b"HDFS_DELEGATION_OTHER")) is None


def test_of_two_namenodes_one_that_stands_by_and_so_cannot_check_the_token_is_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokens").write_bytes(FILE)
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "tokens"))
    with closing(Daemon(Hdfs(is_active=False))) as one, closing(Daemon(Hdfs())) as other:
        assert WebHdfs((one.address, other.address), "me").exists("/")

        assert [asked.query["delegation"] for asked in one.asked + other.asked] == [TOKEN, TOKEN]


def test_hdfs_is_shown_the_token_and_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokens").write_bytes(FILE)
    daemon = Daemon(Hdfs())
    try:
        monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION", raising=False)
        WebHdfs(daemon.address, "me").exists("/")
        monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "tokens"))
        WebHdfs(daemon.address, "me").exists("/")
        monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "missing"))
        WebHdfs(daemon.address, "me").exists("/")
    finally:
        daemon.close()
    shown = [{name: text for name, text in one.query.items() if name != "op"} for one in daemon.asked]
    assert shown == [{"user.name": "me"}, {"delegation": TOKEN}, {"user.name": "me"}]


def test_a_user_for_whom_hdfs_is_asked_is_named_in_place_of_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokens").write_bytes(FILE)
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "tokens"))
    refused = {"exception": "AuthorizationException", "message": "User: svc is not allowed to impersonate bob"}
    daemon = Daemon(lambda asked: say({"RemoteException": refused}, 403) if "doas" in asked.query else Hdfs()(asked))
    try:
        hdfs = WebHdfs(daemon.address, "svc")
        with pytest.raises(NotProxy, match="HDFS refused / to bob: User: svc is not allowed to impersonate bob"):
            hdfs.seen_by("bob").exists("/")
        hdfs.exists("/")
    finally:
        daemon.close()
    shown = [{name: text for name, text in one.query.items() if name != "op"} for one in daemon.asked]
    assert shown == [{"doas": "bob"}, {"delegation": TOKEN}]
