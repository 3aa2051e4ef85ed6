"""A job is resumed only when it is known to have ended: Hadoop's real client asks a YARN that is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.ports import free_port

YARN_SITE = """<configuration>
<property><name>yarn.resourcemanager.address</name><value>127.0.0.1:{port}</value></property>
<property><name>yarn.resourcemanager.webapp.address</name><value>127.0.0.1:{page}</value></property>
</configuration>"""


def test_a_job_is_not_resumed_while_yarn_cannot_be_reached(tmp_path: Path) -> None:
    port, page = free_port(), free_port()
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    (tmp_path / "yarn-site.xml").write_text(YARN_SITE.format(port=port, page=page))
    words = ["--home", str(tmp_path), "job", "resume", "application_1_0001", "--hadoop-conf", str(tmp_path)]

    done = subprocess.run(
        [sys.executable, "-m", "nodewise", *words],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"NODEWISE_URL": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 1
    assert done.stderr == (
        f"Error: YARN at http://127.0.0.1:{page} does not say whether application_1_0001 has ended, and until then its "
        "application master may be storing the results: start YARN, or wait until it answers, and resume the job "
        "again\n"
    )
