"""`nodewise setup`, and what is said where something is missing, by each way to install nodewise."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hadoop.errors import HadoopError
from hadoop.installation import Kind, Part, kind_of, remedy, tool_remedy
from jobs.errors import JobError
from nodewise.setup import hadoop_jars, workers_python
from tests.in_process import nodewise
from tests.recipes.pages import ROOT
from tests.wheels.built import Environment, Wheels
from tests.wheels.hadoop_home import JARS, lay_out

WHEEL = Path("/opt/nw/lib/python3.12/site-packages/nodewise_rooms")
PLAYBOOK = Path("/opt/nodewise/code")


def test_the_remedy_fits_how_nodewise_was_installed() -> None:
    assert [kind_of(root) for root in (ROOT, WHEEL, PLAYBOOK)] == list(Kind)
    assert remedy(Part.HADOOP, ROOT) == remedy(Part.PLUGIN, ROOT) == "run scripts/setup"
    assert remedy(Part.TORCH, ROOT) == "run scripts/setup --torch"
    assert remedy(Part.WORKER, WHEEL) == "run `nodewise setup worker`"
    assert remedy(Part.TORCH, WHEEL) == "run `nodewise setup worker --torch`"
    assert "install nodewise again" in remedy(Part.PLUGIN, WHEEL)
    assert remedy(Part.WORKER, PLAYBOOK) == "run the playbook site.yml again"
    assert tool_remedy("squashfs-tools", WHEEL) == "install it with `apt-get install squashfs-tools`"
    assert tool_remedy("squashfs-tools", ROOT) == "run scripts/setup"


def test_only_one_place_says_what_sets_up_a_checkout() -> None:
    rooms = [line.partition("/")[0] for line in ("nodewise/", "infosvc/", "collectors/", "hadoop/", "boxes/")]
    rooms += ["environments", "learning", "locality", "jobs"]
    files = [file for room in rooms for file in (ROOT / room).rglob("*.py") if "scripts/setup" in file.read_text()]

    assert [file.relative_to(ROOT).as_posix() for file in files] == ["hadoop/installation.py"]


@pytest.mark.parametrize("part", ["worker", "hadoop"])
def test_a_checkout_is_set_up_by_its_script(part: str) -> None:
    done = nodewise("setup", part)

    assert (done.returncode, done.stderr) == (1, "Error: this nodewise is a checkout: run scripts/setup\n")


def findings(installed: Environment, **settings: str) -> dict[str, dict[str, str]]:
    shown = installed.nodewise("doctor", "--json", **settings)
    return {one["name"]: one for one in json.loads(shown.stdout)["findings"]}


def test_a_hadoop_of_this_machine_is_linked_and_an_upgrade_leaves_it(
    installed: Environment, wheels: Wheels, tmp_path: Path
) -> None:
    shutil.rmtree(installed.folder / "share/nodewise", ignore_errors=True)
    before = findings(installed)
    assert before["jars"]["remedy"].startswith("run `nodewise setup hadoop`")
    assert before["worker python"]["remedy"].startswith("run `nodewise setup worker`")
    empty = installed.nodewise("setup", "hadoop", "--hadoop-home", tmp_path)
    assert (empty.returncode, "has no jars in share/hadoop" in empty.stderr) == (1, True)

    home = lay_out(tmp_path / "hadoop")
    done = installed.nodewise("setup", "hadoop", HADOOP_HOME=str(home))
    assert done.returncode == 0, done.stderr
    folder = installed.folder / "share/nodewise/hadoop/lib"
    assert {jar.name for jar in folder.iterdir()} == {jar.name for jar in JARS.glob("*.jar")}
    installed.install(wheels.main)
    found = findings(installed)["jars"]
    assert (found["state"], str(folder) in found["what"]) == ("ok", True)


def test_without_maven_another_way_is_named(installed: Environment, tmp_path: Path) -> None:
    shutil.rmtree(installed.folder / "share/nodewise", ignore_errors=True)
    done = installed.nodewise("setup", "hadoop", PATH=str(tmp_path))

    assert done.returncode == 1
    assert "there is no Maven, which fetches Hadoop's jars: name a Hadoop of this machine" in done.stderr


def test_jars_that_are_linked_again_take_the_place_of_those_before(tmp_path: Path) -> None:
    home, folder, own = lay_out(tmp_path / "hadoop"), tmp_path / "made", tmp_path / "own"
    wanted = {jar.name for jar in JARS.glob("*.jar")}
    own.mkdir()
    (own / "kept.jar").write_text("the operator's")

    for _ in range(2):
        hadoop_jars.link(home, folder)
        assert {jar.name for jar in (folder / "lib").iterdir()} == wanted
    shutil.rmtree(folder / "lib")
    (folder / "lib").symlink_to(own)  # as an operator may lead it to jars elsewhere
    hadoop_jars.link(home, folder)

    assert {jar.name for jar in (folder / "lib").iterdir()} == wanted
    assert [jar.name for jar in own.iterdir()] == ["kept.jar"]
    assert [one.name for one in folder.iterdir()] == ["lib"]


def test_jars_of_other_hashes_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    for jar in JARS.glob("*.jar"):
        (tmp_path / "lib" / jar.name).symlink_to(jar)
    assert hadoop_jars.is_whole(tmp_path, ROOT)
    one = next((tmp_path / "lib").glob("hadoop-common-*.jar"))
    one.unlink()
    assert not hadoop_jars.is_whole(tmp_path, ROOT)
    one.write_text("another jar")
    assert not hadoop_jars.is_whole(tmp_path, ROOT)


def test_jars_of_another_version_take_the_place_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # without Maven
    words = ("setup", "hadoop", "--version", "3.4.2", "--into", str(tmp_path))
    assert "there is no Maven" in nodewise(*words).stderr
    assert "--version and --into go together" in nodewise(*words[:4]).stderr
    assert "--version and --into go together" in nodewise("setup", "hadoop", "--into", str(tmp_path)).stderr
    assert "'../3' is not a version of Hadoop 3" in nodewise(*words[:3], "../3", *words[4:]).stderr
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "hadoop-common-3.3.6.jar").write_text("the operator's")
    with pytest.raises(HadoopError, match=r"lib is not Hadoop 3\.4\.2: name another folder with --into"):
        hadoop_jars.fetch_version("3.4.2", tmp_path, ROOT)
    assert [jar.name for jar in (tmp_path / "lib").iterdir()] == ["hadoop-common-3.3.6.jar"]
    (tmp_path / "lib" / "hadoop-common-3.4.2.jar").touch()
    assert nodewise(*words).stdout == f"{tmp_path / 'lib'} is there already\n"


@pytest.mark.parametrize("registry", ["here", "none"])
def test_a_version_that_cannot_be_had_is_named_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: str
) -> None:
    """Maven's registry is what Maven has fetched for this machine before, or a port where nobody listens."""
    url = (Path.home() / ".m2/repository").as_uri() if registry == "here" else "http://127.0.0.1:1/maven2"
    mirror = f"<mirror><id>central</id><mirrorOf>*</mirrorOf><url>{url}</url></mirror>"
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2/settings.xml").write_text(f"<settings><mirrors>{mirror}</mirrors></settings>")
    monkeypatch.setenv("MAVEN_OPTS", f"-Duser.home={tmp_path}")
    into = tmp_path / "hadoop"
    said = {
        "here": f"Maven finds no Hadoop 3.9.9 at {url} (hadoop-common is missing): name a version that is there with "
        "--version, such as 3.4.2, or another registry in ~/.m2/settings.xml",
        "none": f"Maven cannot fetch Hadoop's jars from {url} (Connect to 127.0.0.1:1 [/127.0.0.1] failed: Connection "
        "refused): try again when that registry answers, or name another in ~/.m2/settings.xml",
    }

    for _ in range(2):
        done = nodewise("setup", "hadoop", "--version", "3.9.9", "--into", str(into))
        assert (done.returncode, done.stderr) == (1, f"Error: {said[registry]}\n")
    assert list(into.iterdir()) == []


