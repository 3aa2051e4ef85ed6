"""A published environment: what HDFS holds, and that nodes unpack it once and run from it."""

from __future__ import annotations

import json
import venv
from pathlib import Path

import pytest
from hdfs import InsecureClient

from hadoop.local.lifecycle import Cluster
from tests.cluster.hadoop_scripts import Scripts
from tests.cluster.site import nodewise, succeed, until

PACKAGES = Path("lib/python3.11/site-packages")
SUBMIT = """
import sys
from pathlib import Path
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from hadoop.client.yarn import Launch, Yarn
from jobs.application.environments.store import ARCHIVE_NAME, latest, python_in

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
filesystem, yarn = FileSystem(), Yarn()
archive = latest(filesystem, folder)
found, context = yarn.new_application()
argv = [python_in(), "-c", "import os, only_here; print(os.path.realpath(only_here.__file__))"]
launch = Launch(argv, {}, {}, 64, 1, {ARCHIVE_NAME: archive})
yarn.submit(context, "environment", launch, filesystem)
yarn.close()
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small environment with one package."""
    made = tmp_path_factory.mktemp("environment")
    venv.create(made, symlinks=True)
    (made / PACKAGES / "only_here.py").write_text("")
    return made


def _publish(cluster: Cluster, environment: Path, folder: str) -> dict[str, object]:
    words = ("env", "publish", "--python", str(environment), folder, "--json")
    found: dict[str, object] = json.loads(succeed(nodewise(cluster.home, *words)))
    return found


def _run(cluster: Cluster, scripts: Scripts, folder: str) -> Path:
    """Run a container from the latest environment; the place on the node where its package was."""
    application = scripts.find(SUBMIT, folder=folder)
    pattern = f"nodes/*/containers/{application}/*/stdout"
    (said,) = until(lambda: [text for p in cluster.state.glob(pattern) if (text := p.read_text())])
    return Path(said.strip())


def test_nodes_unpack_a_published_environment_once_and_run_from_it(
    cluster: Cluster, scripts: Scripts, environment: Path
) -> None:
    made = _publish(cluster, environment, "hdfs:///shared/env")
    client = InsecureClient(cluster.namenode_http, user=cluster.user)
    assert client.status("/shared")["permission"] == client.status("/shared/env")["permission"] == "755"
    assert client.status(str(made["path"]))["permission"] == "644"
    seen: dict[Path, float] = {}
    # With one run more than nodes, some node has two.
    for _ in range(cluster.size + 1):
        place = _run(cluster, scripts, "/shared/env")
        assert "filecache" in place.parts
        assert "usercache" not in place.parts
        assert seen.setdefault(place, place.stat().st_ctime) == place.stat().st_ctime
    assert len({place.parts[: place.parts.index("filecache")] for place in seen}) == len(seen) <= cluster.size


def test_what_is_there_is_not_packed_again_and_what_is_removed_is_gone(cluster: Cluster, environment: Path) -> None:
    first, second = (_publish(cluster, environment, "/twice") for _ in range(2))
    assert (first["made"], second["made"]) == (True, False)
    assert first["path"] == second["path"]
    listed = json.loads(succeed(nodewise(cluster.home, "env", "list", "/twice", "--json")))
    assert [(one["path"], one["latest"], one["size_bytes"]) for one in listed] == [
        (first["path"], True, first["packed_bytes"])
    ]
    name = str(first["path"]).rpartition("/")[2]
    succeed(nodewise(cluster.home, "env", "rm", name, "/twice"))
    assert json.loads(succeed(nodewise(cluster.home, "env", "list", "/twice", "--json"))) == []
    again = nodewise(cluster.home, "env", "rm", name, "/twice")
    assert again.returncode == 1
    assert f"there is no environment {name} in /twice" in again.stderr


def test_a_folder_that_is_closed_to_others_is_refused(cluster: Cluster, environment: Path) -> None:
    client = InsecureClient(cluster.namenode_http, user=cluster.user)
    client.makedirs("/closed", permission="700")
    refused = nodewise(cluster.home, "env", "publish", "--python", str(environment), "/closed/env")
    assert refused.returncode == 1
    assert "/closed in HDFS is closed to others" in refused.stderr
    assert client.list("/closed") == []
