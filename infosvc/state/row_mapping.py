"""Between the tables and memory: what each row becomes, and what becomes of it. `shift` joins the two clocks."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Table

from infosvc.state import tables
from infosvc.state.configuration import (
    AlertState,
    Configuration,
    Delivery,
    Machine,
    SlotRequest,
    StoredAlert,
    StoredTask,
    StoredToken,
)
from infosvc.state.current_values import Cell
from infosvc.state.tracked import Experiment, Run, StoredRun
from infosvc.state.transaction import Key, Point
from infosvc.state.value import Value
from infosvc.wire.answers import Token
from infosvc.wire.records import Outcome, Producer
from infosvc.wire.tasks import Task

Row = dict[str, Any]

_v = tables.values.c
VALUE_COLUMNS = (
    _v.data_name,
    _v.node_name,
    _v.data_value,
    _v.updated_at,
    _v.outcome,
    _v.reason,
    _v.ran_at,
    _v.duration,
    _v.skipped,
    _v.sequence,
)


def value_row(cell: Cell, value: Value, shift: float) -> tuple[Any, ...]:
    """One row of t_Data in the order of its columns; `shift` turns monotonic seconds into Unix seconds."""
    return (
        f"{cell[0]}@{cell[1]}",
        cell[0],
        value.text,
        cell[1],
        None if value.measured is None else value.measured + shift,
        value.outcome.value,
        value.reason,
        value.ran + shift,
        value.duration,
        value.skipped,
        value.sequence,
    )


def cell_id(cell: Cell) -> str:
    """The primary key of t_Data."""
    return "@".join(cell)


def read_value(row: Any, shift: float, now: float) -> tuple[Cell, Value]:
    """Inverse of `value_row`, of a row of VALUE_COLUMNS; `shift` turns Unix seconds into monotonic seconds.

    What would lie after `now`, because the clock was set back meanwhile, was true now at the latest.
    """
    name, node, text, measured, outcome, reason, ran, duration, skipped, sequence = row
    return (name, node), Value(
        text, past(measured, shift, now), Outcome(outcome), reason, min(ran + shift, now), duration, skipped, sequence
    )


def point_row(point: Point, shift: float) -> tuple[Any, ...]:
    """One row of t_History but its number."""
    return (point.data_name, point.node_name, point.measured + shift, point.text)


def shift_time(seconds: float | None, shift: float) -> float | None:
    """The same moment by the other clock."""
    return None if seconds is None else seconds + shift


def past(seconds: float | None, shift: float, now: float) -> float | None:
    """Convert a stored moment to the other clock; one after `now` becomes `now`."""
    return None if seconds is None else min(seconds + shift, now)


def place(configuration: Configuration, table: str, row: Row, shift: float, now: float) -> None:
    """Put a stored row into the configuration; `shift` turns Unix seconds into monotonic ones, at most `now`."""
    key, entry = TABLES[table].read(row, shift, now)
    table_rows = getattr(configuration, table)
    for part in key[:-1]:
        table_rows = table_rows.setdefault(part, {})
    table_rows[key[-1]] = entry


def _producer_row(_key: Key, producer: Producer, _shift: float) -> tuple[Any, ...]:
    fields = producer.to_json() | {"emits": json.dumps(producer.emits), "inputs": json.dumps(producer.inputs)}
    return tuple(fields[column.name] for column in tables.producers.columns)


def _read_producer(row: Row, _shift: float, _now: float) -> tuple[Key, Producer]:
    return (row["data_name"],), Producer.from_json(row)


def _node_row(key: Key, machine: Machine, shift: float) -> tuple[Any, ...]:
    return (
        key[0],
        machine.address,
        machine.agent_version,
        machine.version,
        shift_time(machine.seen, shift),
        machine.boot,
        machine.sequence,
        machine.dropped,
    )


def _read_node(row: Row, shift: float, now: float) -> tuple[Key, Machine]:
    return (row["node_name"],), Machine(
        row["address"],
        row["agent_version"],
        row["wanted_version"],
        past(row["last_seen"], shift, now),
        row["boot"],
        row["sequence"],
        row["dropped"],
    )


def _slot_row(key: Key, slot_request: SlotRequest, _shift: float) -> tuple[Any, ...]:
    return ("@".join(key), *key, slot_request.running, slot_request.interval, slot_request.epoch, slot_request.placed)


def _read_slot(row: Row, _shift: float, _now: float) -> tuple[Key, SlotRequest]:
    return (row["node_name"], row["data_name"]), SlotRequest(
        row["running"], row["interval"], row["epoch"], row["placed"]
    )


def _token_row(_key: Key, stored: StoredToken, _shift: float) -> tuple[Any, ...]:
    fields = stored.token.to_json() | {"sha256": stored.sha256}
    return tuple(fields[column.name] for column in tables.tokens.columns)


def _read_token(row: Row, _shift: float, _now: float) -> tuple[Key, StoredToken]:
    return (row["token_id"],), StoredToken(Token.from_json(row), row["sha256"])


def _task_row(_key: Key, stored: StoredTask, _shift: float) -> tuple[Any, ...]:
    fields = {one.name: getattr(stored.task, one.name) for one in dataclasses.fields(stored.task)}
    fields |= {"spec": msgspec.json.encode(stored.task.spec).decode(), "state": stored.task.state.value}
    return tuple(fields[column.name] for column in tables.tasks.columns)


def _read_task(row: Row, _shift: float, _now: float) -> tuple[Key, StoredTask]:
    task = Task.from_json(row | {"spec": json.loads(row["spec"])})
    return (task.task_id,), StoredTask(task, len(row["spec"].encode()))


def _number_row(key: Key, number: float, _shift: float) -> tuple[Any, ...]:
    return (*key, number)


def _read_gone(row: Row, _shift: float, _now: float) -> tuple[Key, float]:
    return (row["task_id"],), row["gone_at"]


def _alert_row(key: Key, alert: StoredAlert, _shift: float) -> tuple[Any, ...]:
    return (*key, *msgspec.structs.astuple(alert))


def _read_alert(row: Row, _shift: float, _now: float) -> tuple[Key, StoredAlert]:
    alert_id, *rest = (row[column.name] for column in tables.alerts.columns)
    return (alert_id,), StoredAlert(*rest)


def _alert_state_row(key: Key, state: AlertState, _shift: float) -> tuple[Any, ...]:
    return ("@".join(key), *key, *msgspec.structs.astuple(state))


def _read_alert_state(row: Row, _shift: float, _now: float) -> tuple[Key, AlertState]:
    _, alert_id, about, is_on, *rest = (row[column.name] for column in tables.alert_states.columns)
    return (alert_id, about), AlertState(bool(is_on), *rest)


def _delivery_row(key: Key, delivery: Delivery, _shift: float) -> tuple[Any, ...]:
    return (*key, *msgspec.structs.astuple(delivery))


def _read_delivery(row: Row, _shift: float, _now: float) -> tuple[Key, Delivery]:
    event_id, *rest = (row[column.name] for column in tables.deliveries.columns)
    return (event_id,), Delivery(*rest)


def _experiment_row(_key: Key, experiment: Experiment, _shift: float) -> tuple[Any, ...]:
    fields = msgspec.structs.asdict(experiment) | {"tags": json.dumps(experiment.tags)}
    return tuple(fields[column.name] for column in tables.experiments.columns)


def _read_experiment(row: Row, _shift: float, _now: float) -> tuple[Key, Experiment]:
    return (row["experiment_id"],), Experiment(**row | {"tags": json.loads(row["tags"])})


def _run_row(_key: Key, stored: StoredRun, _shift: float) -> tuple[Any, ...]:
    run = stored.run
    return run.run_id, run.owner, run.experiment_id, msgspec.json.encode(run).decode()


def _read_run(row: Row, _shift: float, _now: float) -> tuple[Key, StoredRun]:
    document = row["document"].encode()
    return (row["run_id"],), StoredRun(msgspec.json.decode(document, type=Run), len(document))


def _read_counter(row: Row, _shift: float, _now: float) -> tuple[Key, int]:
    return (row["name"],), row["value"]


class Mapping(NamedTuple):
    """A table and the two ways between its rows, in the order of its columns, and a field of Configuration."""

    model: Table
    row: Callable[[Key, Any, float], tuple[Any, ...]]
    read: Callable[[Row, float, float], tuple[Key, Any]]


TABLES: dict[str, Mapping] = {
    "producers": Mapping(tables.producers, _producer_row, _read_producer),
    "nodes": Mapping(tables.nodes, _node_row, _read_node),
    "slots": Mapping(tables.slots, _slot_row, _read_slot),
    "tokens": Mapping(tables.tokens, _token_row, _read_token),
    "tasks": Mapping(tables.tasks, _task_row, _read_task),
    "gone_tasks": Mapping(tables.gone_tasks, _number_row, _read_gone),
    "alerts": Mapping(tables.alerts, _alert_row, _read_alert),
    "alert_states": Mapping(tables.alert_states, _alert_state_row, _read_alert_state),
    "deliveries": Mapping(tables.deliveries, _delivery_row, _read_delivery),
    "experiments": Mapping(tables.experiments, _experiment_row, _read_experiment),
    "runs": Mapping(tables.runs, _run_row, _read_run),
    "counters": Mapping(tables.meta, _number_row, _read_counter),
}
