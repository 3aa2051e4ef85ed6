"""Turns a wanted slot into a running child: the checked command, its limits, the fixed environment, its own folder."""

from __future__ import annotations

import os
from pathlib import Path

from collectors.agent.run.child import Child
from collectors.agent.run.guard import Guard
from collectors.agent.run.limits import Confinement
from collectors.agent.run.trust import Pushed, Trust
from collectors.agent.settings import Settings
from infosvc.wire.records import Slot

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The one thing that runs inherit: the mark of a test cluster, by which its shutdown finds every process it has.
_INHERITED = "NODEWISE_CLUSTER"


class Launcher:
    """Starts runs of one agent, from its loop's thread: the kernel ends a run when the thread that began it ends."""

    def __init__(self, settings: Settings, pushed: Pushed, guard: Guard) -> None:
        self._settings = settings
        self._trust = Trust(pushed, settings.allow)
        self._confinement = Confinement(settings.limits())
        self._guard = guard

    def start(self, slot: Slot) -> Child:
        """Start one run; Refused when the command may not run here, OSError when it cannot."""
        program = self._trust.program(slot.cmd, slot.sha256)
        environment = self.environment(slot) | dict(program.environment)
        Path(environment["STATE_DIR"]).mkdir(mode=0o700, parents=True, exist_ok=True)
        argv, before = self._confinement.start(list(program.argv), slot.timeout)
        return Child(argv, environment, self._guard, program.descriptors, before)

    def environment(self, slot: Slot) -> dict[str, str]:
        """What every run sees of its surroundings; its program adds PROGRAM_DIR, and LIB or PYTHONPATH."""
        settings = self._settings
        told = {
            "INFOSVC_URL": settings.service_url,
            "INFOSVC_TOKEN_FILE": settings.token_file,
            "NODE_NAME": settings.node_name,
            "DATA_NAME": slot.data_name,
            "EMITS": " ".join(slot.emits),
            "STATE_DIR": str(Path(settings.state_dir) / slot.data_name),
            "PROC_ROOT": settings.proc_root,
            "PATH": _PATH,
            "LANG": "C",
        }
        if settings.ca_file:
            told["NODEWISE_CA_FILE"] = settings.ca_file
        return {key: value for key, value in os.environ.items() if key.startswith(_INHERITED)} | told
