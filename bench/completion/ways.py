"""The ways to place tasks: most of them differ only in the file by which YARN orders nodes."""

from __future__ import annotations

from bench.lab import MASTER
from bench.paper.stage import CONF, Stage

POLICY = f"{CONF}/nodewise-policy.properties"
DICE = "bench_dice"
"""A value of every node that is drawn anew before each task."""
STOCK, FLOOR, RANDOM, PRESSURE, LEARNED, DOCKER = "stock", "stock again", "random", "pressure", "learned", "docker run"
_PRESSURE = "first.score = cpu_free_ratio higher 0..1; memory_available_bytes higher 0..3e9"
RULES = {
    RANDOM: (f"first.score = {DICE} higher 0..1", "first.near = 0.001", "first.herd = 0"),
    PRESSURE: (_PRESSURE,),
    LEARNED: (
        _PRESSURE,
        "program.score = training_speed:{program} higher 0..1 missing neutral; cpu_free_ratio higher 0..0.25",
        "program.combine = product",
    ),
}
"""Lines of that file. The last are the rule "expected speed" as docs/tasks.md has it."""
WAYS = (STOCK, RANDOM, PRESSURE, LEARNED, DOCKER, FLOOR)


def arrange(stage: Stage, way: str, settings: str) -> None:
    """Let YARN place in this way from now on; `settings` are the lines of the file that are not rules.

    The ResourceManager starts anew for each way of YARN's, so that all begin alike.
    """
    if way in RULES:
        stage.write(MASTER, POLICY, "\n".join([settings, *RULES[way], ""]))
    if way != DOCKER:
        stage.place_by_values(way in RULES)


def read_settings(text: str) -> str:
    """The lines of the file that say how the service is reached.

    >>> read_settings("# how\\nservice.url = https://master:8400\\nfirst.score = load_1m lower 0..4\\n")
    'service.url = https://master:8400'
    """
    return "\n".join(line for line in text.splitlines() if line.startswith("service."))
