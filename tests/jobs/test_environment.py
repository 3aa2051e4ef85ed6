"""What of a Python environment travels, and that it runs where it is unpacked."""

from __future__ import annotations

import io
import json
import os
import py_compile
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hadoop.client.jars import JARS
from jobs.application.environments.archive import contents, digest, pack, pack_file
from jobs.application.environments.store import python_in
from jobs.commands.environment import env
from jobs.errors import JobError

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path("lib/python3.11/site-packages")
FILES = {
    "tool/__init__.py": "ANSWER = 41\n",
    "tool/data.txt": "words",
    "tool/tests/test_tool.py": "",
    "tool/include/tool.h": "",
    "tool/fast.pyx": "",
    "tool-1.0.dist-info/METADATA": "Name: tool\nVersion: 1.0\n",
    "tool-1.0.dist-info/RECORD": "",
    "single.py": "",
    "pip/__init__.py": "",
    "pip-23.0.dist-info/METADATA": "Name: pip\n",
    "pytest/__init__.py": "",
    "py.py": "",
    "distutils-precedence.pth": "import os",
}
RECORD = "".join(f"{file},,\n" for file in FILES if file.startswith("tool")) + "../../../bin/tool,,\n/etc/tool,,\n"
NEEDED = {"tool/__init__.py", "tool/data.txt", "tool-1.0.dist-info/METADATA", "single.py"}
Make = Callable[[str], Path]
SITE = "<configuration><property><name>fs.defaultFS</name><value>file:///</value></property></configuration>"
# A JVM can be started once in a process, so it gets a process of its own.
NAMED = """
import json, sys
from pathlib import Path
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from jobs.application.environments.store import resolve
from jobs.errors import JobError

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "somebody"))
found = []
for env, folder in json.loads(sys.argv[3]):
    try:
        found.append(resolve(FileSystem(), env, folder))
    except JobError as error:
        found.append(str(error))
print("found", json.dumps(found))
"""


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes environments, all of the same packages, in folders of these names."""

    def made(name: str) -> Path:
        environment = tmp_path / name
        venv.create(environment, symlinks=True)
        for file, text in FILES.items():
            path = environment / PACKAGES / file
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)
        py_compile.compile(str(environment / PACKAGES / "tool" / "__init__.py"))
        return environment

    return made


def _packed(environment: Path) -> bytes:
    sink = io.BytesIO()
    pack(contents(environment), sink, lambda done, total: None)
    return sink.getvalue()


def _unpack(archive: bytes, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        members.extractall(folder, filter="data")
    return folder


def _run(folder: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    python = folder / "bin" / "python"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, env={**os.environ, **environment})


def test_what_only_builds_and_tests_is_left_out(make: Make) -> None:
    names = {member.name.removeprefix(f"{PACKAGES}/") for member in contents(make("one")).members}
    assert names == NEEDED


def test_an_unpacked_environment_runs_and_does_not_need_the_first_one(make: Make, tmp_path: Path) -> None:
    environment = make("one")
    unpacked = _unpack(_packed(environment), tmp_path / "elsewhere")
    environment.rename(tmp_path / "away")
    done = _run(unpacked, "import sys, tool; print(sys.prefix, sys.executable, tool.ANSWER, tool.__file__)")
    inside = unpacked / PACKAGES / "tool" / "__init__.py"
    assert done.stdout.split() == [str(unpacked), str(unpacked / "bin" / "python"), "41", str(inside)], done.stderr


def test_modules_arrive_compiled(make: Make, tmp_path: Path) -> None:
    unpacked = _unpack(_packed(make("one")), tmp_path / "elsewhere")
    (unpacked / PACKAGES / "tool" / "__init__.py").write_text("ANSWER = 'compiled again'\n")
    assert _run(unpacked, "import tool; print(tool.ANSWER)").stdout == "41\n"


def test_a_compiled_form_of_an_older_source_stays_behind(make: Make, tmp_path: Path) -> None:
    environment = make("one")
    (environment / PACKAGES / "tool" / "__init__.py").write_text("ANSWER = 'new'\n")
    assert _run(_unpack(_packed(environment), tmp_path / "x"), "import tool; print(tool.ANSWER)").stdout == "new\n"


def test_equal_environments_make_the_same_archive_wherever_they_are(make: Make) -> None:
    one, two = make("one"), make("two")
    for path in (two / PACKAGES).rglob("*.txt"):
        os.utime(path, (1, 1))
    assert digest(contents(one)) == digest(contents(two))
    assert _packed(one) == _packed(one)


def test_another_content_of_the_same_size_makes_another_name(make: Make) -> None:
    environment = make("one")
    before = digest(contents(environment))
    (environment / PACKAGES / "tool" / "data.txt").write_text("WORDS")
    assert digest(contents(environment)) != before


def test_progress_ends_at_all_of_it(make: Make) -> None:
    heard: list[tuple[int, int]] = []
    found = contents(make("one"))
    pack(found, io.BytesIO(), lambda done, total: heard.append((done, total)))
    assert heard[-1] == (found.size_bytes, found.size_bytes)


def test_a_node_whose_python_is_elsewhere_is_found_by_its_path(make: Make, tmp_path: Path) -> None:
    sink = io.BytesIO()
    pack(replace(contents(make("one")), base="/nowhere/python3.11"), sink, lambda done, total: None)
    unpacked = _unpack(sink.getvalue(), tmp_path / "elsewhere")
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "python3.11").symlink_to(Path(sys.executable).resolve())
    done = _run(unpacked, "import tool; print(tool.ANSWER)", PATH=f"{directory}:/usr/bin:/bin")
    assert (done.stdout, done.stderr) == ("41\n", "")


def test_a_node_without_that_python_says_so(make: Make, tmp_path: Path) -> None:
    sink = io.BytesIO()
    pack(replace(contents(make("one")), version="3.99"), sink, lambda done, total: None)
    done = _run(_unpack(sink.getvalue(), tmp_path / "elsewhere"), "", NODE_NAME="node7")
    assert done.returncode == 127
    assert done.stderr.startswith("node7 has no Python 3.99 for ")
    assert "apt-get install python3.99" in done.stderr


def test_what_is_no_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"is not a virtual environment: name one with --python"):
        contents(tmp_path)


def test_a_package_that_lives_elsewhere_on_this_machine_is_refused(make: Make) -> None:
    environment = make("one")
    (environment / PACKAGES / "mine.pth").write_text("/home/me/mine\n")
    with pytest.raises(JobError, match=r"mine\.pth makes the environment depend on .*without --editable"):
        contents(environment)


def test_the_workers_environment_lacks_nothing_it_imports(tmp_path: Path) -> None:
    environment = ROOT / ".venv-worker"
    found = contents(environment)
    sink = io.BytesIO()
    pack(replace(found, members=()), sink, lambda done, total: None)
    _unpack(sink.getvalue(), tmp_path)
    for member in found.members:
        (tmp_path / member.name).parent.mkdir(parents=True, exist_ok=True)
        _lay(member.path, tmp_path / member.name)
    done = _run(tmp_path, "import cv2, hdfs_native, mxnet.gluon, numpy, pyarrow.ipc, simplejpeg; print(mxnet.__file__)")
    assert done.stdout.startswith(str(tmp_path)), done.stderr


def _lay(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        target.write_bytes(source.read_bytes())


def _locked(environment: Path, lock: str) -> Path:
    """A requirements file, and in the environment the list of files that pip keeps of the one package there."""
    (environment / PACKAGES / "tool-1.0.dist-info" / "RECORD").write_text(RECORD)
    file = environment.with_suffix(".txt")
    file.write_text(lock)
    return file


def test_with_a_lock_only_what_it_names_travels(make: Make) -> None:
    environment = make("one")
    lock = _locked(environment, "tool==1.0 \\\n    --hash=sha256:00\n")
    (environment / PACKAGES / "mine.pth").write_text("/home/me/mine\n")
    (environment / "bin" / "tool").write_text("")
    names = {member.name.removeprefix(f"{PACKAGES}/") for member in contents(environment, lock).members}
    assert names == NEEDED - {"single.py"}


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        ("tool==2.0\n", r"names tool 2\.0 and the environment has 1\.0: .*pip install --require-hashes -r "),
        ("tool==1.0\nMore_Tools==3\n", "names more-tools 3 and the environment lacks it"),
        ("tool\n", "names no package as NAME==VERSION"),
    ],
)
def test_an_environment_that_is_not_what_the_lock_names_is_refused(make: Make, lock: str, said: str) -> None:
    environment = make("one")
    with pytest.raises(JobError, match=said):
        contents(environment, _locked(environment, lock))


def test_a_lock_that_is_not_there_is_named(make: Make, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"missing\.txt cannot be read"):
        contents(make("one"), tmp_path / "missing.txt")


def test_an_environment_is_packed_into_a_file_for_debians_python(make: Make, tmp_path: Path) -> None:
    environment = make("one")
    lock = _locked(environment, "tool==1.0\n")
    target = tmp_path / f"{'long' * 30}.tar.gz"
    words = [str(target), "--python", str(environment), "--lock", str(lock)]

    said = CliRunner().invoke(env, ["pack", *words])

    assert said.stdout.startswith(f"{target}: "), said.output
    assert len(said.stdout.splitlines()) == 1
    packed = target.read_bytes()
    told = json.loads(CliRunner().invoke(env, ["pack", *words, "--json"]).stdout)
    assert target.read_bytes() == packed
    assert (told["path"], told["packed_bytes"], told["files"]) == (str(target), len(packed), len(NEEDED) - 1)
    unpacked = _unpack(packed, tmp_path / "elsewhere")
    done = _run(unpacked, "import os, sys, tool; print(tool.ANSWER, sys.prefix, os.readlink('/proc/self/exe'))")
    assert done.stdout.split() == ["41", str(unpacked), str(Path("/usr/bin/python3.11").resolve())], done.stderr
    assert sorted(tmp_path.glob("*.gz*")) == [target]


def test_a_file_that_cannot_be_written_leaves_nothing_behind(make: Make, tmp_path: Path) -> None:
    environment = make("one")
    (tmp_path / "full.tar.gz").mkdir()
    with pytest.raises(JobError, match=r"full\.tar\.gz cannot be written"):
        pack_file(contents(environment), tmp_path / "full.tar.gz", lambda done, total: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full.tar.gz", "one"]


def test_a_container_finds_the_interpreter_in_the_archive() -> None:
    assert python_in("worker-env") == "worker-env/bin/python"


def test_latest_stands_for_what_was_published_last_and_a_path_for_itself(tmp_path: Path) -> None:
    for folder in ("conf", "none", "some", "gone"):
        (tmp_path / folder).mkdir()
    (tmp_path / "conf" / "core-site.xml").write_text(SITE)
    archive = tmp_path / "some" / "worker-0123456789abcdef.tar.gz"
    archive.write_bytes(b"")
    (tmp_path / "some" / "latest").write_text(str(archive))
    (tmp_path / "gone" / "latest").write_text(f"{tmp_path}/gone/{archive.name}")
    asked = [("latest", "some"), (str(archive), "none"), ("latest", "none"), ("latest", "gone"), ("/missing", "some")]
    given = json.dumps([(env, f"{tmp_path}/{folder}") for env, folder in asked])

    argv = [sys.executable, "-c", NAMED, str(tmp_path / "conf"), str(JARS), given]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)

    remedy = "`nodewise env publish` puts the worker's"
    assert json.loads(done.stdout.rpartition("found ")[2]) == [
        str(archive),
        str(archive),
        f"no environment is in {tmp_path}/none of HDFS: {remedy} there",
        f"no environment is in {tmp_path}/gone of HDFS: {remedy} there",
        f"/missing is not in HDFS: {remedy} environment there",
    ]
