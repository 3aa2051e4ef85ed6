"""Checks the agents on the nodes: whether the service hears them, what they run, and whether we can log in."""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from infosvc.shipping import bundle
from infosvc.wire.errors import InfoError
from nodewise.doctor.finding import Finding, Problem, fail, ok, problem, skip, warn

if TYPE_CHECKING:
    from infosvc.shipping.remote import RemoteOptions
    from infosvc.wire.records import Node

_MOST_NAMED = 3
_NO_ANSWER = "not asked for, as the service did not name its nodes"


def read_version(home: Path, files: Path | None) -> str:
    """The version that `producer push` would bring, own files included; InfoError when they cannot be pushed."""
    own = files or (home / "files" if (home / "files").is_dir() else None)
    with tempfile.TemporaryDirectory(prefix="nodewise-") as directory:
        return bundle.build(Path(directory) / "files", own, replace_shipped=True).version


def agents(nodes: Sequence[Node] | None) -> Finding:
    """Whether the service hears every agent."""
    name = "agents"
    if nodes is None:
        return skip(name, _NO_ANSWER)
    if not nodes:
        return skip(name, "no node is enrolled", "enrol some with `nodewise node add HOST`")
    states = Counter(node.state for node in nodes)
    counted = ", ".join(f"{states[state]} {state}" for state in ("ready", "stale", "lost") if states[state])
    silent = [node.node_name for node in nodes if node.state != "ready"]
    if not silent:
        return ok(name, counted)
    remedy = f"see on {silent[0]} whether the agent runs, or start it again with `nodewise node add {silent[0]}`"
    return (fail if states["lost"] else warn)(name, f"{counted}: {_join_names(silent)}", remedy)


def agent_versions(nodes: Sequence[Node] | None, ours: str | Problem) -> Finding:
    """Whether the nodes run what this machine would push."""
    name = "agent versions"
    if not nodes:
        return skip(name, _NO_ANSWER if nodes is None else "no node is enrolled")
    if isinstance(ours, Problem):
        return ours.as_finding(name)
    # An agent that was never heard has said no version.
    others = {node.node_name: node.agent_version for node in nodes if node.agent_version not in ("", ours)}
    if not others:
        return ok(name, f"{ours}, as would be pushed")
    found = ", ".join(sorted(set(others.values())))
    what = f"{_join_names(list(others))} run {found}, and {ours} would be pushed"
    return warn(name, what, "bring it with `nodewise producer push --all`")


def read_logins(nodes: Sequence[Node], options: RemoteOptions) -> dict[str, Problem | None]:
    """Log in to every node once, as `node add` does: node -> why it failed, None when it did not."""
    # Paramiko takes half a second to import, which only this check should cost.
    from infosvc.shipping.remote import Machine, on_hosts

    # It logs a traceback for what it also raises.
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)

    def log_in(host: str) -> None:
        with Machine(host, options):
            pass

    results = on_hosts([node.node_name for node in nodes], log_in)
    return {host: problem(result) if isinstance(result, InfoError) else None for host, result in results.items()}


def ssh(found: dict[str, Problem | None] | Problem | None) -> Finding:
    """Whether `node add` and `producer push` can log in to the nodes; None when that was not tried."""
    name = "ssh"
    if found is None:
        return skip(name, "not tried", "`nodewise doctor --ssh` logs in to every node")
    if isinstance(found, Problem):
        return found.as_finding(name)
    refused = {host: why for host, why in found.items() if why is not None}
    if refused:
        first = next(iter(refused.values()))
        what = f"{len(refused)} of {len(found)} logins failed ({_join_names(list(refused))}): {first.what}"
        return fail(name, what, first.remedy)
    return ok(name, f"logged in to {len(found)} of {len(found)} nodes") if found else skip(name, "no node is enrolled")


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
