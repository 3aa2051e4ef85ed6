"""`python -m jobs.partitioner job.json`: started by YARN as the application master of a job."""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path

from hadoop import jvm
from hadoop.errors import HadoopError
from hadoop.filesystem import FileSystem
from hadoop.master import MasterSession
from infosvc.client import InfoClient
from infosvc.errors import InfoError
from jobs.errors import JobError
from jobs.partitioner.api import Listener
from jobs.partitioner.partitioner import Partitioner
from jobs.settings import JobSettings
from locality.types import PlanError

INFO_TOKEN, INFO_CA = Path("info_token"), Path("info_ca")
EXPECTED = (HadoopError, InfoError, JobError, PlanError)
"""What carries a sentence for the user; anything else is a fault of ours and keeps its traceback in the log."""


def main(settings_file: str) -> int:
    """Run the job; its outcome and one sentence reach the client through YARN."""
    settings = JobSettings.from_json(json.loads(Path(settings_file).read_text()))
    jvm.start(jvm.HadoopHome(Path(settings.conf_dir), Path(settings.jars), settings.user))
    filesystem = FileSystem()
    session = MasterSession(filesystem)
    token = secrets.token_urlsafe(32)
    host = os.environ["NM_HOST"]
    listener = Listener(host, token)
    session.register(host, listener.port)
    client = InfoClient.from_token_file(settings.info_url, INFO_TOKEN, ca_file=INFO_CA if INFO_CA.exists() else None)
    try:
        report = Partitioner(settings, filesystem, session, client, listener, token).run()
        succeeded, message = True, f"{report.images} images, makespan {report.makespan_seconds:.1f} s"
    except EXPECTED as error:
        succeeded, message = False, str(error)
    except Exception as error:
        leave(session, filesystem, settings, False, f"{type(error).__name__}: {error}")
        raise
    leave(session, filesystem, settings, succeeded, message)
    listener.close()
    return 0 if succeeded else 1


def leave(session: MasterSession, filesystem: FileSystem, settings: JobSettings, succeeded: bool, message: str) -> None:
    """Say how it ended and take the staging folder away, with whatever half-written results are in it."""
    print(message, flush=True)
    try:
        filesystem.delete(settings.staging)
    finally:
        session.leave(succeeded, message)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
