"""What docs/yarn-plugin.md shows: a cluster with the plug-in, and classes of nodes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bench.stage import START_SECONDS
from hadoop.local import lifecycle
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import AWAY
from infosvc.wire.records import Kind, Producer
from infosvc.wire.scoring.yarn_score import parse
from tests.infosvc.conftest import TOKEN, serving
from tests.recipes.pages import ROOT, block
from tests.recipes.shell import Shell, changed, stop

NODE = "127.0.1.11"
DEADLINE_SECONDS = 600.0


def told(own: Path) -> Any:
    """What the service in this home says of the policies, None while it is not there."""
    file = own / "service" / "token"
    if not file.exists():
        return None
    token, master = file.read_text().strip(), lifecycle.load(own).master
    try:
        register(own, InfoClient(f"http://{master}:8400", token))
        asked = urllib.request.Request(
            f"http://{master}:8400/api/v1/explain", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)
    except (OSError, *AWAY):
        return None


def register(own: Path, client: InfoClient) -> None:
    """Register what the policies speak of, as `nodewise node add` would."""
    known = {producer.data_name for producer in client.producers()}
    for judgement in parse((own / "cluster" / "conf" / "nodewise-policy.properties").read_text()):
        for name in set(judgement.data_names) - known:
            client.put_producer(Producer(name, f"scripts/{name}.sh", 5))


@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_a_cluster_with_the_plug_in_is_explained(tmp_path: Path) -> None:
    home = tmp_path / "home"
    own = home / ".nodewise"
    shell = Shell(home, tmp_path / "work")
    # The subnet is the first that is free, which need not be the page's.
    master = "$(nodewise cluster status --names | head -n 1 | sed 's/[.][0-9]*$/.1/')"
    up = f"--plugin --nodes 1 --wait {START_SECONDS:.0f}"
    running = shell.start(changed(block("plugin-here"), ("--plugin", up), ("127.0.2.1", master)))
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (found := told(own)):
            assert running.poll() is None and time.monotonic() < deadline, "the service does not explain the policy"
            time.sleep(0.5)
    finally:
        stop(running)
        lifecycle.down(own)

    assert [policy["policy"] for policy in found["policies"]]


def test_the_rules_for_classes_of_nodes_are_right(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'infosvc.db'}") as service:
        for name, value in {"perf_cpu": "0.5", "gpu_cuda_version": "12.4"}.items():
            service.client.put_producer(Producer(name, "", 60, Kind.PROGRAM))
            service.client.put_value(name, NODE, value)
        rules = tmp_path / "node_attributes.conf"
        rules.write_text(changed(block("attributes-settings"), ("http://master:8400", service.url)))
        script = ROOT / "yarn-plugin" / "attributes" / "node_attributes.py"
        words = [sys.executable, "-I", "-S", str(script), str(rules), NODE]
        done = subprocess.run(words, capture_output=True, text=True, timeout=240)

    assert (done.returncode, done.stderr) == (0, "") and TOKEN not in done.stdout
    assert "capability_class,STRING,middle" in done.stdout and "cuda,STRING,12.4" in done.stdout
