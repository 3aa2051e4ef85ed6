"""Runs scripts beside Hadoop's own client, one after another in one process: most of what each took was its JVM.

Arguments: the site files' folder, the jars' folder, the user, which scripts find in `sys.argv`. Each line is
`[script, names]`, each answer `["found", what the script calls so]` or `["failed", traceback]`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hadoop.local.lifecycle import Cluster  # the process itself needs nothing of it

ROOT = Path(__file__).resolve().parents[2]


class Scripts:
    """A process that runs scripts, each with names of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def find(self, script: str, **names: Any) -> Any:
        """What a script calls `found`, which knows these names; AssertionError with its traceback when it fails."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([script, names]) + "\n")
        self._process.stdin.flush()
        said, result = json.loads(self._process.stdout.readline())
        assert said == "found", result
        return result


@contextmanager
def scripts_of(
    cluster: Cluster, conf_dir: Path | None = None, variables: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Scripts]:
    """The process, which ends with the block; it goes by the cluster's own site files, or those of another folder.

    `variables` are added to its environment.
    """
    site_files = str(conf_dir or cluster.conf_dir)
    words = [sys.executable, "-m", "tests.cluster.hadoop_scripts", site_files, str(cluster.jars)]
    with subprocess.Popen(
        [*words, cluster.user],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Scripts(process)
        finally:
            process.kill()


def _run(script: str, names: dict[str, Any]) -> list[Any]:
    try:
        with redirect_stdout(sys.stderr):  # the answers have the other one to themselves
            exec(script, names)
    except Exception:
        return ["failed", traceback.format_exc()]
    return ["found", names["found"]]


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(_run(*json.loads(line))), flush=True)
