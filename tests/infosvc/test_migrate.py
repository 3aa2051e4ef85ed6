"""A database that an older version made keeps what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import create_engine, inspect, make_url, text

from infosvc.wire.alerts.alert_client import AlertClient
from infosvc.wire.records import Producer
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskProgress, TaskState

if TYPE_CHECKING:
    from tests.infosvc.conftest import Serving

NEW = {
    "t_DP": ("emits", "inputs"),
    "t_Data": ("skipped",),
    "t_Node": ("dropped",),
    "t_Slot": ("epoch", "placed"),
}


ALERTS = ("t_Alert", "t_AlertState", "t_Delivery")
TRACKED = ("t_Experiment", "t_Run", "t_Metric")


def test_tables_of_version_1_get_the_new_columns_and_keep_their_rows(database: str, serve: Serving) -> None:
    with serve(database) as service:
        service.client.put_producer(Producer("cpu", "scripts/cpu.sh", 2.0))
        service.client.put_node("n1", "127.0.0.1:9")
        service.client.put_value("cpu", "n1", 0.5)
        service.client.put_slot("n1", "cpu", True)
    engine = create_engine(make_url(database))
    with engine.begin() as connection:
        for table, columns in NEW.items():
            for column in columns:
                connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {column}"))
        for table in ("t_History", "t_Token", "t_Audit", "t_Forget", "t_Task", "t_GoneTask", *TRACKED, *ALERTS):
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text("UPDATE t_Meta SET value = 1 WHERE name = 'schema_version'"))
    engine.dispose()
    for _ in range(2):  # the second start finds nothing to do
        with serve(database) as service:
            assert service.client.producer("cpu").emits == ()
            assert [slot.epoch for slot in service.client.slots("n1").slots] == [0]
            assert service.client.data("cpu", node="n1")[0].data_value == "0.5"
            service.client.put_value("cpu", "n2", 0.75)


def test_a_database_of_version_3_gets_tasks_and_keeps_its_rows(database: str, serve: Serving) -> None:
    with serve(database) as service:
        service.client.put_producer(Producer("cpu", "scripts/cpu.sh", 2.0))
    engine = create_engine(make_url(database))
    with engine.begin() as connection:
        for table in ("t_Task", "t_GoneTask", *TRACKED, *ALERTS):
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text("UPDATE t_Meta SET value = 3 WHERE name = 'schema_version'"))
    for number in (1, 2):
        with serve(database) as service:
            assert service.client.producer("cpu").cmd == "scripts/cpu.sh"
            service.client.submit_task(TaskSpec([f"program{number}"]))
            assert len(service.client.tasks()) == number
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT value FROM t_Meta WHERE name = 'schema_version'")) == 8
    engine.dispose()


def test_a_database_of_version_4_gets_runs_and_keeps_its_tasks_and_what_it_must_forget(
    database: str, serve: Serving
) -> None:
    with serve(database) as service:
        service.client.put_producer(Producer("cpu", "scripts/cpu.sh", 2.0, keep=3600))
        service.client.put_value("cpu", "n1", 0.5)
        task = service.client.submit_task(TaskSpec(["train"], name="mnist"))
    engine = create_engine(make_url(database))
    with engine.begin() as connection:
        for table in TRACKED:
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text("ALTER TABLE t_Forget DROP COLUMN run_id"))
        connection.execute(text("INSERT INTO t_Forget (data_name, last_id) VALUES ('cpu', 1000)"))
        connection.execute(text("UPDATE t_Meta SET value = 4 WHERE name = 'schema_version'"))
    engine.dispose()
    point = {"run_id": task.task_id, "key": "loss", "value": 0.5}
    for number in (1, 2):
        with serve(database) as service:
            assert service.client.history("cpu", "n1").points == ()
            assert service.client.tasks() == [task]
            assert service.ask("POST", "/api/2.0/mlflow/runs/log-metric", point).status == 200
            found = service.ask("GET", f"/api/2.0/mlflow/metrics/get-history?run_id={task.task_id}&metric_key=loss")
            assert len(found.json["metrics"]) == number


def test_a_database_of_version_5_keeps_its_tasks_whose_runners_have_told_nothing(database: str, serve: Serving) -> None:
    with serve(database) as service:
        task = service.client.submit_task(TaskSpec(["train"], name="mnist"))
    engine = create_engine(make_url(database))
    with engine.begin() as connection:
        for column in ("idle_since", "output_folder"):
            connection.execute(text(f"ALTER TABLE t_Task DROP COLUMN {column}"))
        connection.execute(text("UPDATE t_Meta SET value = 5 WHERE name = 'schema_version'"))
    engine.dispose()
    with serve(database) as service:
        assert service.client.tasks() == [task]
        service.client.put_task_progress(task.task_id, TaskProgress(1, running=True, output_folder="/x"))
    with serve(database) as service:
        assert service.client.task(task.task_id).output_folder == "/x"


def test_a_database_of_version_6_notes_which_tasks_are_gone(database: str, serve: Serving) -> None:
    with serve(database) as service:
        task = service.client.submit_task(TaskSpec(["train"], name="mnist"))
        service.client.put_task_news(task.task_id, TaskNews(TaskState.SUCCEEDED))
    engine = create_engine(make_url(database))
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE t_GoneTask"))
        connection.execute(text("UPDATE t_Meta SET value = 6 WHERE name = 'schema_version'"))
    engine.dispose()
    with serve(database) as service:
        assert service.client.gone_tasks() == ()
        service.client.remove_task(task.task_id)
    with serve(database) as service:
        assert service.client.gone_tasks() == (task.task_id,)


def test_a_database_of_version_7_gets_alerts_and_keeps_its_tasks(database: str, serve: Serving) -> None:
    with serve(database) as service:
        task = service.client.submit_task(TaskSpec(["train"], name="mnist"))
    engine = create_engine(make_url(database))
    with engine.begin() as connection:
        for table in ALERTS:
            connection.execute(text(f"DROP TABLE {table}"))
        specification = connection.scalar(text("SELECT spec FROM t_Task")).replace('"notify":null,', "")
        connection.execute(
            text("UPDATE t_Task SET spec = :spec"), {"spec": specification.replace(',"notify":null', "")}
        )
        connection.execute(text("UPDATE t_Meta SET value = 7 WHERE name = 'schema_version'"))
    engine.dispose()
    with serve(database) as service:
        assert service.client.tasks() == [task]
        made = AlertClient(service.client).add("node lost", 60, "https://example.org/")
    with serve(database) as service:
        assert AlertClient(service.client).all() == [made]


def test_history_of_version_2_gets_the_index_for_nodes_and_keeps_its_points(database: str, serve: Serving) -> None:
    with serve(database) as service:
        service.client.put_producer(Producer("cpu", "scripts/cpu.sh", 2.0, keep=3600))
        service.client.put_value("cpu", "n1", 0.5)
    engine = create_engine(make_url(database))
    with engine.begin() as connection:
        on = "" if engine.dialect.name == "sqlite" else " ON t_History"
        connection.execute(text(f"DROP INDEX i_History_node{on}"))
        connection.execute(text("DROP TABLE t_Forget"))
        connection.execute(text("DROP TABLE t_Task"))
        connection.execute(text("UPDATE t_Meta SET value = 2 WHERE name = 'schema_version'"))
    with serve(database) as service:
        assert [value for _, value in service.client.history("cpu", "n1").points] == ["0.5"]
    assert "i_History_node" in {index["name"] for index in inspect(engine).get_indexes("t_History")}
    engine.dispose()
