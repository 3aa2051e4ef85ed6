"""Environments where Hadoop has Kerberos, what runs in them, also for users of the service, and training from HDFS."""

from __future__ import annotations

import json
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskState
from tests.cluster.apart.secure.place import NO_TICKET, PACKAGES, ROOT, Place
from tests.cluster.site import ANSWER_SECONDS, succeed, until, wait_for_end
from tests.learning.drawn import draw_classes

READER = ROOT / "tests" / "learning" / "from_hdfs.py"
SAMPLES, CLASSES, EPOCHS = 48, 4, 3
READ = """
import hdfs_native

found = [one.path for one in hdfs_native.Client().list_status("/user/alice")]
print(hdfs_native.__file__, "/user/alice/pictures" in found)
"""


def test_a_task_runs_in_an_environment_that_is_published_by_keytab_or_ticket(service: Place, tmp_path: Path) -> None:
    venv.create(tmp_path / "small", symlinks=True)
    (tmp_path / "small/lib/python3.11/site-packages/only_here.py").write_text("")
    words = ("env", "publish", "--python", str(tmp_path / "small"), "--json")
    keytab = ("--keytab", str(service.cluster.realm.keytab("alice")))

    first = json.loads(succeed(service.nodewise(*words, *keytab, **NO_TICKET)))
    with_ticket, without = service.start(*words), service.start(*words, **NO_TICKET)

    again = json.loads(succeed(with_ticket.end()))
    assert (first["made"], again["made"], again["path"]) == (True, False, first["path"])
    assert (without.end().returncode, "run `kinit`" in without.end().stderr) == (1, True)
    program = (
        "import os, only_here; print(os.path.realpath(only_here.__file__), 'container_tokens' in os.listdir('..'))"
    )
    place, has_tokens = service.run_task("--env", "latest", "--", "python", "-c", program).split()
    assert "/filecache/" in place and "/usercache/" not in place, "it is there once for all users"
    assert has_tokens == "True", "which a task in a box of Docker has not"


def test_members_read_hdfs_by_their_tokens_in_an_environment_that_nodes_fetch_ahead(
    service: Place, environment: Any
) -> None:
    keytab = service.by_keytab()
    again = service.ask_command("env", "make", "plain", "--version", "1", *PACKAGES, **keytab)
    assert (environment["is_new"], again["is_new"], again["digest"]) == (True, False, environment["digest"])
    assert service.ask_command("env", "verify", "plain@1", **keytab) == {"damaged": []}
    listed = service.ask_command("env", "list", **keytab)
    assert [one["name"] for one in listed if "digest" in one] == ["plain@1"]
    (service.folder / "read.py").write_text(READ)
    words = ("--members", "1", "--memory", "512", "--restarts", "0", "--output", "hdfs:///user/alice/read")
    line = ("train", "submit", "--json", *words, "--env", "plain@1", "--file", "read.py", "--", "python", "read.py")

    # One after the other: on two nodes of two cores each, one's master could have the core that the other waits for.
    warmed = service.ask_command("env", "warm", "plain@1", "--all", **keytab)
    training = service.start(*line)

    assert sorted(warmed["nodes"]) == sorted(service.cluster.nodes)
    blob = f"sha256-{environment['parts'][0]['sha256']}.sqfs"
    for node in service.cluster.nodes:
        assert list((service.cluster.node_dir(node) / "local" / "filecache").glob(f"*/{blob}"))
    submitted = training.report()["job_id"]
    printed = "/opt/env/lib/python3.11/site-packages/hdfs_native/__init__.py True"
    until(lambda: submitted in service.jobs("FINISHED", "FAILED", "KILLED"))
    told = service.nodewise("train", "logs", submitted)
    assert printed in told.stdout, told.stderr


@pytest.mark.usefixtures("environment")
def test_chains_and_arrays_of_a_user_whom_hadoop_does_not_know_run_by_the_keytab_of_the_service(service: Place) -> None:
    with InfoClient.from_token_file(service.url, service.token_file, ANSWER_SECONDS) as admin:
        _, token = admin.create_token("bob", Role.USER)
    chain, numbers = "hdfs:///user/alice/chain", (1, 2)
    word, read = ("sh", "-c", "echo the word > $OUTPUT/word"), ("sh", "-c", "cat $DATA/chain/word")
    with InfoClient(service.url, token, ANSWER_SECONDS) as bob:
        first = bob.submit_task(TaskSpec(word, memory_mb=128, output=chain))
        second = bob.submit_task(TaskSpec(read, memory_mb=128, data=(chain,), after=(first.task_id,)))
        array = [bob.submit_task(_one_of_array(number)) for number in numbers]

        ended = [wait_for_end(bob, one.task_id) for one in (first, second, *array)]

        printed = [bob.task_log(one.task_id, "stdout").text for one in ended]
    assert [(one.state, one.reason) for one in ended] == 4 * [(TaskState.SUCCEEDED, "")]
    module = "/opt/env/lib/python3.11/site-packages/packaging/__init__.py"
    assert printed == ["", "the word\n", *(f"{number} {module}\n" for number in numbers)]
    begun, before = ended[3].started_at, ended[2].ended_at
    assert begun is not None and before is not None and begun >= before, "one of the array at once"


def _one_of_array(number: int) -> TaskSpec:
    program = "import os, packaging; print(os.environ['ARRAY_INDEX'], packaging.__file__)"
    variables = {"ARRAY_INDEX": str(number)}
    words = ("python", "-c", program)
    return TaskSpec(words, memory_mb=128, variables=variables, array="squares", at_once=1, env="plain@1")


def test_members_read_the_replicas_of_their_own_nodes_by_their_tokens(place: Place) -> None:
    draw_classes(place.folder / "drawn", np.random.default_rng(5), SAMPLES, CLASSES)
    keytab = place.by_keytab()
    packs, output = "hdfs://nodewise/user/alice/packs", "hdfs:///user/alice/read_packs"
    succeed(place.nodewise("images", "pack", "drawn", packs, "--file-size", "6k", **keytab))
    words = ("--members", "2", "--output", output, "--file", str(READER), "--memory", "768", "--wait")

    program = ("python", READER.name, "packs", "hdfs:///user/alice/packs")
    succeed(place.nodewise("train", "submit", *words, "--", *program, **keytab))

    nodes = place.ask_command("train", "report", output, **keytab)["nodes"]
    reads, local = (sum(node[name] for node in nodes.values()) for name in ("reads", "local_reads"))
    assert reads == local == EPOCHS * SAMPLES  # both nodes hold all
