"""Environments where Hadoop has Kerberos: published and made by ticket and keytab, and what runs in them."""

from __future__ import annotations

import json
import venv
from pathlib import Path
from typing import Any

from tests.cluster.apart.secure.place import NO_TICKET, Place
from tests.cluster.site import succeed, until

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
    (service.folder / "read.py").write_text(READ)
    words = ("--members", "1", "--memory", "512", "--restarts", "0", "--output", "hdfs:///user/alice/read")
    line = ("train", "submit", "--json", *words, "--env", "plain@1", "--file", "read.py", "--", "python", "read.py")

    warming, training = service.start("env", "warm", "plain@1", "--all", "--json"), service.start(*line)

    assert sorted(warming.report()["nodes"]) == sorted(service.cluster.nodes)
    submitted = training.report()["job_id"]
    printed = "/opt/env/lib/python3.11/site-packages/hdfs_native/__init__.py True"
    until(lambda: printed in service.nodewise("train", "logs", submitted).stdout)
