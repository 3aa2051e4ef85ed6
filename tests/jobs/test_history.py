"""The speeds of jobs, written to the real service and read back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infosvc.shipping.bundle import catalog
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Kind, Producer, Role
from jobs.division import speed_history, start_history
from locality.program_names import speed_name, start_name


def test_speeds_are_known_per_program_and_batch(client: InfoClient) -> None:
    assert speed_history.recorded_speeds(client, "engine", 32) == {}

    for batch in (8, 32):
        speed_history.prepare(client, "engine", batch)
    speed_history.record(client, "engine", 32, {"a": 10.5, "b": 3})
    speed_history.record(client, "engine", 32, {"a": 11})

    assert speed_history.recorded_speeds(client, "engine", 32) == {"a": 11, "b": 3}
    assert speed_history.recorded_speeds(client, "engine", 8) == {}
    assert speed_history.recorded_speeds(client, "other", 32) == {}


def test_what_is_no_speed_is_not_taken_for_one(client: InfoClient) -> None:
    speed_history.prepare(client, "engine", 32)
    odd = {"a": "-1", "b": "0", "c": "fast", "d": "2.5"}
    for node, said in odd.items():
        client.put_value(speed_name("engine", 32), node, said)

    assert speed_history.recorded_speeds(client, "engine", 32) == {"d": 2.5}


def test_every_job_in_a_row_is_a_point_of_the_history(client: InfoClient) -> None:
    _, text = client.create_token("job", Role.PROCESSOR)
    for node in ("a", "b"):
        client.put_node(node, "127.0.0.1:9")
    speed_history.prepare(client, "engine", 32)
    with InfoClient(client.url, text) as job:
        for speed in (10.5, 11, 11):
            speed_history.record(job, "engine", 32, {"a": speed, "b": 2 * speed})

    kept = client.history(speed_name("engine", 32), "a").points
    assert [float(speed) for _, speed in kept] == [10.5, 11, 11]
    assert [at for at, _ in kept] == sorted(at for at, _ in kept)


def test_a_node_that_nobody_enrolled_costs_the_others_no_history(client: InfoClient) -> None:
    _, text = client.create_token("job", Role.PROCESSOR)
    client.put_node("b", "127.0.0.1:9")
    speed_history.prepare(client, "engine", 32)
    with InfoClient(client.url, text) as job, pytest.raises(NotFound, match="nodewise node add a"):
        speed_history.record(job, "engine", 32, {"a": 5, "b": 7})

    assert speed_history.recorded_speeds(client, "engine", 32) == {"b": 7}


def test_to_prepare_again_changes_nothing(client: InfoClient) -> None:
    speed_history.prepare(client, "engine", 32)
    name = speed_name("engine", 32)
    changed = client.put_producer(replace(client.producer(name), help="mine"))

    speed_history.prepare(client, "engine", 32)

    assert client.producer(name) == changed


def test_without_being_prepared_nothing_is_recorded(client: InfoClient) -> None:
    with pytest.raises(NotFound, match="engine:32"):
        speed_history.record(client, "engine", 32, {"a": 1})


def test_how_long_a_program_takes_to_load_is_known_of_each_node_by_those_that_have_loaded_it(
    client: InfoClient,
) -> None:
    nodes = ["a", "b", "c", "d"]
    assert start_history.recorded_starts(client, "engine", nodes) == {}
    start_history.record(client, "engine", {"a": 1.0})  # nothing was prepared
    start_history.prepare(client, "engine")
    assert start_history.recorded_starts(client, "engine", nodes) == {}

    start_history.record(client, "engine", {"a": 1.0, "b": 2.0, "c": 9.0, "gone": 60.0})

    assert start_history.recorded_starts(client, "engine", nodes) == {"a": 1.0, "b": 2.0, "c": 9.0, "d": 2.0}
    assert client.producer(start_name("engine")).unit == "second"


def test_who_may_not_register_a_name_submits_without_it(client: InfoClient) -> None:
    _, text = client.create_token("reader", Role.READER)

    with InfoClient(client.url, text) as reader:
        start_history.prepare(reader, "engine")

    with pytest.raises(NotFound):
        client.producer(start_name("engine"))


def test_what_a_job_registers_is_what_ships_for_alexnet(client: InfoClient) -> None:
    speed_history.prepare(client, "mxnet_alexnet", 32)
    name = speed_name("mxnet_alexnet", 32)
    registered = client.producer(name)
    [shipped] = [entry.producer for entry in catalog() if entry.producer.data_name == name]

    assert registered.kind is shipped.kind is Kind.PROGRAM
    assert (registered.keep, registered.ttl, registered.unit, registered.help) == (
        shipped.keep,
        shipped.ttl,
        shipped.unit,
        shipped.help,
    )


def test_speeds_under_a_former_name_count_where_there_are_no_newer_ones(client: InfoClient) -> None:
    former = "images_per_second:mxnet_alexnet:32"
    client.put_producer(Producer(former, "", 60, kind=Kind.PROGRAM))
    client.put_value(former, "a", 10)
    client.put_value(former, "b", 20)
    speed_history.prepare(client, "mxnet_alexnet", 32)
    speed_history.record(client, "mxnet.alexnet", 32, {"b": 25})

    for name in ("mxnet.alexnet", "mxnet_alexnet"):
        assert speed_history.recorded_speeds(client, name, 32) == {"a": 10, "b": 25}
    assert speed_history.recorded_speeds(client, "onnx.alexnet", 32) == {}
