"""The one Java virtual machine of this process, with Hadoop's own client on its class path."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jpype
import jpype.imports

from hadoop.client import class_archives
from hadoop.client.jars import check_jars
from hadoop.client.jre import OPENS, find_java
from hadoop.client.kerberos import login
from hadoop.errors import Denied, HadoopError
from hadoop.rest import site_files

ACCESS_DENIED = "org.apache.hadoop.security.AccessControlException"
_ARCHIVE_SECONDS = 30.0
"""How long a process waits for its archive: it stands still, and has nothing else to do."""
_SUPPORT = Path(jpype.__file__).resolve().parents[1] / "org.jpype.jar"
"""What JPype puts behind all jars."""
_ARCHIVE = f"client-{hashlib.sha256(str(_SUPPORT).encode()).hexdigest()[:8]}"
"""Of the classes that processes of this Python load, commands and application masters alike, without Kerberos."""

_ANSWER_KEY, _ANSWER_MS = "ipc.client.rpc-timeout.ms", 20_000
"""How long one of two masters may take for an answer, which our own clusters' site files say of all who call, too."""


@dataclass(frozen=True)
class HadoopHome:
    """The folders of Hadoop's site files and jars, and the user that HDFS and YARN see.

    With Kerberos they see the owner of a ticket or keytab, who has to be whom the `account` names.
    """

    conf_dir: Path
    jars: Path
    user: str
    account: login.Account = field(default_factory=login.Account)

    def check(self) -> HadoopHome:
        """Return itself when both folders are usable; HadoopError names the one that is not."""
        if not (self.conf_dir / "core-site.xml").is_file():
            raise HadoopError(
                f"{self.conf_dir} holds no core-site.xml",
                remedy=(
                    "start a cluster with `nodewise cluster up`, or name the site files' folder with --hadoop-conf"
                ),
            )
        check_jars(self.jars)
        return self


def start(home: HadoopHome, heap_mb: int = 256, notes_classes: bool = False) -> HadoopHome:
    """Start the JVM, unless it runs, and log in where Hadoop has Kerberos; the home, with the user whom Hadoop sees.

    The process must not fork afterwards. With `notes_classes`, which takes time, it is ready for `archive_classes`.
    HadoopError when there is neither ticket nor keytab, or it is not of whom the home's account names.
    """
    if not jpype.isJVMStarted():
        home.check()
    is_secure = site_files.has_kerberos(home.conf_dir)
    if not jpype.isJVMStarted():
        _start(home, heap_mb, notes_classes, _identity(home, is_secure))
    if not is_secure or login.is_in_container():
        return home
    with java_errors("logging in to Kerberos", "see `klist`, and krb5.conf"):
        return replace(home, user=login.log_in(home.account))


def _identity(home: HadoopHome, is_secure: bool) -> list[str]:
    """Options that tell Hadoop who this is, or where to ask."""
    if is_secure:
        os.environ.pop("HADOOP_USER_NAME", None)
        return login.java_options()
    # Hadoop reads the user from the environment of the process, not from its configuration.
    os.environ["HADOOP_USER_NAME"] = home.user
    return [f"-DHADOOP_USER_NAME={home.user}"]


def _start(home: HadoopHome, heap_mb: int, notes_classes: bool, identity: list[str]) -> None:
    program = find_java(os.environ.get("JAVA_HOME"))
    jars = _jars(home)
    # For other paths JPype has a way of its own, which knows no archives.
    is_plain = all(str(path).isascii() for path in (home.conf_dir, *jars))
    archive = class_archives.options(_archive_kind(home), program, jars, notes_classes) if is_plain else []
    with _java_that_starts(program):
        jpype.startJVM(
            str(program.parents[1] / "lib" / "server" / "libjvm.so"),
            f"-Xmx{heap_mb}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            *archive,
            *identity,
            *OPENS,
            interrupt=False,  # Python handles Ctrl-C, because it has to clean up
            classpath=[*map(str, jars), str(home.conf_dir)] if archive else [str(home.conf_dir), *map(str, jars)],
            convertStrings=False,
        )
    _keep_signals()
    # The daemons' log settings write to the console, where the command shows progress.
    jpype.JClass("org.apache.log4j.Logger").getRootLogger().setLevel(jpype.JClass("org.apache.log4j.Level").FATAL)


def _archive_kind(home: HadoopHome) -> str:
    """Log-in and encryption load many classes of their own."""
    if not site_files.has_kerberos(home.conf_dir):
        return _ARCHIVE
    protections = site_files.Settings(home.conf_dir, site_files.CORE).names("hadoop.rpc.protection")
    return f"{_ARCHIVE}-with-{'privacy' if 'privacy' in protections else 'kerberos'}"


