"""What is written in one place of the product, and what never stands in some."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from hadoop.rest.default_ports import DEFAULT_PORTS
from tests.rooms import PRODUCT, ROOT
from tests.sources import not_allowed, texts, without_docstrings

PORT = re.compile(rf"(?<!\d)({'|'.join(str(port) for port in DEFAULT_PORTS.values())})(?!\d)")
PORT_ALLOWED = {
    "collectors/processors/rack_name.py": "an example of an address, in a message",
    "jobs/application/status.py": "an example of an address, in the description of the REST calls",
}

HADOOP_PATH = re.compile(r"/jmx|/ws/v1|/webhdfs")
HADOOP_PATH_ALLOWED = {
    "collectors/processors/rack_name.py": "a processor imports the wire and locality only",
    "hadoop/local/kerberos/folders.py": "curl asks for them, with a ticket of whoever runs the cluster",
    "jobs/itemwork/results/output.py": "a link to a page, for a browser",
}

CONNECTION_ALLOWED = {
    "boxes/broker/engine.py": "to Docker, by a socket of this machine; boxes know nothing of ours",
    "jobs/kinds/train/launcher.py": "to the application master, which is ours: its last word",
    "jobs/worker/master.py": "to the application master, which is ours: one connection for all calls",
    "learning/lead/master.py": "to the application master; learning knows nothing of the service",
}

NETWORK = re.compile(r"alexnet|(?<!\d)224(?!\d)", re.IGNORECASE)
NETWORK_ALLOWED = {
    "collectors/catalog.toml": "the data name of its recorded speeds",
    "collectors/processors/perf_history.py": "an example of a data name, in a message",
    "jobs/commands/job/job_train.py": "it teaches this network, and says so in its help",
    "jobs/commands/job/train_on_members.py": "it submits the program that teaches this network",
    "jobs/dashboard/answers.py": "an example in the description of the REST calls",
    "jobs/dashboard/inference.py": "an example in the description of the REST calls",
    "jobs/dashboard/pool_answers.py": "an example in the description of the REST calls",
    "jobs/engines/network.py": "the table of networks by their names",
    "jobs/images/preparation.py": "224 pixels are the usual size of ImageNet's networks",
    "jobs/kinds/train/alexnet/": "the program that teaches this network on several nodes",
    "jobs/reports/report.py": "an example in the description of the REST calls",
    "jobs/training_data/images.py": "224 pixels are the usual size of ImageNet's networks",
    "locality/program_names.py": "former names of engines, by which speeds are still recorded",
}

IMAGES = re.compile(r"image|picture", re.IGNORECASE)
IMAGES_ALLOWED = {
    "jobs/application/coordinator.py": "an example of a unit",
    "jobs/application/environments/laid.py": "images of containers",
    "jobs/application/status.py": "names in JSON of when there was one kind of job",
    "jobs/application/submit.py": "an example of many small files",
    "locality/program_names.py": "data names of recorded speeds",
    "locality/types.py": "a name that users' own policies may still read",
}

DECLARED_AGAIN = {
    "--capability": (5, "of items, copies and members, each with its default; a plan and a replay take several"),
    "--capability-wait": (2, "a plan without a job waits, too"),
    "--cold-start": (2, "items and members have other defaults"),
    "--env": (3, "of workers, of members, and what an image is made of"),
    "--file": (2, "of copies and of members"),
    "--gpus": (2, "of a container, and of the nodes of a cluster on this machine"),
    "--input": (2, "a folder of items, which are images where a job classifies"),
    "--labels": (2, "the classes of a network, and those of images to learn"),
    "--members": (3, "of a run, of a run on this machine, and of one that teaches AlexNet"),
    "--memory": (4, "of items, copies and members, each with its default, and of members with AlexNet"),
    "--model": (2, "of a job, and what is quantized"),
    "--nodes": (2, "of a pool, and of a cluster on this machine"),
    "--output": (2, "must not exist yet for items, and may for members"),
    "--policy": (3, "one for a job; a plan and a replay take several"),
    "--queue": (2, "of a job, and of what lays environments out"),
    "--restarts": (2, "copies and members have other defaults"),
    "--sync": (2, "of a run, and of a run on this machine"),
    "--vcores": (3, "of items, copies and members"),
    "--weights": (3, "of a job, what is learned, and what is quantized"),
    "--worker-python": (5, "of items, images and members, and of what runs on this machine"),
}
"""Options of jobs that are declared more than once: how often, and why."""


def holding(pattern: re.Pattern[str], files: dict[str, str]) -> set[str]:
    """The sources in whose code a pattern occurs; docstrings and comments may tell of anything."""
    likely = {path: text for path, text in files.items() if pattern.search(text)}
    return {path for path, text in likely.items() if pattern.search(ast.unparse(without_docstrings(text)))}


def called(node: ast.expr) -> str:
    """The last word of a name, such as that of a class."""
    return ast.unparse(node).rpartition(".")[2]


def connecting(files: dict[str, str]) -> set[str]:
    """The sources that make a plain connection over HTTP, or a kind of one."""
    found = set()
    for path, text in files.items():
        if "HTTPConnection" in text:
            nodes = list(ast.walk(ast.parse(text)))
            names = [called(node.func) for node in nodes if isinstance(node, ast.Call)]
            names += [called(base) for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases]
            found |= {path} if "HTTPConnection" in names else set()
    return found


def reading_the_context(files: dict[str, str]) -> set[str]:
    """The sources that use the store of click's context."""
    return {
        path
        for path, text in files.items()
        if "meta" in text and "click" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "meta"
    }


