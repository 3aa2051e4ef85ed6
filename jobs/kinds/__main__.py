"""`python -m jobs.kinds job.json`: YARN starts it as an attempt at being a job's application master."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path

from hadoop.client import jvm
from hadoop.client.filesystem import FileSystem
from hadoop.client.master import MasterSession
from hadoop.client.yarn import Yarn
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from jobs.application.attempts import attempt_of
from jobs.application.job_spec import INFO_CA, INFO_TOKEN, JobSpec
from jobs.application.listener import Listener
from jobs.application.master import Application
from jobs.division import kept_work
from jobs.errors import JobError
from jobs.kinds import find_kind
from locality.types import PlanError

HDFS_PATIENCE_SECONDS = 120
"""How long an attempt waits for a NameNode that is started anew: attempts are few, and would be used up meanwhile."""

FINAL = (InfoError, JobError, PlanError)
"""What carries a sentence for the user, and would be the same in another attempt."""


def main(spec_file: str) -> int:
    """Run the job; its outcome and one sentence reach the client through YARN.

    What may be different the next time - HDFS or YARN does not answer, or a fault of ours - is left to the next
    attempt, as long as there is one.
    """
    spec = JobSpec.from_json(json.loads(Path(spec_file).read_text()))
    attempt = attempt_of(os.environ["CONTAINER_ID"])
    hadoop = jvm.HadoopHome(Path(spec.conf_dir), Path(spec.jars), spec.user)
    jvm.start(hadoop, notes_classes=True)
    filesystem = FileSystem(HDFS_PATIENCE_SECONDS)
    session = MasterSession(filesystem)
    host = os.environ["NM_HOST"]
    listener = Listener(host, spec.token)
    held = session.register(host, listener.port, f"{listener.address}/")
    page = ""
    client = InfoClient.from_token_file(spec.info_url, INFO_TOKEN, ca_file=INFO_CA if Path(INFO_CA).exists() else None)
    application = Application(spec, filesystem, session, client, listener, attempt, held)
    try:
        outcome = application.run(find_kind(spec.kind))
        succeeded, message, page = True, outcome.message, outcome.page
    except FINAL as error:
        succeeded, message = False, str(error)
    except Exception as error:
        traceback.print_exc()
        _leave_to_the_next(application)
        message = str(error) if isinstance(error, HadoopError) else f"{type(error).__name__}: {error}"
        succeeded = False
    is_kept = not succeeded and kept_work.is_marked(filesystem, spec.staging)
    message = kept_work.with_remedy(message, spec.job_id) if is_kept else message
    print(message, flush=True)
    application.remember(succeeded, message)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # YARN sends it to who has left: a moment is enough for the rest
    leave(session, spec.job_id, succeeded, message, page)
    if not is_kept:
        clean(filesystem, spec.staging)  # only now: until here another attempt might have needed it
    listener.close()
    if succeeded:
        jvm.archive_classes()
    return 0 if succeeded else 1


def _leave_to_the_next(application: Application) -> None:
    """End here and now if another attempt may begin."""
    if not application.is_last():
        sys.stdout.flush()
        os._exit(1)  # the JVM's own threads must not keep a failed attempt alive


def leave(session: MasterSession, job_id: str, succeeded: bool, message: str, page: str) -> None:
    """Let YARN end the job; a ResourceManager that was killed as it heard so may know that, and not this attempt."""
    try:
        session.leave(succeeded, message, page)
    except HadoopError:
        if not Yarn().application(job_id).has_ended:
            raise


def clean(filesystem: FileSystem, staging: str) -> None:
    """Leave nothing behind; the job has ended already, so that a fault changes nothing any more."""
    try:
        filesystem.delete(staging)
    except HadoopError as error:
        print(f"{staging} is left behind: {error}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