def test_another_python_is_refused(installed: Environment, tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 3 12\n")
    other.chmod(0o755)
    done = installed.nodewise("setup", "worker", "--python", other)
    assert f"{other} is not a Python 3.11, which MXNet needs: install one" in done.stderr
    (tmp_path / "none").mkdir()
    shutil.copy(other, tmp_path / "none" / "python3")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tmp_path / "none"))
        patch.setattr(workers_python, "_CANDIDATES", ("python3", "python3.11"))
        with pytest.raises(JobError, match=r"has no Python 3\.11, which MXNet needs: install one .* --onnx"):
            workers_python.find(None)


def test_without_mxnet_a_later_python_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def python(name: str, minor: int) -> Path:
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho 3 {minor}\n")
        program.chmod(0o755)
        return program

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(workers_python, "_CANDIDATES_FOR_ONNX", ("python3", "python3.13"))
    newest, right = python("python3", 14), python("python3.13", 13)
    assert workers_python.find(None, only_onnx=True) == workers_python.find(right, only_onnx=True) == right
    with pytest.raises(JobError, match=r"python3 is not a Python 3\.11 to 3\.13: install one"):
        workers_python.find(newest, only_onnx=True)
    right.unlink()
    with pytest.raises(JobError, match=r"this machine has no Python 3\.11 to 3\.13: install one"):
        workers_python.find(None, only_onnx=True)