def flag_of_field(call: ast.Call, field: str) -> str:
    """The name on the command line that a field of a job's settings has."""
    given = [str(ast.literal_eval(word.value)) for word in call.keywords if word.arg == "flag"]
    return given[0] if given else f"--{field.replace('_', '-')}"


def flag_of_click(call: ast.Call) -> str:
    """The long name of an option of click; "" where it has none."""
    words = [one.value for arg in call.args for one in ast.walk(arg) if isinstance(one, ast.Constant)]
    return next((str(word).partition("/")[0] for word in words if str(word).startswith("--")), "")


def declarations(text: str) -> Iterator[tuple[str, str]]:
    """`option` for a field of a job's settings or `click.option`, and its name, for each option of a source."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call):
            if ast.unparse(node.value.func) == "option":
                yield "option", flag_of_field(node.value, ast.unparse(node.target))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.option", "click.Option"):
            yield "click.option", flag_of_click(node)


def declared_again(files: dict[str, str]) -> dict[str, int]:
    """How often each option of a job's settings is declared, for those that are declared more than once."""
    found = [one for text in files.values() if "option(" in text.lower() for one in declarations(text)]
    of_jobs = {name for kind, name in found if kind == "option"}
    times = Counter(name for _, name in found if name in of_jobs)
    return {name: count for name, count in times.items() if count > 1}


@pytest.fixture(scope="module")
def product() -> dict[str, str]:
    """The sources of the product by their paths."""
    return texts(*PRODUCT)


def test_default_ports_of_hadoop_are_written_once(product: dict[str, str]) -> None:
    assert not_allowed(holding(PORT, product), PORT_ALLOWED, ["hadoop/rest/default_ports.py"]) == set()


def test_paths_of_hadoops_pages_are_known_to_one_folder(product: dict[str, str]) -> None:
    assert not_allowed(holding(HADOOP_PATH, product), HADOOP_PATH_ALLOWED, ["hadoop/rest/"]) == set()


def test_http_is_served_in_one_place_and_asked_in_few(product: dict[str, str]) -> None:
    serving = holding(re.compile("BaseHTTPRequestHandler|HTTPServer"), product)

    assert not_allowed(serving, {}, ["infosvc/wire/"]) == set()
    assert not_allowed(connecting(product), CONNECTION_ALLOWED, ["infosvc/wire/"]) == set()


def test_commands_hand_nothing_on_by_the_store_of_their_context(product: dict[str, str]) -> None:
    assert reading_the_context(product) == set()


def test_one_network_is_known_to_few_beside_its_own_file(product: dict[str, str]) -> None:
    catalogue = ROOT / "collectors" / "catalog.toml"
    found = holding(NETWORK, product) | (
        {"collectors/catalog.toml"} if NETWORK.search(catalogue.read_text()) else set()
    )

    assert not_allowed(found, NETWORK_ALLOWED, ["jobs/engines/alexnet.py"]) == set()


def test_what_divides_work_and_what_runs_any_kind_of_job_say_nothing_of_images() -> None:
    found = {path for path, text in texts("locality", "jobs/application").items() if IMAGES.search(text)}

    assert not_allowed(found, IMAGES_ALLOWED) == set()


def test_each_option_of_a_job_is_declared_once(product: dict[str, str]) -> None:
    assert declared_again(product) == {name: count for name, (count, _) in DECLARED_AGAIN.items()}


def test_what_is_written_elsewhere_would_be_found() -> None:
    planted = {
        "a.py": "'''On port 9870, see /jmx.'''\nx: int = 1\n'''Of AlexNet.'''\n",  # words for readers
        "b.py": "address = f'{host}:8020/ws/v1/cluster'",
        "c.py": "import http.client as h\nclass One(h.HTTPConnection): pass\ndef show(c: h.HTTPConnection): ...",
        "d.py": "from http.client import HTTPConnection\ndef show(c: HTTPConnection): ...",
        "e.py": "import click\nclick.get_current_context().meta['x'] = ImageInput(224, 224)",
        "f.py": "import click\nclass A:\n    most_jobs: int = option(1, flag='--jobs')\n    idle: str = option('')\n",
        "g.py": "import click\n@click.option('--jobs/--no-jobs')\n@click.option('--json')\ndef go(): ...",
        "h.py": "import click\nIDLE = click.Option(['-i', '--idle'])",
    }

    assert holding(PORT, planted) == holding(HADOOP_PATH, planted) == {"b.py"}
    assert connecting(planted) == {"c.py"}
    assert reading_the_context(planted) == holding(NETWORK, planted) == {"e.py"}
    assert declared_again(planted) == {"--jobs": 2, "--idle": 2}


def test_a_reason_for_what_is_there_no_more_would_be_found() -> None:
    allowed = {"a/": "a folder", "b.py": "a file", "gone.py": "a file of before"}

    assert not_allowed({"a/one.py", "b.py", "c.py", "home/d.py"}, allowed, ["home/"]) == {"c.py", "gone.py"}
