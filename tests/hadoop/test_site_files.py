"""Site files read without a JVM, and what is said when they cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from hadoop.errors import HadoopError
from hadoop.local import site
from hadoop.local.state import Cluster
from hadoop.rest import site_files
from hadoop.rest.addresses import namenode_addresses, resourcemanager_addresses


def _site_file(directory: Path, content: str) -> Path:
    path = directory / "hdfs-site.xml"
    path.write_text(content, encoding="utf-8")
    return path


def test_the_addresses_are_those_of_the_cluster_that_wrote_the_files(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, "127.0.9", 1, "me", Path("/jars"), Path("/jvm/bin/java"))
    site.render(cluster)
    assert namenode_addresses(cluster.conf_dir) == (cluster.namenode_http,)
    assert resourcemanager_addresses(cluster.conf_dir) == (cluster.rm_http,)


def test_blanks_around_keys_and_values_do_not_count(tmp_path: Path) -> None:
    written = "<configuration><property>\n<name> key </name>\n<value>\n  a:1 </value></property></configuration>"
    assert site_files.value(_site_file(tmp_path, written), "key") == "a:1"


def test_a_missing_file_and_a_missing_key_are_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(HadoopError, match=r"hdfs-site\.xml does not exist: start a cluster .* or .* --hadoop-conf"):
        namenode_addresses(tmp_path)
    _site_file(tmp_path, "<configuration/>")
    with pytest.raises(HadoopError, match=r"hdfs-site\.xml does not set dfs\.namenode\.http-address: add it"):
        namenode_addresses(tmp_path)


@pytest.mark.parametrize("content", ["", "<configuration>", "key = value"])
def test_a_file_that_is_no_xml_is_one_sentence(tmp_path: Path, content: str) -> None:
    _site_file(tmp_path, content)
    with pytest.raises(HadoopError, match=r"hdfs-site\.xml cannot be read \(.*\): mend it, it must be Hadoop's XML"):
        namenode_addresses(tmp_path)


AUTHENTICATED = (
    "<configuration><property><name>hadoop.security.authentication</name><value>{}</value></property></configuration>"
)


@pytest.mark.parametrize(
    ("text", "has_kerberos"),
    [(AUTHENTICATED.format("Kerberos"), True), (AUTHENTICATED.format("simple"), False), ("<configuration/>", False)],
)
def test_core_site_says_whether_there_is_kerberos(tmp_path: Path, text: str, has_kerberos: bool) -> None:
    (tmp_path / "core-site.xml").write_text(text)

    assert site_files.has_kerberos(tmp_path) is has_kerberos


def test_a_core_site_that_is_no_xml_is_named(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration>")

    with pytest.raises(HadoopError, match=r"core-site\.xml cannot be read"):
        site_files.has_kerberos(tmp_path)
