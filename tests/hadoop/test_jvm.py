"""The JVM inside a Python process: what ends the process still does."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hadoop.client.jars import JARS

PROGRAM = """
import sys, time
from pathlib import Path
from hadoop.client.jvm import HadoopHome, start
start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "somebody"))
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(7)
"""

ASKING = """
import sys
from pathlib import Path
from hadoop.client.jvm import HadoopHome, start
from hadoop.client.yarn import Launch
from hadoop.errors import HadoopError
start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "somebody"))
from hadoop.client.master import MasterSession
try:
    MasterSession(None).ask(1, "worker1", Launch(["true"], {}, {}, 256, 1, resources={"widget": 1}))
except HadoopError as error:
    print(error, flush=True)
"""

REFUSED = """
import sys
from pathlib import Path
from hadoop.client.jvm import HadoopHome, java, java_errors, start
from hadoop.errors import HadoopError
start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "somebody"))
try:
    with java_errors("writing", "is it up?"):
        raise java("org.apache.hadoop.security.AccessControlException")(sys.argv[3])
except HadoopError as error:
    print(error, flush=True)
"""


def test_a_type_of_resource_that_java_does_not_know_is_named_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    argv = [sys.executable, "-c", ASKING, str(tmp_path), str(JARS)]

    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)

    assert done.stdout.startswith("the site files in use name no type of resource widget: "), done.stderr


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 7)], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_ends_the_process_as_it_would_without_a_jvm(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    argv = [sys.executable, "-c", PROGRAM, str(tmp_path), str(JARS)]
    with subprocess.Popen(argv, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(60) == status


@pytest.mark.parametrize(
    ("said", "remedy"),
    [("Permission denied: user=ada, access=WRITE", "ask the owner that it names"), ("Connection refused", "is it up?")],
)
def test_who_may_not_do_something_is_told_whom_to_ask(tmp_path: Path, said: str, remedy: str) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    argv = [sys.executable, "-c", REFUSED, str(tmp_path), str(JARS), said]

    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)

    assert done.stdout.startswith(f"writing failed: {said} ({remedy}"), done.stderr
