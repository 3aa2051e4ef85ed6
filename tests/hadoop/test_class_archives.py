"""Archives of daemons' classes: Java is told to use one or to prepare for one, and starts also when one is broken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from hadoop.client import class_archives
from hadoop.client.class_archives import RECORD, make, noted_for, options, place
from hadoop.client.jars import JARS
from hadoop.client.jre import find_java

JAVA = find_java(os.environ.get("JAVA_HOME"))


@pytest.fixture
def jars(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "lib"
    folder.mkdir()
    _write_jar(folder / "a.jar", "one")
    return [folder / "a.jar"]


def _write_jar(path: Path, text: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some.txt", text)


def test_an_archive_is_asked_for_until_there_is_one(jars: list[Path]) -> None:
    archive = place("namenode", JAVA, jars)
    assert RECORD in options("namenode", JAVA, jars)
    assert noted_for(options("namenode", JAVA, jars)) == archive

    archive.parent.mkdir()
    archive.touch()

    assert noted_for(options("namenode", JAVA, jars)) is None
    assert f"-XX:SharedArchiveFile={archive}" in options("namenode", JAVA, jars)
    assert RECORD in options("datanode", JAVA, jars)


def test_other_jars_and_another_java_have_another_archive(jars: list[Path], tmp_path: Path) -> None:
    before = place("namenode", JAVA, jars)
    other_java = tmp_path / "java"
    other_java.touch()
    assert place("namenode", other_java, jars) != before

    _write_jar(jars[0], "another")

    assert place("namenode", JAVA, jars) != before


def test_without_a_jdk_or_a_folder_to_write_to_java_starts_as_ever(
    jars: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "java").touch()
    assert options("namenode", tmp_path / "java", jars) == []

    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    assert options("namenode", JAVA, jars) == []


def make_of_a_process(archive: Path, jars: list[Path]) -> None:
    """Make an archive of the classes that a real Java process has loaded from these jars."""
    with subprocess.Popen([JAVA, RECORD, "-cp", jars[0], _sleeper(jars[0].parent)]) as sleeping:
        try:
            _wait_until_it_hears(sleeping.pid)
            make(JAVA, {archive: sleeping.pid})
        finally:
            sleeping.kill()


def test_an_archive_replaces_that_of_former_jars(jars: list[Path]) -> None:
    former, kept = place("namenode", JAVA, jars), place("datanode", JAVA, jars)
    former.parent.mkdir()
    former.touch()
    kept.touch()
    _write_jar(jars[0], "newer")
    archive = place("namenode", JAVA, jars)
    make_of_a_process(archive, jars)

    assert sorted(archive.parent.iterdir()) == sorted([archive, kept])
    assert archive.stat().st_size > 100_000


def test_kinds_whose_names_begin_alike_leave_one_another_alone(jars: list[Path]) -> None:
    others = [place(f"resourcemanager-{more}", JAVA, jars) for more in ("with-plugin", "0123456789abcdef")]
    archive = place("resourcemanager", JAVA, jars)
    archive.parent.mkdir()
    for other in others:
        other.touch()
        begun = other.with_name(f".{other.name}-1")
        begun.touch()
        os.utime(begun, (0, 0))
    before = set(archive.parent.iterdir())
    make_of_a_process(archive, jars)

    assert set(archive.parent.iterdir()) == {archive, *before}


def test_an_archive_that_is_there_by_now_is_not_made_again(jars: list[Path], tmp_path: Path) -> None:
    (tmp_path / "jcmd").write_text('#!/bin/sh\necho of this process > "$4"\n', encoding="ascii")
    (tmp_path / "jcmd").chmod(0o755)
    archives = [place(kind, JAVA, jars) for kind in ("namenode", "datanode")]
    archives[0].parent.mkdir()
    archives[0].write_text("of another process\n")

    make(tmp_path / "java", dict.fromkeys(archives, os.getpid()))

    assert [archive.read_text() for archive in archives] == ["of another process\n", "of this process\n"]


def test_an_archive_that_others_can_write_is_not_used(jars: list[Path]) -> None:
    archive = place("namenode", JAVA, jars)
    archive.parent.mkdir()
    archive.touch()
    for path, mode in ((archive, 0o664), (archive.parent, 0o777)):
        usual = path.stat().st_mode
        path.chmod(mode)
        assert f"-XX:SharedArchiveFile={archive}" not in options("namenode", JAVA, jars)
        path.chmod(usual)
    assert f"-XX:SharedArchiveFile={archive}" in options("namenode", JAVA, jars)

    os.chown(archive, 65534, 65534)

    assert f"-XX:SharedArchiveFile={archive}" not in options("namenode", JAVA, jars)


@pytest.mark.parametrize("name", ["core-site.xml", "log4j.properties"])
def test_jars_with_settings_get_no_archive(jars: list[Path], name: str) -> None:
    with zipfile.ZipFile(jars[0].with_name("b.jar"), "w") as jar:
        jar.writestr(name, "")

    assert options("namenode", JAVA, [*jars, jars[0].with_name("b.jar")]) == []


def test_jars_that_are_gone_or_damaged_are_left_to_java(jars: list[Path]) -> None:
    damaged = jars[0].with_name("damaged.jar")
    damaged.write_text("no jar")

    assert options("namenode", JAVA, [*jars, damaged]) == []
    assert options("namenode", JAVA, [*jars, jars[0].with_name("gone.jar")]) == []


def test_a_process_that_does_not_note_its_classes_only_uses_an_archive(jars: list[Path]) -> None:
    assert options("namenode", JAVA, jars, notes_classes=False) == []

    place("namenode", JAVA, jars).parent.mkdir()
    place("namenode", JAVA, jars).touch()

    assert options("namenode", JAVA, jars, notes_classes=False) != []


START = """
import sys
from pathlib import Path
from hadoop.client import jvm

