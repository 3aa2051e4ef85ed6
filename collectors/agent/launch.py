"""Turns a wanted slot into a running child: the checked command, the fixed environment, the slot's own folder."""

from __future__ import annotations

import os
from pathlib import Path

from collectors.agent.child import Child
from collectors.agent.guard import Guard
from collectors.agent.settings import Settings
from collectors.agent.trust import Pushed, trusted_argv
from infosvc.records import Slot

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The one thing that runs inherit: the mark of a test cluster, by which its shutdown finds every process it has.
_INHERITED = "NODEWISE_CLUSTER"


class Launcher:
    """Starts runs of one agent."""

    def __init__(self, settings: Settings, pushed: Pushed, guard: Guard) -> None:
        self._settings = settings
        self._pushed = pushed
        self._guard = guard

    def start(self, slot: Slot) -> Child:
        """Start one run; Refused when the command may not run here, OSError when it cannot."""
        argv = trusted_argv(slot.cmd, slot.sha256, self._pushed, self._settings.allow)
        environment = self.environment(slot.data_name)
        Path(environment["STATE_DIR"]).mkdir(mode=0o700, parents=True, exist_ok=True)
        return Child(argv, environment, self._guard)

    def environment(self, data_name: str) -> dict[str, str]:
        """Everything a run sees of its surroundings."""
        settings = self._settings
        return {key: value for key, value in os.environ.items() if key.startswith(_INHERITED)} | {
            "INFOSVC_URL": settings.service_url,
            "INFOSVC_TOKEN_FILE": settings.token_file,
            "NODE_NAME": settings.node_name,
            "STATE_DIR": str(Path(settings.state_dir) / data_name),
            "PROC_ROOT": settings.proc_root,
            "PATH": _PATH,
            "LANG": "C",
            "PYTHONPATH": str(self._pushed.agent),
        }
