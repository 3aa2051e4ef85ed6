"""By which variables a program finds the information service: those of MLflow's client, which make its run the task."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from jobs.application.job_spec import INFO_CA, INFO_TOKEN

URI = "MLFLOW_TRACKING_URI"
CA = ".service-ca.pem"
"""Below the task's folder, as a box may show a program nothing else of the node."""


def variables(url: str, task_id: str, container: Path, folder: Path) -> Mapping[str, str]:
    """The variables, none when the task has no token in its `container`; `folder` gets what else they name.

    MLflow's client knows one address: of several in `url`, it is told the first.
    """
    token, authority = container / INFO_TOKEN, container / INFO_CA
    if not token.exists():
        return {}
    found = {URI: url.partition(",")[0], "MLFLOW_TRACKING_TOKEN": token.read_text().strip(), "MLFLOW_RUN_ID": task_id}
    if authority.exists():
        shutil.copyfile(authority, folder / CA)
        found["MLFLOW_TRACKING_SERVER_CERT_PATH"] = str(folder / CA)
    return found
