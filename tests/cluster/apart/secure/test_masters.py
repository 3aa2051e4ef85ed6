"""Masters of a cluster with Kerberos that are killed, that stand still, that are stopped: what goes on, and what stays.

A job runs through all of it but the stop. The last test stops the cluster, as it is not needed any more.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import pytest

from bench.stage import START_SECONDS
from hadoop.local import daemons, health, lifecycle, processes
from hadoop.local.lifecycle import Cluster
from tests.cluster.apart.secure.place import LOADED, OUTLIVING, PICTURES, Command, Place, see_at_work
from tests.cluster.apart.secure.scripts import PAGES, SAY
from tests.cluster.hadoop_scripts import Scripts
from tests.cluster.site import succeed, until

Eventually = Callable[..., None]
BOTH = ("resourcemanager", "namenode")


@pytest.fixture(scope="module")
def job(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """A job that has begun, and outlives its tokens while masters end."""
    place.whole()
    copy = tmp_path_factory.mktemp("job") / "tokens"
    command = place.start_using(copy, OUTLIVING)
    try:
        until(copy.exists)
        yield command
    finally:
        command.process.kill()
        command.end()


@pytest.mark.usefixtures("job")
def test_all_goes_on_when_both_active_masters_are_killed(service: Place, alice: Scripts) -> None:
    listed = [PICTURES, sorted(service.cluster.nodes)]
    assert alice.find(PAGES, folder=LOADED) == listed

    before = {kind: service.active(kind) for kind in BOTH}
    for kind in BOTH:
        service.process(kind, before[kind]).kill()
    begun = time.monotonic()

    # From the first moment on, while nobody has taken over yet.
    assert alice.find(PAGES, folder=LOADED) == listed
    assert service.load("hdfs://nodewise/user/alice/after_failover") == PICTURES
    print(f"pictures were loaded {time.monotonic() - begun:.1f} s after the masters were killed")
    for kind in BOTH:
        assert service.active(kind) == service.other_than(before[kind])
    assert alice.find(SAY)
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
