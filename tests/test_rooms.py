"""The contracts between rooms: the tree keeps them, and a forbidden import in any direction breaks the right one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise, permutations, product
from pathlib import Path, PurePath
from typing import Any

import pytest

from tests.rooms import CONFIG, ROOT, floors

STACK = "Rooms stand above one another"
SERVICE = "The floors of the service"
WIRE = "Of the service, other rooms know only the wire"
ALONE = "The service imports only itself"
LOCALITY = "Locality knows nothing of ours"
BOXES = "Boxes know nothing of ours"
ENVIRONMENTS = "Environments know only HDFS"
LEARNING = "Learning knows only how work is divided"
HADOOP = "The floors of what speaks to Hadoop"
JOBS = "The floors of work on YARN"
ANY_KIND = "What runs any kind of job knows nothing of images"
KINDS = "No kind of job knows another"


# Importer, imported, and the contracts that stand against it.
FORBIDDEN = [
    ("locality.types", "hadoop.errors", {STACK, LOCALITY}),
    ("locality.types", "infosvc.wire.errors", {LOCALITY}),
    ("hadoop.errors", "jobs.errors", {STACK}),
    ("hadoop.errors", "infosvc.settings", {WIRE}),
    ("hadoop.errors", "boxes.box", {STACK}),
    ("boxes.box", "hadoop.errors", {STACK, BOXES}),
    ("boxes.box", "locality.types", {BOXES}),
    ("boxes.box", "infosvc.wire.errors", {BOXES}),
    ("boxes.box", "environments.errors", {STACK, BOXES}),
    ("environments.errors", "boxes.box", {ENVIRONMENTS}),
    ("environments.errors", "jobs.errors", {STACK, ENVIRONMENTS}),
    ("environments.errors", "infosvc.wire.errors", {ENVIRONMENTS}),
    ("hadoop.errors", "environments.errors", {STACK}),
    ("infosvc.settings", "boxes.box", {ALONE}),
    ("infosvc.settings", "learning.errors", {ALONE}),
    ("locality.types", "learning.errors", {STACK, LOCALITY}),
    ("learning.errors", "hadoop.errors", {STACK, LEARNING}),
    ("learning.errors", "infosvc.wire.errors", {LEARNING}),
    ("collectors.peers", "jobs.errors", {STACK}),
    ("collectors.peers", "infosvc.shipping.bundle", {WIRE}),
    ("jobs.errors", "collectors.peers", {STACK}),
    ("jobs.errors", "nodewise.front_door", {STACK}),
    ("jobs.errors", "infosvc.state.configuration", {WIRE}),
    ("infosvc.settings", "jobs.errors", {ALONE}),
    ("infosvc.settings", "collectors.peers", {ALONE}),
    ("infosvc.wire.errors", "infosvc.settings", {SERVICE}),
    ("infosvc.state.writer", "infosvc.http.server", {SERVICE}),
    ("infosvc.access.tokens", "infosvc.registration.rules", {SERVICE}),
    ("infosvc.data.values", "infosvc.core.service", {SERVICE}),
    ("infosvc.data.values", "infosvc.tasks.lifecycle", {SERVICE}),
    ("infosvc.tasks.lifecycle", "infosvc.tracking.runs", {SERVICE}),
    ("infosvc.http.app", "infosvc.commands.options", {SERVICE}),
    ("hadoop.client.yarn", "hadoop.local.state", {HADOOP}),
    ("jobs.errors", "jobs.commands.job.job_group", {JOBS}),
    ("jobs.application.submit", "jobs.itemwork.dealer", {JOBS}),
    ("jobs.itemwork.dealer", "jobs.kinds.classify.request", {JOBS}),
    ("jobs.application.submit", "jobs.engines.network", {ANY_KIND}),
    ("jobs.itemwork.dealer", "jobs.images.rows", {ANY_KIND}),
    ("jobs.kinds.command.request", "jobs.kinds.classify.request", {KINDS}),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of every Python file of the product, with the contracts."""
    for room in CONFIG["root_packages"]:
        for file in (ROOT / room).rglob("*.py"):
            if "target" not in file.parts:
                target = tmp_path / file.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


