"""What is one file and one line in a copy of this checkout, where it runs: a collector, a processor, a policy.

The command of a kind of job, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.infosvc.shipping.conftest import HOSTS, Sshd, answers, end_agents
from tests.jobs.decisions import NODES, decide
from tests.ports import free_port
from tests.recipes.checkout import Checkout
from tests.recipes.pages import block
from tests.recipes.shell import Shell, stop

CATALOGUE = "collectors/catalog.toml"
COMMAND_LIST = "JOB_COMMANDS = {"
COMMAND = """import click


@click.command()
@click.option("--to", type=int)
def count(to: int) -> None:
    \"\"\"Count.\"\"\"
    click.echo(f"counts to {to}")
"""
SERVICE = "127.0.0.1"
NODE = HOSTS[0]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


def until(condition: Callable[[], Any], seconds: float = 150) -> Any:
    """The first true answer."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.1)
    return found


def test_a_kind_s_command_is_a_file_and_a_line_and_is_imported_when_it_is_asked_for(
    checkout: Checkout, tmp_path: Path
) -> None:
    file, registry = "jobs/commands/job/job_count.py", "jobs/commands/job/job_group.py"
    checkout.write(file, COMMAND)
    checkout.add_line(registry, '"count": "jobs.commands.job.job_count:count",', below=COMMAND_LIST)
    assert checkout.changes() == [file, f'{registry}: +     "count": "jobs.commands.job.job_count:count",']
    shell = checkout.shell(tmp_path / "home")

    assert "counts to 7" in shell.run("nodewise job count --to 7")
    assert "count " in shell.run("nodewise job --help")
    kinds = "{'jobs.commands.job.job_count', 'jobs.commands.job.job_run'}"
    loaded = f"import sys, jobs.commands.job.job_group; print(set(sys.modules) & {kinds})"
    assert shell.run(f'python -c "{loaded}"').strip() == "set()"


@contextmanager
def enrolled(checkout: Checkout, place: Path) -> Iterator[Shell]:
    """A shell of the copy, whose service runs, and whose agent has been put on a machine with all that ships."""
    port = free_port(SERVICE)
    (place / "sshd").mkdir()
    shell = checkout.shell(place / "home", NODEWISE_URL=f"http://{SERVICE}:{port}")
    service = shell.start(f"exec nodewise serve --port {port}")
    try:
        with Sshd(place / "sshd", [NODE]) as sshd:
            ssh = sshd.options(place / "nodes")
            files = f"-F {ssh.ssh_config} --identity {ssh.identity} --known-hosts {ssh.known_hosts}"
            until(lambda: answers(SERVICE, port))
            shell.run(f"nodewise node add {files} --directory '{ssh.directory}' --port {ssh.agent_port} {NODE}")
            yield shell
    finally:
        end_agents(place / "nodes")
        stop(service)


def values(shell: Shell, *names: str) -> list[dict[str, Any]]:
    """The first values of some names on the machine that are all fresh, as their reader gets them."""

    def fresh() -> list[dict[str, Any]]:
        found = json.loads(shell.run(f"nodewise data get {' '.join(names)} --node {NODE} --json"))
        known = {one["data_name"]: one for one in found if one["state"] == "fresh"}
        return [known[name] for name in names] if len(known) == len(names) else []

    found: list[dict[str, Any]] = until(fresh)
    return found


def hold_to_the_catalogue(shell: Shell) -> None:
    """The tests that hold whatever ships as a collector or a processor hold in the copy, too."""
    said = shell.run("python -m pytest -q -p no:cacheprovider tests/collectors/test_catalog.py")
    assert "passed" in said


def test_a_collector_is_a_file_and_a_line_and_reports_its_value(checkout: Checkout, tmp_path: Path) -> None:
    script, line = "collectors/scripts/disk_waiting_processes.sh", block("collector-line").strip()
    checkout.write(script, block("collector"))
    (checkout.folder / script).chmod(0o755)
    checkout.add_line(CATALOGUE, line, below="[producer]")
    assert checkout.changes() == [f"{CATALOGUE}: + {line}", script]

    with enrolled(checkout, tmp_path) as shell:
        hold_to_the_catalogue(shell)
        [found] = values(shell, "disk_waiting_processes")

    assert int(found["data_value"]) >= 0
    assert (found["node_name"], found["unit"]) == (NODE, "processes")


def test_a_processor_is_a_file_and_a_line_and_makes_values_into_a_better_one(
    checkout: Checkout, tmp_path: Path
) -> None:
    program, line = "collectors/processors/perf_scarce.py", block("processor-line").strip()
    checkout.write(program, block("processor"))
    checkout.add_line(CATALOGUE, line, below="[producer]")
    assert checkout.changes() == [f"{CATALOGUE}: + {line}", program]

    with enrolled(checkout, tmp_path) as shell:
        hold_to_the_catalogue(shell)

        def fits() -> bool:
            """Memory may be taken or freed between the run that measures it and the run that reads it."""
            found = values(shell, "perf_scarce", "memory_available_bytes", "memory_total_bytes")
            scarce, available, total = (float(one["data_value"]) for one in found)
            assert 0.01 <= scarce <= 1.0
            return scarce <= available / total + 0.1

        until(fits)


def test_a_policy_is_a_file_and_a_line_and_plans(checkout: Checkout, tmp_path: Path) -> None:
    file, registry = "locality/policies/first_done.py", "locality/policies/__init__.py"
    checkout.write(file, block("policy"))
    checkout.add_line(registry, block("policy-line"), below="POLICIES = by_name(")
    assert checkout.changes() == [f"{registry}: +     {block('policy-line').strip()}", file]
    decision = decide("maxflow")
    (tmp_path / "decision.json").write_bytes(decision.to_bytes())

    said = checkout.shell(tmp_path / "home").run(f"nodewise locality replay {tmp_path}/decision.json --json")

    plans = {plan["policy"]: plan for plan in json.loads(said)["plans"]}
    ours, first_holder = plans["first_done"], plans["local_only"]
    assert (ours["bytes_moved"], ours["locality_ratio"]) == (0, 1.0)
    assert set(ours["images"]) == set(NODES) and sum(ours["images"].values()) == decision.items
    assert ours["images"]["gamma"] > first_holder["images"]["gamma"], "the fastest node gets what it also holds"
    assert ours["makespan"] < first_holder["makespan"]


def test_whatever_else_changed_in_a_copy_would_be_found(checkout: Checkout) -> None:
    assert checkout.changes() == []

    checkout.write("jobs/kinds/count/__init__.py", "")
    checkout.write("jobs/kinds/count/runner.py", "")
    checkout.write("jobs/kinds/classify/more.py", "")
    checkout.add_line("jobs/kinds/__init__.py", "import count", below="from jobs.errors import JobError")
    (checkout.folder / "jobs" / "errors.py").unlink()
    readme = checkout.folder / "README.md"
    first, rest = readme.read_text().split("\n", maxsplit=1)
    readme.write_text(rest)

    assert checkout.changes() == [
        f"README.md: - {first}",
        "gone: jobs/errors.py",
        "jobs/kinds/__init__.py: + import count",
        "jobs/kinds/classify/more.py",
        "jobs/kinds/count",
    ]
