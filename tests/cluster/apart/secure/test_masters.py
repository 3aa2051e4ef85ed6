"""Masters of a cluster with Kerberos that are killed, that stand still, that are stopped: what goes on, and what stays.

A job runs through the first of it, and work of every kind through one of two failovers: all at once would be more
masters of jobs than YARN starts on so few nodes. The last test stops the cluster, as it is not needed any more.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bench.docker_here import DockerHere
from bench.stage import START_SECONDS
from hadoop.local import daemons, health, lifecycle, processes
from hadoop.local.lifecycle import Cluster
from tests.cluster.apart.secure.images import add_image, add_image_of_environment
from tests.cluster.apart.secure.place import LOADED, OUTLIVING, PICTURES, Command, Place, see_at_work
from tests.cluster.apart.secure.scripts import PAGES, SAY
from tests.cluster.apart.secure.work import ARRAY, BATCH, MEMBERS, STEPS, TRAINING, Work, start_work
from tests.cluster.hadoop_scripts import Scripts
from tests.cluster.node_docker import docker_of
from tests.cluster.site import succeed, until
from tests.learning.results import EXACT, differ, train_alone

Eventually = Callable[..., None]
BOTH = ("resourcemanager", "namenode")


@pytest.fixture(scope="module")
def job(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """A job that has begun, and outlives its tokens while masters end."""
    place.whole()
    copy = tmp_path_factory.mktemp("job") / "tokens"
    with place.start_using(copy, OUTLIVING) as command:
        until(copy.exists)
        yield command


@pytest.fixture
def docker(place: Place, environment: Any) -> Iterator[DockerHere]:
    """Docker that stands still, so that a task waits for its image, which HDFS has, until a test lets it go on."""
    with docker_of(place.cluster) as made:
        add_image_of_environment(place, made, add_image(place, made))
        made.forget_image()
        made.dockerd.send_signal(signal.SIGSTOP)
        try:
            yield made
        finally:
            made.dockerd.send_signal(signal.SIGCONT)


@pytest.fixture
def work(service: Place, docker: DockerHere, alice: Scripts, tmp_path: Path) -> Iterator[Work]:
    """Work that has begun, and goes on until a test lets it end."""
    begun = start_work(service, alice, tmp_path)
    try:
        yield begun
    finally:
        begun.go.touch()
        begun.bob.close()


@pytest.fixture
def commands() -> Iterator[ExitStack]:
    """Commands that go on, and end with the test at the latest."""
    with ExitStack() as stack:
        yield stack


def kill_both(place: Place) -> dict[str, str]:
    """Kill the master of each kind that is active; on which machine each was."""
    before = {kind: place.active(kind) for kind in BOTH}
    for kind in BOTH:
        place.process(kind, before[kind]).kill()
    return before


def has_plan(place: Place) -> bool:
    """Whether the job that classifies has divided its pictures, which it keeps in HDFS."""
    jobs = [job for job, tags in place.jobs("RUNNING").items() if "kind=classify" in tags]
    kept = [f"{place.namenode()}/webhdfs/v1/user/alice/.nodewise/decisions/{job}.json?op=GETFILESTATUS" for job in jobs]
    return any(place.page(url, "alice")[0] == 200 for url in kept)


@pytest.mark.usefixtures("job", "environment")
def test_all_goes_on_when_both_active_masters_are_killed(service: Place, alice: Scripts, commands: ExitStack) -> None:
    listed = [PICTURES, sorted(service.cluster.nodes)]
    assert alice.find(PAGES, folder=LOADED) == listed
    classifying = commands.enter_context(service.start_classifying("hdfs:///user/alice/through"))
    until(lambda: has_plan(service))
    before = kill_both(service)
    begun = time.monotonic()

    # From the first moment on, while nobody has taken over yet.
    assert classifying.process.poll() is None
    words = ("env", "make", "other", "--version", "1", "--package", "packaging==26.4", "--json")
    making = commands.enter_context(service.start(*words))
    warming = commands.enter_context(service.start("env", "warm", "plain@1", "--all", "--json"))
    assert alice.find(PAGES, folder=LOADED) == listed
    assert service.load("hdfs://nodewise/user/alice/after_failover") == PICTURES
    print(f"pictures were loaded {time.monotonic() - begun:.1f} s after the masters were killed")
    for kind in BOTH:
        assert service.active(kind) == service.other_than(before[kind])
    assert alice.find(SAY)
    report = classifying.report()
    assert (report["images"], report["failures"]) == (PICTURES, [])
    assert warming.report()["nodes"], "those that have registered until then"
    assert making.report()["is_new"]
    found = service.well()
    for kind, name in zip(BOTH, ("yarn", "hdfs"), strict=True):
        assert f"//{service.other_than(before[kind])}:" in found[name]["what"]
    assert service.files_shown("/user/alice/after_failover") == PICTURES
    until(lambda: "jobs" in service.ask("/jobs"))  # which says meanwhile that Hadoop does not answer
    service.whole()
    until(lambda: [health.roles(service.cluster)[kind, before[kind]] for kind in BOTH] == ["standby", "standby"])


@pytest.mark.usefixtures("job")
def test_a_namenode_that_stands_still_is_replaced_and_ended(place: Place, eventually: Eventually) -> None:
    place.whole()
    before = place.active("namenode")
    frozen = place.process("namenode", before)
    frozen.send_signal(signal.SIGSTOP)
    begun = time.monotonic()

    assert place.load("hdfs://nodewise/user/alice/while_frozen") == PICTURES

    print(f"pictures were loaded {time.monotonic() - begun:.1f} s after the NameNode stood still")
    eventually(lambda: not processes.is_alive(frozen))
    assert place.active("namenode") == place.other_than(before)


@pytest.mark.usefixtures("job")
def test_a_node_is_added_while_the_others_go_on(place: Place) -> None:
    before = set(daemons.find_running(place.cluster).values())

    larger = lifecycle.up(place.cluster.home, nodes=3, ready_seconds=START_SECONDS)

    assert len({one.node for one in see_at_work(larger) if one.kind == "nodemanager"}) == 3
    assert before < set(daemons.find_running(larger).values())


def test_the_job_that_ran_meanwhile_ends_whole(job: Command) -> None:
    assert succeed(job.end())


def test_training_a_chain_and_an_array_go_on_when_both_are_killed_and_a_member_too(
    service: Place, docker: DockerHere, work: Work
) -> None:
    service.whole()
    until(work.is_running)
    before = kill_both(service)
    docker.dockerd.send_signal(signal.SIGCONT)
    work.lose_a_member()
    for kind in BOTH:
        assert service.active(kind) == service.other_than(before[kind])
    until(work.is_whole_again)
    until(lambda: work.members_told() == MEMBERS)
    work.go.touch()

    assert work.ended(work.chain) == [("succeeded", "", ""), ("succeeded", "", "the word\n")]
    module = "/opt/env/lib/python3.11/site-packages/packaging/__init__.py"
    assert work.ended(work.array) == [("succeeded", "", f"{number} {module}\n") for number in ARRAY]
    until(work.has_ended)
    ended = service.ask_command("train", "status", work.training)
    assert ended["final"] == "SUCCEEDED", ended["diagnostics"]
    told = service.ask_command("train", "report", TRAINING)
    killed = [one for one in told["losses"] if not one["why"].startswith("silent")]  # a machine that pauses has others
    assert (told["steps"], told["checkpoint"], len(killed)) == (STEPS, STEPS, 1)
    alone, found = train_alone(*BATCH), work.found_by_members()
    assert len(found) == MEMBERS and max(differ(one, alone) for one in found) < EXACT


def test_a_cluster_that_was_stopped_starts_again_with_its_data(place: Place) -> None:
    home = place.cluster.home
    before = lifecycle.load(home)
    lifecycle.down(home)

    assert processes.of_cluster(home, before.subnet) == []
    begun = time.monotonic()
    again = lifecycle.up(home, ready_seconds=START_SECONDS)
    print(f"ready again after {time.monotonic() - begun:.1f} s with {_resident_gb(again):.2f} GB")
    assert again == before
    status, text = place.page(f"{place.namenode()}/webhdfs/v1{LOADED}?op=LISTSTATUS", "alice")
    assert (status, text.count('"pathSuffix":"')) == (200, PICTURES), text
    lifecycle.down(home)


def _resident_gb(cluster: Cluster) -> float:
    return sum(process.memory_info().rss for process in daemons.find_running(cluster).values()) / 1e9
