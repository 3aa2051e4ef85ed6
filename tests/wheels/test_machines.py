"""nodewise from its wheel on other Debians and Pythons: commands, service, agent, and a job on a cluster there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nodewise.__main__ import COMMANDS
from nodewise.setup.workers_python import PYTHONS
from tests.cluster.site import until
from tests.cluster.small_network import PROGRAM
from tests.recipes.pages import ROOT, block
from tests.wheels.built import Wheels
from tests.wheels.hadoop_home import JARS, lay_out
from tests.wheels.machines import BOOKWORM, HOME, KEPT, MACHINES, Inside, Machine, enter, find_python, make_root

pytestmark = pytest.mark.timeout(3600)

NODES, PICTURES = 2, 8
SERVICE = "(nodewise serve > ~/serve.log 2>&1 < /dev/null &)"
WORKER = f"{HOME}/nodewise/share/nodewise/worker"
MXNET = f"{WORKER}-mxnet"


@dataclass(frozen=True)
class Installed:
    """nodewise on a machine, with a cluster, a service and an agent on each node."""

    machine: Machine
    inside: Inside

    def said(self, words: str) -> Any:
        """What a command of nodewise says with --json, whatever its exit status is."""
        return json.loads(self.inside.run(f"nodewise {words} --json || true", 1200))

    def classify(self, output: str, words: str) -> dict[str, Any]:
        """The report of a job on all pictures."""
        job = f"job submit --input hdfs:///pictures --output hdfs:///{output} --capability perf_even"
        report: dict[str, Any] = self.said(f"{job} --capability-wait 120 {words} --wait")
        return report


@pytest.fixture(scope="module", params=MACHINES, ids=lambda machine: machine.name)
def machine(request: pytest.FixtureRequest) -> Machine:
    found: Machine = request.param
    if not request.config.getoption("--long"):
        pytest.skip("it fetches 300 MB for each machine, and starts a cluster there: --long")
    if os.getuid() != 0 or not shutil.which("mmdebstrap"):
        pytest.skip("root file systems are made by root, with mmdebstrap: scripts/setup --lab")
    if found.is_brought and find_python(found.python) is None:
        pytest.skip(f"this machine has no Python {found.python} that could be brought to another one")
    return found


@pytest.fixture(scope="module")
def installed(
    machine: Machine, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    wheels: Wheels = request.getfixturevalue("wheels")  # which are built only if the machine is tried
    folder = tmp_path_factory.mktemp(machine.name)
    root, home = make_root(machine), folder / "home"
    hadoop = lay_out(folder / "hadoop")
    there = {hadoop: "/opt/hadoop", JARS: str(JARS), **pythons(machine)}
    home.mkdir(mode=0o700)
    shutil.copy(wheels.main, home)
    packages = KEPT / "pip"
    packages.mkdir(exist_ok=True)
    with enter(root, home, there, packages) as inside:
        install(machine, inside)
    with enter(root, home, there) as inside:
        made = Installed(machine, inside)
        begin(made)
        yield made


def pythons(machine: Machine) -> dict[Path, str]:
    """Those that are brought to it, each by where it is there."""
    if machine.is_brought:
        return {find_brought(machine): str(find_brought(machine))}
    if not machine.mxnet.startswith("/opt"):
        return {}
    debian = make_root(BOOKWORM) / "usr"
    return {debian / name: f"/opt/python3.11/{name}" for name in ("bin/python3.11", "lib/python3.11")}


def find_brought(machine: Machine) -> Path:
    """The folder of its Python, which is in the same place as here: there its own libraries are looked for."""
    found = find_python(machine.python)
    assert found
    return found


def install(machine: Machine, inside: Inside) -> None:
    """As the page says, and the workers' environment for ONNX; that of MXNet goes aside."""
    python = find_brought(machine) / "bin" / f"python{machine.python}" if machine.is_brought else "python3"
    lines = block("install-wheel").replace("python3 -m", f"{python} -m").splitlines()
    inside.run("\n".join(line for line in lines if "doctor" not in line), 1800)
    if machine.mxnet:
        inside.run(f"nodewise setup worker --python {machine.mxnet}; mv {WORKER} {MXNET}", 1800)
    inside.run("nodewise setup worker --onnx", 1800)