def forbidden(contract: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Who must not import whom: the next floor, the floor beside, or what the contract names."""
    if contract["type"] == "layers":
        layers = floors(contract)
        upwards = [pair for above, below in pairwise(layers) for pair in product(below, above)]
        return upwards + [pair for layer in layers for pair in permutations(layer, 2)]
    if contract["type"] == "independence":
        (group,) = (name.removesuffix(".*") for name in contract["modules"])
        beside = sorted(file.parent.name for file in (ROOT / group.replace(".", "/")).glob("*/__init__.py"))
        return [(f"{group}.{one}", f"{group}.{other}") for one, other in permutations(beside, 2)]
    service = next(one for one in CONFIG["contracts"] if one["name"] == SERVICE)
    hidden = [name for layer in floors(service)[:-1] for name in layer]
    named = [hidden if name == "infosvc.*" else [name] for name in contract["forbidden_modules"]]
    return list(product(contract["source_modules"], (one for names in named for one in names)))


def plant(tree: Path, importer: str, imported: str) -> None:
    """Write an import at the end of a module of the copy."""
    place = tree / importer.replace(".", "/")
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    file.write_text(f"{file.read_text()}\nimport {imported}\n")


def broken(tree: Path) -> dict[str, str]:
    """What the linter says of each contract that the copy breaks, by its name."""
    linter = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run(
        [linter], cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, capture_output=True, text=True, check=False
    )
    listed, _, said = ran.stdout.partition("\nBroken contracts\n")
    named = {found[1] for found in re.finditer(r"^(.+) BROKEN\b", listed, re.MULTILINE)}
    assert (ran.returncode == 0) == (not named), ran.stdout + ran.stderr
    found = re.split(r"^(.+)\n-+\n", said, flags=re.MULTILINE)
    return {name: text for name, text in zip(found[1::2], found[2::2], strict=True) if name in named}


def test_the_rooms_as_they_are_keep_every_contract(tree: Path) -> None:
    assert broken(tree) == {}


def test_a_forbidden_import_in_each_direction_breaks_its_contract(tree: Path) -> None:
    for importer, imported, _ in FORBIDDEN:
        plant(tree, importer, imported)
    said = broken(tree)

    assert set(said) == {contract["name"] for contract in CONFIG["contracts"]}
    for importer, imported, contracts in FORBIDDEN:
        for contract in contracts:
            assert f"{importer} -> {imported} " in said[contract], contract


def test_an_import_of_the_next_floor_or_of_any_room_that_a_contract_forbids_breaks_it(tree: Path) -> None:
    pairs = {contract["name"]: forbidden(contract) for contract in CONFIG["contracts"]}
    for importer, imported in {pair for some in pairs.values() for pair in some}:
        plant(tree, importer, imported)
    said = broken(tree)

    missed = {
        name: [pair for pair in some if f"{pair[0]} -> {pair[1]} " not in said.get(name, "")]
        for name, some in pairs.items()
    }
    assert {name: some for name, some in missed.items() if some or not pairs[name]} == {}
    assert {("collectors", "nodewise"), ("jobs", "collectors")} <= set(pairs[STACK])
    assert {("hadoop.rest", "hadoop.client"), ("hadoop.client", "hadoop.local")} <= set(pairs[HADOOP])
    assert {("infosvc.core", "infosvc.http"), ("infosvc.registration", "infosvc.posting")} <= set(pairs[SERVICE])
    assert {("jobs.kinds", "jobs.submitter"), ("jobs.worker", "jobs.training")} <= set(pairs[JOBS])
    assert ("jobs", "infosvc.http") in pairs[WIRE]


def graph_of(where: Path) -> dict[str, set[str]]:
    """Who imports whom in the product of a tree, imports that serve types alone included."""
    script = "import grimp, json, sys\ngraph = grimp.build_graph(*sys.argv[1:], cache_dir=None)\n"
    script += "print(json.dumps({one: sorted(graph.find_modules_directly_imported_by(one)) for one in graph.modules}))"
    found = subprocess.run(
        [sys.executable, "-c", script, *CONFIG["root_packages"]], cwd=where, capture_output=True, text=True, check=True
    )
    return {module: set(imported) for module, imported in json.loads(found.stdout).items()}


def circles(imports: Mapping[str, set[str]]) -> set[str]:
    """The modules that import themselves by way of others: what is left when all that end somewhere are taken off."""
    left = {module: set(imported) for module, imported in imports.items()}
    while ends := {module for module, imported in left.items() if not imported}:
        left = {module: imported - ends for module, imported in left.items() if module not in ends}
    behind = {module: {one for one, imported in left.items() if module in imported} for module in left}
    while starts := {module for module, importers in behind.items() if not importers}:
        behind = {module: importers - starts for module, importers in behind.items() if module not in starts}
    return set(behind)


def by_folder(where: Path, imports: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Which folder imports from which others; a folder within another is one of its own."""

    def folder(module: str) -> str:
        return module if (where / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]

    found: dict[str, set[str]] = {folder(module): set() for module in imports}
    for module, imported in imports.items():
        found[folder(module)] |= {folder(one) for one in imported} - {folder(module)}
    return found


def test_neither_modules_nor_folders_import_one_another_in_a_circle(tree: Path) -> None:
    imports = graph_of(tree)
    assert circles(imports) == set()
    assert circles(by_folder(tree, imports)) == set()


def test_a_circle_is_found_however_long_and_for_types_alone(tree: Path) -> None:
    plant(tree, "jobs.reports.report", "jobs.reports.pages")
    plant(tree, "infosvc.http.api.pages", "infosvc.http.sockets")
    file = tree / "locality" / "types.py"
    file.write_text(f"{file.read_text()}\nif TYPE_CHECKING:\n    import locality.bounds\n")

    imports = graph_of(tree)
    assert circles(by_folder(tree, imports)) == {
        "infosvc.http",
        "infosvc.http.api",
        "infosvc.http.api.alerts",
        "infosvc.http.api.tasks",
        "infosvc.http.api.tracking",
    }
    assert circles(imports) >= {
        "jobs.reports.report",
        "jobs.reports.timeline",
        "locality.types",
        "locality.bounds",
    }


ONLY_IN_THE_WIRE = ("DeadlineReader(", "HTTPSConnection(", "urlopen(")
"""What reads from others: `infosvc.wire.bounded_answer` does it once for all, within a time and a size."""


def test_answers_are_read_until_a_deadline_in_one_place() -> None:
    files = [file for room in CONFIG["root_packages"] for file in (ROOT / room).rglob("*.py")]
    elsewhere = [
        (file.relative_to(ROOT).as_posix(), word)
        for file in files
        if ROOT / "infosvc" / "wire" not in file.parents
        for word in ONLY_IN_THE_WIRE
        if word in file.read_text()
    ]
    assert elsewhere == []


SAME_NAME = {
    "__init__.py": "Python wants it in each package",
    "jobs/kinds/*/coordinator.py": "what each kind of job must have: its coordinator",
    "jobs/kinds/*/request.py": "what each kind of job has: what a user asks of it",
    "jobs/kinds/*/settings.py": "what each kind of job has: its options",
}
"""Files of one room that share a stem, with the reason."""


def stems(where: Path) -> dict[tuple[str, str], list[str]]:
    """The files of each room, a folder of a top-level package, by their name's stem."""
    found: dict[tuple[str, str], list[str]] = {}
    for package in CONFIG["root_packages"]:
        for file in sorted((where / package).rglob("*.py")):
            path = file.relative_to(where)
            if "target" not in path.parts:
                found.setdefault(("/".join(path.parts[:-1][:2]), file.stem), []).append(str(path))
    return found


def unreasoned(where: Path) -> set[str]:
    """The files that share their name's stem with others of their room, and are not among those that may."""
    shared = {file for files in stems(where).values() if len(files) > 1 for file in files}
    return {file for file in shared if not any(PurePath(file).match(pattern) for pattern in SAME_NAME)}


def test_no_two_modules_of_a_room_share_a_name_without_need(tree: Path) -> None:
    assert unreasoned(ROOT) == set()
    shared = [file for files in stems(ROOT).values() if len(files) > 1 for file in files]
    needed = {pattern for pattern in SAME_NAME if any(PurePath(file).match(pattern) for file in shared)}
    assert needed == set(SAME_NAME), "a reason for what is shared no more"

    planted = {"infosvc/http/api/server.py", "infosvc/http/settings.py", "infosvc/http/api/settings.py"}
    planted |= {"jobs/kinds/task/images/settings.py", "jobs/application/settings.py"}
    for path in planted:
        (tree / path).write_text("")
    assert unreasoned(tree) == planted - {"jobs/application/settings.py"} | {"infosvc/http/server.py"}


MOST_FILES = 20
CATALOGUES = ("collectors/scripts", "bench/results")
"""Folders of as many files as there are things to list."""


def crowded(where: Path) -> dict[str, int]:
    """The folders of the product and of its benches with more files side by side than a reader takes in at once."""
    folders = [
        folder for room in (*CONFIG["root_packages"], "bench") for folder in [where / room, *(where / room).rglob("*/")]
    ]
    counts = {}
    for folder in folders:
        name = folder.relative_to(where).as_posix()
        if not {"target", "__pycache__"} & set(folder.parts) and name not in CATALOGUES:
            counts[name] = sum(file.is_file() for file in folder.glob("*"))
    return {name: count for name, count in counts.items() if count > MOST_FILES}


def test_no_folder_has_more_files_than_one_sees_at_once(tree: Path) -> None:
    assert crowded(ROOT) == {}

    for number in range(MOST_FILES):
        (tree / "infosvc" / "http" / f"more_{number}.txt").write_text("")
    assert set(crowded(tree)) == {"infosvc/http"}
