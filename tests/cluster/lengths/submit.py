"""Submits a job of this kind and follows it: `submit.py CONF_DIR JARS USER WORKER SERVICE TOKEN INPUT OUTPUT`."""

import sys
from dataclasses import asdict
from pathlib import Path

from hadoop.client import jvm
from jobs.application.submit import InfoAccess, Order, Submitter
from jobs.division import decision_store, speed_history
from jobs.itemwork import submission
from jobs.kinds.lengths.coordinator import Lengths, LengthSettings  # type: ignore[import-not-found]

conf_dir, jars, user, worker, service, token, source, output = sys.argv[1:]
home = jvm.HadoopHome(Path(conf_dir), Path(jars), user)
jvm.start(home)
submitter = Submitter(home, print)
settings = LengthSettings(input=source, output=output, capability="perf_even", worker_python=sys.executable)
program, access = settings.program, InfoAccess(service, token)
order = Order(
    kind="lengths",
    name="lengths",
    settings=asdict(settings),
    access=access,
    uploads={"worker.py": Path(worker)},
    tags=decision_store.tags(output),
    prepare=lambda client: speed_history.prepare(client, program.name, program.batch, Lengths.unit),
)
nodes = submitter.check(order)
submission.check_paths(submitter.filesystem, settings, remedy="put it there")
submission.choose_capability(settings, program, access.client(), nodes, 20, print, Lengths.unit)
job_id = submitter.submit(order)
print(submitter.follow(job_id, lambda application: None).diagnostics)
