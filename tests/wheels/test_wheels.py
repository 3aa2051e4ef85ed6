"""What is in the wheels, and that each works by itself and beside the other."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from nodewise.__main__ import COMMANDS
from tests.infosvc.conftest import TOKEN, serving
from tests.recipes.pages import ROOT
from tests.test_completion import TRY
from tests.wheels.built import Environment, Wheels, environment, pack, prepare, run

ROOMS = ("nodewise", "infosvc", "collectors", "locality", "hadoop", "boxes", "environments", "learning", "jobs")


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return {name for name in opened.namelist() if ".dist-info/" not in name}


def test_the_wheel_has_every_file_of_the_rooms_in_one_folder(wheels: Wheels) -> None:
    found = names(wheels.main)
    listed = subprocess.run(["git", "ls-files", *ROOMS], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    templates = [str(file.relative_to(ROOT)) for file in (ROOT / "ansible/roles/hadoop/templates").glob("*.j2")]
    made = [f"infosvc/web/vendor/{name}" for name in ("uPlot.esm.js", "uPlot.min.css", "LICENSE")]
    plugin = ["yarn-plugin/target/nodewise-yarn-0.1.0.jar", "yarn-plugin/attributes/node_attributes.py"]
    locks = ["requirements/worker.txt", "requirements/worker-onnx.txt", "requirements/hadoop.sha256"]
    wanted = [*listed.split(), *templates, *made, *plugin, *locks]

    assert [name for name in wanted if (ROOT / name).is_file() and f"nodewise_rooms/{name}" not in found] == []
    assert {name.partition("/")[0] for name in found} == {
        "nodewise_rooms",
        "nodewise_rooms.pth",
        "nodewise-0.1.0.data",
    }


def test_the_small_wheel_has_only_modules_of_nodewise_and_needs_nothing(wheels: Wheels) -> None:
    assert {name.partition("/")[0] for name in names(wheels.client)} == {"nodewise"}
    with zipfile.ZipFile(wheels.client) as opened:
        told = opened.read("nodewise_client-0.1.0.dist-info/METADATA").decode()
    assert "Requires-Dist" not in told


def test_no_file_belongs_to_both_and_both_are_of_one_version(wheels: Wheels) -> None:
    assert names(wheels.main) & names(wheels.client) == set()
    projects = [
        tomllib.loads((ROOT / name).read_text())["project"]
        for name in ("pyproject.toml", "wheels/client/pyproject.toml")
    ]
    assert projects[0]["version"] == projects[1]["version"]
    assert projects[0]["requires-python"] == projects[1]["requires-python"]


def test_half_a_wheel_is_not_built(tmp_path: Path) -> None:
    copy = prepare(tmp_path / "checkout")
    (copy / "infosvc/web/vendor").unlink()
    with pytest.raises(AssertionError, match=r"uPlot\.esm\.js, build/share/\S+ is missing: scripts/wheels makes it"):
        pack(copy, tmp_path / "dist")


def test_the_command_runs_from_the_wheel_alone(installed: Environment) -> None:
    shown = installed.nodewise("--help")
    assert all(f"  {name}" in shown.stdout for name in COMMANDS), shown.stderr
    rooms = ", ".join(ROOMS)
    places = installed.python(f"import {rooms}; print(*(one.__file__ for one in ({rooms})))").split()
    assert all(Path(place).is_relative_to(installed.packages / "nodewise_rooms") for place in places)


def test_manual_pages_and_completion_come_along(installed: Environment) -> None:
    share = installed.folder / "share"
    pages = sorted((share / "man/man1").glob("*.1"))
    assert {f"nodewise-{name}" for name in COMMANDS} | {"nodewise-task-submit"} <= {page.stem for page in pages}
    shown = subprocess.run(["man", "--warnings", "-l", *pages], capture_output=True, text=True, timeout=120)
    assert (shown.returncode, shown.stderr) == (0, "")
    submit = (share / "man/man1/nodewise-task-submit.1").read_text()
    assert "\\-\\-at\\-once" in submit

    program = TRY.replace("<(nodewise completion bash)", str(share / "bash-completion/completions/nodewise"))
    words = ["bash", "--norc", "-c", program, "bash", "nodewise", "setup", ""]
    variables = installed.variables()
    variables["PATH"] = f"{installed.folder}/bin:{variables['PATH']}"
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=variables)
    assert (sorted(done.stdout.split()), done.stderr) == (["hadoop", "worker"], "")
    assert (share / "doc/nodewise/docs/operate.md").is_file()


def test_both_wheels_share_an_environment_and_either_may_leave(wheels: Wheels, installed: Environment) -> None:
    installed.install(wheels.client)
    ask = "import nodewise.client, nodewise.tasks; print(nodewise.client.InfoClient.__module__)"
    assert installed.python(ask) == "infosvc.wire.client\n"
    assert installed.nodewise("--version").stdout == "nodewise, version 0.1.0\n"
    installed.uninstall("nodewise")
    assert installed.python(ask) == "nodewise._rooms.infosvc.wire.client\n"
    installed.install(wheels.main)
    installed.uninstall("nodewise-client")
    assert installed.nodewise("--version").returncode == 0


USE = """
import sys
from pathlib import Path
from nodewise import client, tasks