def begin(made: Installed) -> None:
    """A cluster, the service, agents, and pictures in HDFS."""
    inside = made.inside
    inside.run(f"nodewise cluster up --nodes {NODES} --wait 600", 900)
    inside.run(SERVICE)
    until(lambda: inside.run("nodewise producer list > /dev/null 2>&1 && echo there || true"), 120)
    inside.run("nodewise node add -F ~/.nodewise/cluster/ssh/config $(nodewise cluster status --names)")
    inside.run(f"nodewise images make ~/pictures -n {PICTURES}; nodewise images load ~/pictures hdfs:///pictures")


def test_nothing_of_the_checkout_is_there_and_every_command_is(installed: Installed) -> None:
    shown = installed.inside.run("nodewise --help")
    assert all(f"  {name}" in shown for name in COMMANDS)
    assert installed.inside.run(f"test -e {ROOT / 'README.md'} || echo none") == "none\n"
    assert installed.inside.run(". /etc/os-release; echo $VERSION_CODENAME") == f"{installed.machine.release}\n"


def test_the_doctor_finds_all_that_it_needs(installed: Installed) -> None:
    machine = installed.machine
    said = {one["name"]: (one["state"], one["what"]) for one in installed.said("doctor")["findings"]}

    assert said["python"][1].startswith(f"Python {machine.python}, ")
    assert said["java"][1].startswith(f"Java {machine.java} ")
    assert said["worker python"][1].startswith(f"Python {machine.python} ")
    for name in ("python", "java", "worker python", "jars", "hdfs", "yarn", "service"):
        assert said[name][0] == "ok", said[name]


def test_a_report_of_an_agent_and_a_value_of_ours_are_read(installed: Installed) -> None:
    def fresh(name: str) -> list[str]:
        return [one["data_value"] for one in installed.said(f"data get {name}") if one["state"] == "fresh"]

    until(lambda: len(fresh("cpu_count")) == NODES, 120)
    assert all(int(value) > 0 for value in fresh("cpu_count"))
    node = installed.inside.run("nodewise cluster status --names").split()[0]
    installed.inside.run("nodewise producer put worth --time-max 3600 --kind program")
    installed.inside.run(f"nodewise data put worth {node} 0.5")
    assert fresh("worth") == ["0.5"]


def test_a_job_with_the_engine_onnx_classifies_every_picture(installed: Installed) -> None:
    installed.inside.run(f"{WORKER}/bin/python - ~/small.onnx <<'END'\n{PROGRAM}\nEND")

    for name, words in {"small": "--engine onnx --model ~/small.onnx", "alexnet": "--engine onnx"}.items():
        report = installed.classify(name, words)
        assert (report["images"], report["errors"]) == (PICTURES, 0)
        rows = installed.said(f"job result hdfs:///{name}")
        assert len({row["path"] for row in rows}) == PICTURES


def test_mxnets_workers_have_a_python_3_11_of_their_own(installed: Installed) -> None:
    if not installed.machine.mxnet:
        pytest.skip("MXNet is tried on this Debian with its own Python")
    assert installed.inside.run(f"{MXNET}/bin/python -V").startswith("Python 3.11.")
    report = installed.classify("mxnet", f"--engine mxnet --worker-python {MXNET}/bin/python")

    assert (report["images"], report["errors"]) == (PICTURES, 0)


def test_every_python_that_nodewise_is_for_is_tried_on_a_machine() -> None:
    assert {machine.python for machine in MACHINES} == {".".join(map(str, version)) for version in PYTHONS}


def test_both_locks_of_workers_have_the_same_engines() -> None:
    def versions(name: str) -> dict[str, str]:
        lines = (ROOT / "requirements" / name).read_text().splitlines()
        return dict(line.split()[0].split("==") for line in lines if "==" in line)

    whole, onnx = versions("worker.txt"), versions("worker-onnx.txt")
    names = ("hdfs-native", "onnx", "onnxruntime", "opencv-python-headless", "pyarrow", "simplejpeg")
    assert [onnx[name] for name in names] == [whole[name] for name in names]
    assert "mxnet" not in onnx