def archive_classes() -> None:
    """Let processes that speak to Hadoop start faster from now on, unless they do so already or cannot.

    For one that was started to note its classes and has done all it had to do: it stands still for some seconds.
    """
    noted_for = java("java.lang.System").getProperty(class_archives.PROPERTY)
    if noted_for is None:
        return
    with suppress(HadoopError):  # Java has been replaced since
        program = find_java(os.environ.get("JAVA_HOME"))
        class_archives.make(program, {Path(str(noted_for)): os.getpid()}, _ARCHIVE_SECONDS)


def _jars(home: HadoopHome) -> list[Path]:
    return [*sorted(home.jars.glob("*.jar")), _SUPPORT]


@contextmanager
def _java_that_starts(program: Path) -> Iterator[None]:
    """Turn what JPype says of a Java that cannot be loaded into a HadoopError."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        said = str(error).split("\n", maxsplit=1)[0]
        raise HadoopError(
            f"Java cannot be started from {program.parents[1]} ({said})", remedy="point JAVA_HOME at one that works"
        ) from error


def _keep_signals() -> None:
    """Give signals back to Python: JPype lets Java handle them, which crashes where Python has no handler."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.getsignal(number))


def java(name: str) -> Any:
    """A Java class by its full name."""
    return jpype.JClass(name)


def configuration() -> Any:
    """A YarnConfiguration that gives up on a silent server within seconds instead of up to a quarter of an hour."""
    conf = java("org.apache.hadoop.yarn.conf.YarnConfiguration")()
    _bound_answers(conf)
    conf.setInt("ipc.client.connect.max.retries", 5)
    conf.setInt("ipc.client.connect.max.retries.on.timeouts", 2)
    conf.setInt("ipc.client.connect.retry.interval", 500)
    # With Kerberos a ticket is asked for anew each time, which takes long where a KDC hangs; stock tries 5 times more.
    conf.setInt("ipc.client.connect.max.retries.on.sasl", 1)
    conf.setLong("yarn.resourcemanager.connect.max-wait.ms", 10_000)
    conf.setLong("yarn.resourcemanager.connect.retry-interval.ms", 500)
    conf.setLong("yarn.client.nodemanager-connect.max-wait-ms", 10_000)
    conf.setLong("yarn.client.nodemanager-connect.retry-interval-ms", 500)
    # How long to wait for a DataNode that hangs: for reads and acknowledgements (5 s more for each node of the
    # pipeline), then for writes.
    conf.setInt("dfs.client.socket-timeout", 10_000)
    conf.setInt("dfs.datanode.socket.write.timeout", 10_000)
    # When no other node can replace a bad one, writing goes on with the nodes that are left.
    conf.setBoolean("dfs.client.block.write.replace-datanode-on-failure.best-effort", True)
    return conf


def _bound_answers(conf: Any) -> None:
    """Of two masters, go over to the other one when one that stands still, and hangs up on nobody, says nothing.

    Hadoop waits for two minutes, which is right for a single master: there is nobody else to ask.
    """
    if has_two_namenodes(conf) or java("org.apache.hadoop.yarn.conf.HAUtil").isHAEnabled(conf):
        told = int(java("org.apache.hadoop.ipc.Client").getRpcTimeout(conf))  # 0 is for ever
        conf.setInt(_ANSWER_KEY, min(told or _ANSWER_MS, _ANSWER_MS))


def has_two_namenodes(conf: Any) -> bool:
    """Whether the default file system has NameNodes that take over from one another."""
    java("org.apache.hadoop.hdfs.HdfsConfiguration").init()  # reads hdfs-site.xml, too
    default = java("org.apache.hadoop.fs.FileSystem").getDefaultUri(conf)
    return bool(java("org.apache.hadoop.hdfs.HAUtilClient").isLogicalUri(conf, default))


@contextmanager
def java_errors(doing: str, remedy: str) -> Iterator[None]:
    """Turn whatever Java throws inside into a HadoopError: what failed, Java's first line, the remedy.

    What the user may not do is Denied. Where Kerberos is the cause, its own remedy is told.
    """
    try:
        yield
    except jpype.JException as error:
        message = (str(error.getMessage() or error.getClass().getName())).strip().split("\n")[0]
        kind = Denied if str(error.getClass().getName()) == ACCESS_DENIED else HadoopError
        raise kind(f"{doing} failed: {message} ({login.find_remedy(error) or remedy})") from error
