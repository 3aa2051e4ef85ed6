"""What is refused before anything starts: Java, jars, options, paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hadoop.client import jre
from hadoop.client.jars import JARS
from hadoop.errors import HadoopError
from hadoop.local import command, daemons, lifecycle, planning, ports, sshd, state
from hadoop.local.state import Cluster


def _fake_java(home: Path, version: str) -> Path:
    """A JAVA_HOME whose java prints this version, as the real one does on stderr."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n", encoding="ascii")
    java.chmod(0o755)
    return home


def test_another_java_is_refused_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(tmp_path / "jdk", "11.0.2")))
    with pytest.raises(
        HadoopError, match=r"is Java 11, and Hadoop needs Java 17.*apt-get install openjdk-17-jre-headless"
    ):
        lifecycle.up(tmp_path / "home")


def test_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(HadoopError, match=f"JAVA_HOME={tmp_path} has no bin/java"):
        lifecycle.up(tmp_path / "home")


def test_a_machine_without_java_gets_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HadoopError, match=r"Java is missing.*apt-get install openjdk-17-jre-headless"):
        jre.find_java(None, jvms=tmp_path)


def test_debians_java_17_is_found_behind_a_newer_one_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = _fake_java(tmp_path / "newer", "21.0.1")
    right = _fake_java(tmp_path / "jvm" / "java-17-openjdk-amd64", "17.0.15")
    monkeypatch.setenv("PATH", f"{newer}/bin:/usr/bin:/bin")
    assert jre.find_java(None, jvms=tmp_path / "jvm") == right / "bin" / "java"