jvm._ARCHIVE_SECONDS = 100.0  # a busy machine takes longer than users are to wait
home = jvm.HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "me")
jvm.start(home, notes_classes=True)
assert jvm.configuration().get("fs.defaultFS") == "hdfs://ours", "the site files count"
print("class-archives" in Path("/proc/self/maps").read_text(), flush=True)
jvm.archive_classes()
"""


def test_a_process_of_python_leaves_an_archive_with_which_others_start(tmp_path: Path) -> None:
    conf, lib = tmp_path / "conf", tmp_path / "lib"
    conf.mkdir()
    lib.mkdir()
    for jar in JARS.glob("*.jar"):
        (lib / jar.name).symlink_to(jar)
    value = "<property><name>fs.defaultFS</name><value>hdfs://ours</value></property>"
    (conf / "core-site.xml").write_text(f"<configuration>{value}</configuration>")

    said = [
        subprocess.run(
            [sys.executable, "-c", START, conf, lib], capture_output=True, text=True, timeout=200, check=True
        ).stdout.split()[0]
        for _ in range(2)
    ]

    assert said == ["False", "True"]
    assert [file.suffix for file in (tmp_path / "class-archives").iterdir()] == [".jsa"]


def test_what_cannot_be_made_leaves_nothing(jars: list[Path]) -> None:
    with subprocess.Popen(["sleep", "60"]) as no_java:
        try:
            make(JAVA, {place("namenode", JAVA, jars): no_java.pid})
        finally:
            no_java.kill()

    assert list((jars[0].parent.parent / class_archives.FOLDER).iterdir()) == []


def test_where_no_archive_can_lie_none_is_made(jars: list[Path]) -> None:
    (jars[0].parent.parent / class_archives.FOLDER).write_text("no folder")

    make(JAVA, {place("namenode", JAVA, jars): os.getpid()})


def test_java_starts_without_a_word_when_an_archive_is_no_use(jars: list[Path]) -> None:
    archive = place("namenode", JAVA, jars)
    archive.parent.mkdir()
    archive.write_bytes(b"no archive" * 1000)

    words = [str(JAVA), *options("namenode", JAVA, jars), "-cp", str(jars[0]), _sleeper(jars[0].parent), "0"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def _sleeper(folder: Path) -> str:
    """A program for Java that sleeps for so many seconds, an hour if it is not told, as its source."""
    source = folder / "Sleeper.java"
    source.write_text(
        "class Sleeper { public static void main(String[] words) throws Exception {"
        " Thread.sleep(words.length > 0 ? 1000 * Integer.parseInt(words[0]) : 3600000); } }"
    )
    return str(source)


def _wait_until_it_hears(pid: int) -> None:
    """Until jcmd can speak to a Java that has just been started: before it catches SIGQUIT, that of jcmd ends it."""
    status = Path(f"/proc/{pid}/status")
    while not int(status.read_text().partition("SigCgt:")[2].split()[0], 16) >> signal.SIGQUIT - 1 & 1:
        time.sleep(0.02)
    jcmd = JAVA.with_name("jcmd")
    for _ in range(100):
        if subprocess.run([jcmd, str(pid), "VM.version"], capture_output=True, check=False).returncode == 0:
            return
    raise AssertionError("it does not hear")
