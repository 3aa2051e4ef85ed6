"""In each of four turns another node is the best, by a value that is put by hand: who goes there, with nobody busy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from bench.background.scene import APPLICATIONS, turn
from bench.distributed_shell import first_order
from bench.stage import CAPABILITY, Stage, until
from hadoop.local import site

POLICY = """
service.url = {url}
first.score = {name} higher 0..1
first.herd = 0.001
first.room.memory-mb = 256
"""
STEPS = 30_000_000
"""Some seconds of work, so that containers are seen."""

Followed = Mapping[str, list[bool]]
"""Of each application, for each turn, whether the best node has got its only container."""


def measure_followed(made: Stage, on: bool) -> Followed:
    """With the plug-in or without; the policy stays."""
    (made.cluster.conf_dir / site.POLICY_FILE).write_text(POLICY.format(url=made.url, name=CAPABILITY))
    made.judge([0.5] * made.cluster.size)  # of a name that nobody knows there would be no order
    turn(made, on)
    found: dict[str, list[bool]] = {name: [] for name in APPLICATIONS}
    for best in made.cluster.nodes:
        made.judge([0.9 if node == best else 0.1 for node in made.cluster.nodes])
        if on:
            until(partial(_comes_first, made, best), 30, f"{best} comes first")
        for name, application in APPLICATIONS.items():
            found[name].append(set(application(made, 1, STEPS)) == {best})
    return found


def _comes_first(made: Stage, node: str) -> bool:
    first: str = first_order(made.cluster)["First"][0]
    return first.startswith(node)