def test_java_21_is_taken_where_there_is_no_17(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Debian 13, whose newest Java may be before it on the path."""
    newest = _fake_java(tmp_path / "newest", "25.0.1")
    right = _fake_java(tmp_path / "jvm" / "java-21-openjdk-amd64", "21.0.1")
    monkeypatch.setenv("PATH", f"{newest}/bin:/usr/bin:/bin")
    assert jre.find_java(None, jvms=tmp_path / "jvm") == right / "bin" / "java"
    with pytest.raises(HadoopError, match=r"is Java 25, and Hadoop needs Java 17 or 21"):
        jre.find_java(None, jvms=tmp_path)
    monkeypatch.setenv("PATH", f"{right}/bin:/usr/bin:/bin")
    assert jre.find_java(None, jvms=tmp_path) == right / "bin" / "java"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("Segmentation fault", None),
    ],
)
def test_java_versions_are_read(text: str, version: int | None) -> None:
    assert jre.parse_version(text) == version


def test_missing_jars_are_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(HadoopError, match=r"has no hadoop-common-\*\.jar: run scripts/setup"):
        lifecycle.up(tmp_path / "home", jars=tmp_path)


def test_a_missing_sshd_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sshd, "_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HadoopError, match="sshd is missing: install it with `apt-get install openssh-server`"):
        lifecycle.up(tmp_path / "home")


def test_too_little_room_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HadoopError, match=r"is full: .* MB are free, and a cluster needs 1,000,000,000,000 MB"):
        lifecycle.up(tmp_path, min_free_bytes=10**18)


def test_a_disk_that_is_full_when_we_write_is_one_sentence(tmp_path: Path) -> None:
    refused = pytest.raises(HadoopError, match=r"the disk under .* is full: free some space or use another --home")
    with refused, state.explain_os_errors(tmp_path):
        Path("/dev/full").write_text("anything", encoding="ascii")


@pytest.mark.parametrize("nodes", [0, -1, 65])
def test_an_impossible_number_of_nodes_is_refused(tmp_path: Path, nodes: int) -> None:
    with pytest.raises(HadoopError, match=f"--nodes {nodes} is not allowed: give 1 to 64"):
        lifecycle.up(tmp_path, nodes=nodes)


@pytest.mark.parametrize("subnet", ["127.0.0", "127.0.255", "10.0.0", "127.0.07", "127.0.1.1", "x"])
def test_a_subnet_beyond_loopback_is_refused(tmp_path: Path, subnet: str) -> None:
    with pytest.raises(HadoopError, match=r"is not allowed: give one of 127\.0\.1 to 127\.0\.254"):
        lifecycle.up(tmp_path, subnet=subnet)


def test_cpus_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HadoopError, match="--cpus names 2 CPUs for 4 nodes"):
        lifecycle.up(tmp_path, cpus=(0, 0))
    with pytest.raises(HadoopError, match="--cpus names CPU 99999, and this machine offers"):
        lifecycle.up(tmp_path, nodes=1, cpus=(99999,))


def test_gpus_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HadoopError, match="--gpus has 2 numbers for 4 nodes: give one for each node"):
        lifecycle.up(tmp_path, gpus=(1, 0))


@pytest.mark.parametrize("name", ["with blank", "comma,", "colon:", "ümlaut", "dollar$"])
def test_a_home_that_hadoop_would_take_apart_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(HadoopError, match="cannot be used: Hadoop needs a path of letters"):
        lifecycle.up(tmp_path / name)


def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HadoopError, match=r"file/cluster: Not a directory: mend that or use another --home"):
        lifecycle.up(tmp_path / "file")


def test_a_cluster_of_another_user_is_left_alone(tmp_path: Path) -> None:
    with state.lock(tmp_path):
        state.save(Cluster(tmp_path, "127.0.9", 4, "somebody", JARS, Path("/java"), ()))
    with pytest.raises(HadoopError, match="belongs to user somebody"):
        lifecycle.up(tmp_path)


def record(home: Path, jars: Path) -> Cluster:
    """A cluster of this home that was started with these jars."""
    made = Cluster(home, "127.0.9", 2, state.current_user(), jars, Path("/jvm/bin/java"))
    with state.lock(home):
        state.save(made)
    return made


def test_clients_have_the_jars_of_the_cluster_that_they_call(tmp_path: Path) -> None:
    jars = tmp_path / "other" / "lib"
    jars.mkdir(parents=True)
    assert state.jars_of_clients(tmp_path, tmp_path / "cluster" / "conf") == JARS, "none was ever started"
    cluster = record(tmp_path, jars)
    assert state.jars_of_clients(tmp_path, cluster.conf_dir) == jars
    assert state.jars_of_clients(tmp_path, Path("/etc/hadoop")) == JARS
    jars.rmdir()
    assert state.jars_of_clients(tmp_path, cluster.conf_dir) == JARS, "they have gone with another installation"
    (tmp_path / "cluster" / "cluster.json").write_text("damaged")
    assert state.jars_of_clients(tmp_path, cluster.conf_dir) == JARS


def test_jars_are_kept_and_do_not_change_under_daemons_that_run(tmp_path: Path) -> None:
    jars = tmp_path / "other" / "lib"
    jars.mkdir(parents=True)
    recorded = record(tmp_path, jars)
    planning.refuse_moves(recorded, planning.plan(tmp_path, recorded, planning.Wanted()))
    changed = planning.plan(tmp_path, recorded, planning.Wanted(jars=tmp_path))
    assert changed.jars == tmp_path
    with pytest.raises(HadoopError, match="--jars cannot change while the cluster runs"):
        planning.refuse_moves(recorded, changed)
    jars.rmdir()
    planning.refuse_moves(recorded, planning.plan(tmp_path, recorded, planning.Wanted()))  # to go on with others


def test_what_is_recorded_is_what_is_loaded(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, "127.0.9", 2, "me", Path("/jars"), Path("/jvm/bin/java"), (0, 1), gpus=(2, 0))
    with state.lock(tmp_path):
        state.save(cluster)
    loaded = lifecycle.load(tmp_path)
    assert loaded == cluster
    assert loaded.nodes == ("127.0.9.11", "127.0.9.12")
    assert loaded.namenode_url == "hdfs://127.0.9.1:8020"
    assert loaded.java_home == Path("/jvm")


def test_down_without_a_cluster_ends_nothing_and_makes_nothing(tmp_path: Path) -> None:
    assert lifecycle.down(tmp_path / "home") == 0
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(("option", "what"), [("--cpus", "CPU numbers"), ("--gpus", "numbers of GPUs")])
@pytest.mark.parametrize("given", ["0,x", "0,-1", "0,,1"])
def test_what_is_for_each_node_must_be_numbers(tmp_path: Path, option: str, what: str, given: str) -> None:
    result = CliRunner().invoke(command.cluster, ["up", option, given], obj=tmp_path)
    assert result.exit_code == 2
    assert f"is not a list of {what} such as 0,0,0,1" in result.output


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "1.5", "soon"])
def test_a_wait_that_is_none_is_refused(tmp_path: Path, seconds: str) -> None:
    result = CliRunner().invoke(command.cluster, ["up", "--wait", seconds], obj=tmp_path)
    assert result.exit_code == 2
    assert "Invalid value for '--wait'" in result.output


@pytest.mark.parametrize(("options", "seconds"), [((), 150.0), (("--wait", "600"), 600.0)])
def test_daemons_have_the_time_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], seconds: float
) -> None:
    asked: dict[str, float] = {}

    def note(*_: object, ready_seconds: float, **_others: object) -> Cluster:
        asked["seconds"] = ready_seconds
        return Cluster(tmp_path, "127.0.9", 1, "me", Path("/jars"), Path("/java"))

    monkeypatch.setattr(lifecycle, "up", note)
    assert CliRunner().invoke(command.cluster, ["up", *options], obj=tmp_path).exit_code == 0
    assert asked == {"seconds": seconds}


def test_one_daemon_of_each_kind_notes_its_classes(tmp_path: Path) -> None:
    wanted = daemons.of(Cluster(tmp_path, "127.0.9", 4, "me", Path("/jars"), Path("/java")))
    chosen = [daemon.title for daemon in wanted if daemon in daemons.first_of_each_kind(wanted)]
    assert chosen == [
        *("NameNode", "ResourceManager", "DataNode 127.0.9.11", "NodeManager 127.0.9.11", "sshd 127.0.9.11")
    ]


def test_a_home_whose_name_is_too_long_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HadoopError, match="File name too long: mend that or use another --home"):
        lifecycle.down(tmp_path / ("long" * 80))


@pytest.mark.parametrize("name", ["up", "down", "status"])
def test_every_command_shows_an_example(name: str) -> None:
    assert "Example:\n" in CliRunner().invoke(command.cluster, [name, "--help"]).output


def test_datanodes_never_share_a_port() -> None:
    cluster = Cluster(Path("/h"), "127.0.9", state.MAX_NODES, "me", Path("/jars"), Path("/java"))
    used = [port for d in daemons.of(cluster) if d.kind == "datanode" for _, port in d.addresses]
    assert len(set(used)) == len(used) == 3 * state.MAX_NODES
    assert not {ports.NAMENODE, ports.SSHD} & set(used)


def test_the_reason_in_a_log_is_its_last_complaint(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "2026-01-01 ERROR NameNode: Failed to start\njava.net.BindException: Port in use\n\tat java.base/x\n"
        "2026-01-01 INFO ExitUtil: Exiting with status 1\n\n",
        encoding="utf-8",
    )
    assert daemons.last_complaint([tmp_path / "none", log]) == "java.net.BindException: Port in use"
    log.write_text("only news\n", encoding="utf-8")
    assert daemons.last_complaint([log]) == "only news"
    assert daemons.last_complaint([tmp_path / "none"]) == "it wrote nothing"