service = client.InfoClient(sys.argv[1], sys.argv[2])
service.put_producer(client.Producer("cpu", "scripts/cpu.sh", 2.0))
service.put_node("n1", "127.0.0.1:9")
service.put_value("cpu", "n1", 0.5)
print([datum.data_value for datum in service.data("cpu")])
try:
    client.InfoClient(sys.argv[1], "wrong").nodes()
except client.InfoError as error:
    print(type(error).__name__)
Path("src").mkdir()
asked = tasks.submit(["true"], folder="src", client=service)
print(asked.look().state, asked.stop().state)
generic = {"jobs", "hadoop", "infosvc", "locality", "learning"}
print(sorted(generic & {name.partition(".")[0] for name in sys.modules}))
"""


def test_programs_use_the_small_wheel_without_anything_else(bare: Environment, tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/infosvc.db") as service:
        said = bare.python(USE, service.url, TOKEN)

    assert said.splitlines() == ["['0.5']", "Unauthorized", "queued stopped", "[]"]


LEARN = """
import sys
import torch
from nodewise.learning import LearningError, Run, hdfs_images
from nodewise._rooms.learning.member.store import Store, StoreClient

torch.manual_seed(1)
model = torch.nn.Linear(2, 1)
inputs = torch.randn(32, 2)
data = inputs, inputs.sum(1, keepdim=True)
with Run(model, torch.optim.SGD(model.parameters(), 0.1), data, batch=8, epochs=20) as run:
    for a, b in run:
        run.step(lambda: torch.nn.functional.mse_loss(model(a), b))
print(float(torch.nn.functional.mse_loss(model(inputs), data[1])) < 0.05, hdfs_images.__module__)
store = Store("127.0.0.1")
client = StoreClient(store.offer(), lambda: False)
client.set("one", b"1")
print(client.get("one"))
store.close()
generic = {"jobs", "hadoop", "infosvc", "locality", "learning"}
print(sorted(generic & {name.partition(".")[0] for name in sys.modules}))
"""


def test_a_program_trains_with_the_small_wheel_and_the_libraries_of_its_own(bare: Environment) -> None:
    python = ROOT / ".venv-worker/bin/python"
    said = run([python, "-c", LEARN], bare.work(), bare.variables() | {"PYTHONPATH": str(bare.packages)})

    assert said.splitlines() == ["True nodewise._rooms.jobs.training_data.images", "b'1'", "[]"]


def test_an_editable_installation_is_of_the_checkout_itself(tmp_path: Path) -> None:
    """As scripts/setup installs it: nothing has to be made before."""
    copy = prepare(tmp_path / "checkout")
    made = environment(tmp_path / "developed", with_libraries=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(made.folder / "bin/python")]
    run([*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "-e", str(copy)])

    assert made.python("import jobs; print(jobs.__file__)") == f"{copy}/jobs/__init__.py\n"
