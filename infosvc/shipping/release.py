"""The releases on one node: what stands there, how a new one comes, and the switch from one to another."""

from __future__ import annotations

import base64
import json
import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from infosvc.shipping.bundle import MANIFEST, Bundle
from infosvc.shipping.ssh import Connection, Talk
from infosvc.wire.errors import Conflict, NotReady

NODE_PYTHON = (3, 11)
OTHERS_SECONDS = 60.0
"""How long another push is waited for: one that was cut off goes on there until the agent has stopped and started."""
Files = Mapping[str, str | None]

_log = logging.getLogger(__name__)
_ON_NODE = Path(__file__).with_name("on_node.py")
# Any Python understands this much, and so can say that it is too old.
_GATE = f"""
import json, sys
if sys.version_info < {NODE_PYTHON}:
    print(json.dumps({{"python": sys.version_info[:2]}}))
else:
    exec(compile(sys.argv.pop(1), "on_node", "exec"))
"""


@dataclass(frozen=True)
class Standing:
    """What stands on a node: its `directory`, the agent's `settings` (none when it is not enrolled) and certificate,
    the SHA-256 of each of its `own` files that is there, whether it has a supervisor, the names of the releases in use
    and before, and the version of each release whose files are whole."""

    directory: PurePosixPath
    free: int
    settings: Mapping[str, Any]
    certificate: str | None
    own: Mapping[str, str]
    supervised: bool
    links: Mapping[str, str | None]
    releases: Mapping[str, str | None]

    @property
    def version(self) -> str | None:
        """The version in use; None when there is none, or when somebody has changed its files."""
        return self.releases.get(self.links["current"] or "")

    def release_of(self, version: str) -> str | None:
        """A release of this version whose files are whole."""
        return next((name for name, found in self.releases.items() if found == version), None)


class Releases:
    """The directory of one node, over one connection; every call raises an InfoError that is one sentence."""

    def __init__(self, connection: Connection, node_name: str, directory: str) -> None:
        self._connection = connection
        self._node_name = node_name
        self._directory = directory.replace("{node}", node_name)
        self._talk: Talk | None = None

    def look(self, make: bool = False) -> Standing:
        """What stands there; with `make`, the directory is made and tried."""
        told = self._ask("look", {"directory": self._directory, "make": make})
        return Standing(**told | {"directory": PurePosixPath(told["directory"])})

    def why_not_allowed(self, directories: Sequence[str]) -> Mapping[str, str]:
        """Folders of the node from which programs must not be started -> why."""
        refused: Mapping[str, str] = self._ask("check_allowed", {"directories": list(directories)})["refused"]
        return refused

    def bring(self, bundle: Bundle, standing: Standing) -> str:
        """The name of a release with the content of the bundle; copied, and verified, when it is not there yet."""
        return standing.release_of(bundle.version) or self._copy(bundle, standing)

    def switch(self, standing: Standing, links: Files, files: Files | None = None) -> Mapping[str, Any]:
        """Make the release `current`, with these files beside it, and start its agent; returns what was before."""
        return self._switch(standing, {"links": links, "files": files or {}})

    def switch_back(self, standing: Standing, before: Mapping[str, Any]) -> None:
        """Undo a switch; where no agent was before, none is left."""
        self._switch(standing, before)
        self.prune(standing)

    def prune(self, standing: Standing) -> None:
        """Remove all releases but the current and the previous one."""
        self._ask("prune", {"base": str(standing.directory)})

    def remove(self) -> bool:
        """End the agent and remove all that was made for it; False when there was nothing."""
        told = self._ask("remove", {"directory": self._directory})
        if "supervised" in told:
            raise Conflict(
                f"a supervisor of {self._node_name} would start the agent in {told['supervised']} again",
                remedy="disable its unit and remove the file `supervised` there, or run ansible/uninstall.yml",
            )
        return bool(told["removed"])

    def _copy(self, bundle: Bundle, standing: Standing) -> str:
        needed = 2 * (len(bundle.archive) + sum((bundle.directory / name).stat().st_size for name in bundle.manifest))
        if standing.free < needed:
            raise NotReady(
                (f"{standing.directory} on {self._node_name} has {standing.free} bytes free and {needed} are needed"),
                remedy="make room, or choose another directory",
            )
        place = {"base": str(standing.directory), "release": f"{bundle.version}-{secrets.token_hex(4)}"}
        content = base64.b64encode(bundle.archive).decode()
        arrived = self._ask("unpack", {**place, "content": content})["hashes"]
        arrived.pop(MANIFEST, None)
        wrong = sorted(name for name in {*bundle.manifest, *arrived} if arrived.get(name) != bundle.manifest.get(name))
        if wrong:
            self._ask("discard", place)
            raise Conflict(f"{', '.join(wrong)} arrived changed on {self._node_name}", remedy="push again")
        return place["release"]

    def _switch(self, standing: Standing, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        told = self._ask("switch", {"base": str(standing.directory), "wanted": wanted})
        before: Mapping[str, Any] = told["before"]
        return before

    def _ask(self, verb: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if self._talk is None:
            # Isolated and without site packages: nothing of that machine's Python setup can stand in the way.
            self._talk = self._connection.talk(["python3", "-I", "-S", "-c", _GATE, _ON_NODE.read_text()])
        answer = self._answer_of(self._talk, json.dumps([verb, arguments]))
        if "python" in answer:
            found, needed = (".".join(map(str, version)) for version in (answer["python"], NODE_PYTHON))
            raise NotReady(f"{self._node_name} has python3 {found}", remedy=f"an agent needs {needed} or newer")
        if "busy" in answer:
            raise NotReady(f"{self._node_name}: {answer['busy']}", remedy="try again later")
        if "error" in answer:
            raise NotReady(
                f"{self._directory} cannot be used on {self._node_name}: {answer['error']}; "
                "check its owner and its free space, or choose another directory"
            )
        if "agent" in answer:
            raise NotReady(f"{self._node_name}: {answer['agent']}")
        return answer

    def _answer_of(self, talk: Talk, asked: str) -> dict[str, Any]:
        """Ask, again and again while somebody else is at work there, and say once that this waits for them."""
        deadline = time.monotonic() + OTHERS_SECONDS
        answer = self._decode(talk.ask(asked))
        if "busy" in answer:
            _log.warning("%s: another push is at work there; waiting up to %.0f s", self._node_name, OTHERS_SECONDS)
        while "busy" in answer and time.monotonic() < deadline:
            answer = self._decode(talk.ask(asked))
        return answer

    def _decode(self, output: str) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(output)
        except ValueError as error:
            raise NotReady(
                f"{self._node_name} answers with text of its own, {output[:60]!r}",
                remedy="a login that runs a command must print nothing else, see its shell's start files",
            ) from error
        return answer
