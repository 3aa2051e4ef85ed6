"""Where the daemons' pages are, as site files of many kinds say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hadoop.errors import HadoopError
from hadoop.rest.addresses import hdfs_names, namenode_addresses, resourcemanager_addresses

RM = "yarn.resourcemanager"
NN = "dfs.namenode"
HA = {
    "dfs.nameservices": "other,ns1",
    "dfs.ha.namenodes.ns1": "nn1, nn2",
    f"{NN}.rpc-address.ns1.nn1": "a:8020",
    f"{NN}.rpc-address.ns1.nn2": "b:8020",
}


def write(folder: Path, name: str, settings: dict[str, str]) -> None:
    rows = "".join(f"<property><name>{key}</name><value>{text}</value></property>" for key, text in settings.items())
    (folder / name).write_text(f"<configuration>{rows}</configuration>", encoding="utf-8")


NAMENODES: dict[str, tuple[str, dict[str, str], tuple[str, ...]]] = {
    "named": ("hdfs://a:8020", {f"{NN}.http-address": "b:1234"}, ("http://b:1234",)),
    "defaults": ("hdfs://a:9000", {}, ("http://a:9870",)),
    "any host": ("hdfs://a", {f"{NN}.http-address": "0.0.0.0:1234"}, ("http://a:1234",)),
    "rpc": ("hdfs://a", {f"{NN}.rpc-address": "c:8020"}, ("http://c:9870",)),
    "both policies": ("hdfs://a", {"dfs.http.policy": "HTTP_AND_HTTPS"}, ("http://a:9870",)),
    "https": ("hdfs://a", {"dfs.http.policy": "HTTPS_ONLY", f"{NN}.http-address": "b:1"}, ("https://a:9871",)),
    "https port": (
        "hdfs://a",
        {"dfs.http.policy": "HTTPS_ONLY", f"{NN}.https-address": "b:1234"},
        ("https://b:1234",),
    ),
    "several": ("hdfs://ns1", HA, ("http://a:9870", "http://b:9870")),
    "several named": ("hdfs://ns1", HA | {f"{NN}.http-address.ns1.nn2": "b:5"}, ("http://a:9870", "http://b:5")),
    "several https": (
        "hdfs://ns1",
        HA | {"dfs.http.policy": "HTTPS_ONLY", f"{NN}.https-address.ns1.nn1": "a:5"},
        ("https://a:5", "https://b:9871"),
    ),
    "one service": (
        "hdfs://ns1",
        {"dfs.nameservices": "ns1", f"{NN}.rpc-address.ns1": "a:1", f"{NN}.http-address.ns1": "a:2"},
        ("http://a:2",),
    ),
    "another file system": ("s3a://bucket", HA | {"dfs.nameservices": "ns1"}, ("http://a:9870", "http://b:9870")),
    "by a host": ("hdfs://b:8020", HA, ("http://a:9870", "http://b:9870")),
    "variable": ("hdfs://a", {"here": "v", f"{NN}.http-address": "${here}:${port}", "port": "7"}, ("http://v:7",)),
    "address of version 6": ("hdfs://a", {f"{NN}.http-address": "[fd00::1]:7"}, ("http://[fd00::1]:7",)),
}


@pytest.mark.parametrize(("default", "settings", "addresses"), NAMENODES.values(), ids=NAMENODES)
def test_the_namenodes_are_where_the_site_files_say(
    tmp_path: Path, default: str, settings: dict[str, str], addresses: tuple[str, ...]
) -> None:
    write(tmp_path, "core-site.xml", {"fs.defaultFS": default})
    write(tmp_path, "hdfs-site.xml", settings)
    assert namenode_addresses(tmp_path) == addresses


SEVERAL = {f"{RM}.ha.enabled": "true", f"{RM}.ha.rm-ids": "rm1,rm2", f"{RM}.hostname.rm1": "a"}
RESOURCEMANAGERS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "host": ({f"{RM}.hostname": "a"}, ("http://a:8088",)),
    "port": ({f"{RM}.hostname": "a", f"{RM}.webapp.address": "b:1234"}, ("http://b:1234",)),
    "variable": ({f"{RM}.hostname": "a", f"{RM}.webapp.address": f"${{{RM}.hostname}}:1234"}, ("http://a:1234",)),
    "any host": ({f"{RM}.hostname": "a", f"{RM}.webapp.address": "0.0.0.0:1234"}, ("http://a:1234",)),
    "rpc": ({f"{RM}.address": "a:8032"}, ("http://a:8088",)),
    "https": ({f"{RM}.hostname": "a", "yarn.http.policy": "HTTPS_ONLY"}, ("https://a:8090",)),
    "https port": (
        {f"{RM}.hostname": "a", "yarn.http.policy": "https_only", f"{RM}.webapp.https.address": "a:5"},
        ("https://a:5",),
    ),
    "several": (
        SEVERAL | {f"{RM}.webapp.address.rm2": "b:5"},
        ("http://a:8088", "http://b:5"),
    ),
    "several are off": (SEVERAL | {f"{RM}.ha.enabled": "false", f"{RM}.hostname": "c"}, ("http://c:8088",)),
}


@pytest.mark.parametrize(("settings", "addresses"), RESOURCEMANAGERS.values(), ids=RESOURCEMANAGERS)
def test_the_resourcemanagers_are_where_the_site_files_say(
    tmp_path: Path, settings: dict[str, str], addresses: tuple[str, ...]
) -> None:
    write(tmp_path, "yarn-site.xml", settings)
    assert resourcemanager_addresses(tmp_path) == addresses


def test_without_any_host_the_missing_key_is_named(tmp_path: Path) -> None:
    write(tmp_path, "yarn-site.xml", {f"{RM}.webapp.address": "0.0.0.0:1234"})
    with pytest.raises(HadoopError, match=r"yarn-site\.xml does not set yarn\.resourcemanager\.hostname: add it"):
        resourcemanager_addresses(tmp_path)


@pytest.mark.parametrize("said", ["a:b", "a:99999", "[a"])
def test_an_address_that_makes_no_sense_is_named_with_its_key(tmp_path: Path, said: str) -> None:
    write(tmp_path, "hdfs-site.xml", {f"{NN}.http-address": said})
    with pytest.raises(HadoopError, match=r"hdfs-site\.xml sets dfs\.namenode\.http-address to '.*': correct it"):
        namenode_addresses(tmp_path)


def test_variables_that_name_each_other_come_to_an_end(tmp_path: Path) -> None:
    write(tmp_path, "yarn-site.xml", {f"{RM}.hostname": "${a}", "a": "${b}", "b": "${a}"})
    with pytest.raises(HadoopError, match="variables that name each other"):
        resourcemanager_addresses(tmp_path)


def test_an_hdfs_is_called_by_its_name_service_or_by_its_hosts(tmp_path: Path) -> None:
    write(tmp_path, "core-site.xml", {"fs.defaultFS": "hdfs://ns1"})
    write(tmp_path, "hdfs-site.xml", HA)
    assert hdfs_names(tmp_path) == ("ns1", "a", "b")
    write(tmp_path, "core-site.xml", {"fs.defaultFS": "hdfs://master:8020"})
    write(tmp_path, "hdfs-site.xml", {})
    assert hdfs_names(tmp_path) == ("master",)


def test_a_name_service_that_is_not_configured_here_is_named(tmp_path: Path) -> None:
    write(tmp_path, "core-site.xml", {"fs.defaultFS": "hdfs://ns2"})
    write(tmp_path, "hdfs-site.xml", HA)
    said = r"core-site\.xml sets fs\.defaultFS to hdfs://ns2, and .* knows no such HDFS: name one of other, ns1"
    for find in (namenode_addresses, hdfs_names):
        with pytest.raises(HadoopError, match=said):
            find(tmp_path)
