"""The distribution of blocks in the real service: what stands there, for how long, and what a failure does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace

import pyarrow as pa
import pytest

from hadoop.client.arrow_table import SCHEMA, from_files
from hadoop.client.blocks import StoredBlock, StoredFile
from hadoop.client.listing import Stamp, Summary
from hadoop.client.snapshots import Folder, Snapshot
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Unreachable
from infosvc.wire.records import LONGEST_VALUE
from jobs.commands.locality import locality_blocks
from jobs.commands.locality.locality_blocks import Publisher
from jobs.division import publishing
from jobs.division.distribution import NodeShare
from jobs.errors import JobError

TTL_SECONDS = 1800.0


def share(node: str) -> NodeShare:
    return NodeShare(node, "/r1", 3, 7, 2, 1.0, 0)


def snapshot() -> Snapshot:
    file = StoredFile("/a/1", 5, (StoredBlock(0, 5, ("n1",)),))
    table = pa.Table.from_batches([from_files([file])], SCHEMA)
    folder = Folder(Stamp(7, 1000), "d1", 1, 5, 5, 1, (), True)
    return Snapshot("/a", 12.5, Summary(1, 1, 5, 5), {"n1": "/r1", "n2": "/r1"}, {"/a": folder}, table)


def values(client: InfoClient) -> dict[str, dict[str, dict[str, int]]]:
    return {datum.node_name: json.loads(datum.data_value or "") for datum in client.data(publishing.DATA_NAME)}


@pytest.fixture
def service(client: InfoClient) -> InfoClient:
    """It knows the data name and n1."""
    publishing.prepare(client)
    client.put_node("n1", "127.0.0.1:8410")
    return client


def test_each_path_tells_when_it_was_published_and_goes_when_it_is_older_than_the_ttl(
    service: InfoClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now, path in ((10_000.7, "/a"), (11_000.0, "/b"), (11_900.0, "/c")):
        monkeypatch.setattr(publishing, "time", SimpleNamespace(time=lambda now=now: now))
        publishing.publish(service, path, [share("n1")], ["n1"], TTL_SECONDS)

    assert values(service) == {
        "n1": {
            "/b": {"blocks": 3, "bytes": 7, "published_at": 11_000},
            "/c": {"blocks": 3, "bytes": 7, "published_at": 11_900},
        }
    }


@pytest.mark.parametrize("old", ["no JSON", "[1]", '{"/a": 5}', '{"/a": {"blocks": 1, "bytes": 1}}'])
def test_a_value_in_another_form_is_replaced(service: InfoClient, old: str) -> None:
    service.put_value(publishing.DATA_NAME, "n1", old)

    publishing.publish(service, "/b", [], ["n1"], TTL_SECONDS)

    assert list(values(service)["n1"]) == ["/b"]


def test_a_value_that_the_service_would_not_take_is_refused_before_any_is_written(service: InfoClient) -> None:
    assert publishing.MOST_BYTES == LONGEST_VALUE
    long = "/" + "x" * (LONGEST_VALUE - 100)
    publishing.publish(service, long, [share("n1")], ["n1"], TTL_SECONDS)

    with pytest.raises(JobError, match=r"block_distribution of n1 would have .*publish a folder above"):
        publishing.publish(service, "/" + "y" * 100, [share("n1")], ["n0", "n1"], TTL_SECONDS)

    assert [list(paths) for paths in values(service).values()] == [[long]]


def test_to_publish_more_seldom_than_a_value_stays_fresh_is_refused(service: InfoClient) -> None:
    assert publishing.lifetime_seconds(service, TTL_SECONDS) == TTL_SECONDS

    with pytest.raises(JobError, match=r"--every 1801 .* at most 1800"):
        publishing.lifetime_seconds(service, TTL_SECONDS + 1)


def test_a_node_that_is_enrolled_later_gets_its_value_at_the_next_look(service: InfoClient) -> None:
    publisher = Publisher(service, TTL_SECONDS)
    publisher.step(snapshot(), now=0.0)
    assert set(values(service)) == {"n1"}

    service.put_node("n2", "127.0.0.1:8411")
    publisher.step(snapshot(), now=1.0)

    assert set(values(service)) == {"n1", "n2"}


def test_what_did_not_change_is_written_again_before_it_is_stale_and_not_sooner(service: InfoClient) -> None:
    publisher = Publisher(service, TTL_SECONDS)
    written = []
    for now in (0.0, 599.0, 601.0):
        publisher.step(snapshot(), now)
        written.append(set(values(service)))
        if written[-1]:
            service.delete_value(publishing.DATA_NAME, "n1")

    assert written == [{"n1"}, set(), {"n1"}]


def test_a_failure_is_said_once_and_does_not_end_the_loop(
    service: InfoClient, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes: Iterator[Exception | KeyboardInterrupt | None] = iter(
        [
            HadoopError("HDFS is away"),
            HadoopError("HDFS is still away"),
            Unreachable("the service is away"),
            None,
            KeyboardInterrupt(),
        ]
    )

    def looked() -> Snapshot:
        outcome = next(outcomes)
        if outcome:
            raise outcome
        return snapshot()

    locality_blocks._go_on(Publisher(service, TTL_SECONDS), looked, every=0.001)

    said = capsys.readouterr().err.replace("\n", " ")
    assert "HDFS is away; trying again" in said
    assert "still" not in said
    assert "the service is away; trying again" in said
    assert said.count("works again") == 1
    assert set(values(service)) == {"n1"}