def test_the_workers_environment_is_made_of_its_lock_alone(
    wheels: Wheels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a lock that is small: of the wheel beside us."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels.client.parent))
    lock, folder = tmp_path / "lock.txt", tmp_path / "worker"
    sha256 = hashlib.sha256(wheels.client.read_bytes()).hexdigest()
    lock.write_text(f"nodewise-client==0.1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(JobError, match=r"cannot be made: .*DO NOT MATCH THE HASHES"):
        workers_python.make(folder, Path(sys.executable), lock, ["nodewise.client"])
    lock.write_text(f"nodewise-client==0.1.0 --hash=sha256:{sha256}\n")
    with pytest.raises(JobError, match=r"the engines do not start \(ModuleNotFoundError: No module named 'mxnet'\)"):
        workers_python.make(folder, Path(sys.executable), lock, ["mxnet"])
    assert not workers_python.is_made_of(folder, lock)
    workers_python.make(folder, Path(sys.executable), lock, ["nodewise.client"])
    assert workers_python.is_made_of(folder, lock)
    lock.write_text("another lock")
    assert not workers_python.is_made_of(folder, lock)


def test_a_torch_that_does_not_start_in_the_workers_python_is_not_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, debian = tmp_path / "worker", tmp_path / "dist-packages"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (debian / "torch").mkdir(parents=True)
    module = debian / "torch" / "__init__.py"
    monkeypatch.setattr(workers_python, "_DEBIAN", debian)
    module.write_text("raise ImportError('made for another Python')\n")
    with pytest.raises(JobError, match=r"PyTorch does not start in .* \(ImportError: made for another Python\)"):
        workers_python.link_torch(folder)
    assert not list(folder.rglob("debian.pth"))
    module.write_text("works = True\n")
    workers_python.link_torch(folder)
    subprocess.run([folder / "bin" / "python", "-c", "import torch; assert torch.works"], check=True)


def test_the_engines_start_in_the_environment_of_the_wheels_lock(
    installed: Environment, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--long"):
        pytest.skip("it fetches 300 MB: --long")
    done = installed.nodewise("setup", "worker", "--python", sys.executable)
    assert done.returncode == 0, done.stderr
    again = installed.nodewise("setup", "worker")
    assert again.stdout.endswith("is there already\n")
    assert findings(installed)["worker python"]["state"] == "ok"
