"""What users and queues have used, from what a ResourceManager tells over real HTTP."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskState
from tests.in_process import nodewise
from tests.infosvc.conftest import TOKEN, Served, serving
from tests.infosvc.task_users import as_user
from tests.ports import free_port

NOW = time.time()


def app(number: int, user: str, ended_ago: float | None, **also: Any) -> dict[str, Any]:
    """An application that has used two cores and 1,024 MB for an hour."""
    return {
        "id": f"application_1700000000000_{number:04}",
        "user": user,
        "queue": "root.default",
        "state": "RUNNING" if ended_ago is None else "FINISHED",
        "startedTime": int(1000 * (NOW - 10 * 86_400 + number)),
        "finishedTime": 0 if ended_ago is None else int(1000 * (NOW - ended_ago)),
        "memorySeconds": 1024 * 3600,
        "vcoreSeconds": 2 * 3600,
        "resourceSecondsMap": {
            "entry": [{"key": "memory-mb", "value": str(1024 * 3600)}, {"key": "vcores", "value": str(2 * 3600)}]
        },
        **also,
    }


@contextmanager
def told(apps: list[dict[str, Any]], conf: Path) -> Iterator[None]:
    """A ResourceManager that tells these applications, and site files that name it."""

    class Manager(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = {"apps": {"app": apps} if apps else None} if self.path.startswith("/ws/v1/cluster/apps") else {}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_said: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Manager)
    conf.mkdir(parents=True)
    (conf / "core-site.xml").write_text("<configuration/>")
    setting = f"<property><name>yarn.resourcemanager.webapp.address</name><value>127.0.0.1:{server.server_port}</value>"
    (conf / "yarn-site.xml").write_text(f"<configuration>{setting}</property></configuration>")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(tmp_path: Path, url: str, *words: str) -> tuple[str, str]:
    """What `nodewise usage` prints and complains."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    settings = {"NODEWISE_URL": url, "NODEWISE_TOKEN_FILE": str(token), "HADOOP_CONF_DIR": str(tmp_path / "conf")}
    done = nodewise("--home", str(tmp_path / "home"), "usage", *words, env=os.environ | settings)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    """A running service."""
    with serving(f"sqlite:///{tmp_path / 'infosvc.db'}") as served:
        yield served


def test_a_task_counts_for_its_owner_and_a_tag_that_others_give_does_not(tmp_path: Path, service: Served) -> None:
    task = as_user(service, "maria", Role.USER).submit_task(TaskSpec(["x"]))
    its = {"applicationTags": f"kind=task,task:{task.task_id}"}
    apps = [
        app(1, "nodewise", 7200, **its),
        app(2, "nodewise", None, **its),
        app(3, "mallory", None, **its),
        app(4, "peter", 60, queue="root.small"),
        app(5, "peter", 9 * 86_400),
    ]
    news = TaskNews(TaskState.RUNNING, application_id=apps[1]["id"], attempt=1)
    service.client.put_task_news(task.task_id, news)
    with told(apps, tmp_path / "conf"):
        said, complaint = run(tmp_path, service.url, "--json")
        assert complaint == ""
        found = json.loads(said)
        assert [(one["user"], one["applications"], one["running"]) for one in found["usage"]] == [
            ("maria", 2, 1),
            ("mallory", 1, 1),
            ("peter", 1, 0),
        ]
        first = found["usage"][0]
        assert (first["core_hours"], first["memory_gb_hours"], first["gpu_hours"]) == (4, 2, 0)
        assert found["remembered_since"] == pytest.approx(NOW - 10 * 86_400 + 1, abs=0.01)
        said, _ = run(tmp_path, service.url)
        assert said.splitlines()[1].split() == ["maria", "2", "1", "4.00", "2.00", "0.00"]
        assert "YARN remembers 5 applications, of which the first began at 20" in said


def test_queues_are_summed_up_with_other_resources_and_need_no_service(tmp_path: Path) -> None:
    gpus = {"key": "yarn.io/gpu", "value": "7200"}
    widgets = {"key": "widgets", "value": "3600"}
    apps = [app(1, "a", None, resourceSecondsMap={"entry": [gpus, widgets]}), app(2, "b", 60, queue="root.small")]
    with told(apps, tmp_path / "conf"):
        said, complaint = run(tmp_path, f"http://127.0.0.1:{free_port()}", "--by", "queue", "--json")
    found = json.loads(said)["usage"]
    assert complaint == ""
    assert [(one["queue"], one["gpu_hours"], one["other_hours"]) for one in found] == [
        ("root.default", 2, {"widgets": 1}),
        ("root.small", 0, {}),
    ]


def test_without_the_service_tasks_count_for_yarns_user_and_it_says_so(tmp_path: Path) -> None:
    with told([], tmp_path / "conf"):
        said, complaint = run(tmp_path, f"http://127.0.0.1:{free_port()}", "--since", "1h")
    assert said.startswith("no application has ended since 20")
    assert complaint.startswith("Warning: tasks count for the user as whom they run, not for their owners")


def test_without_a_cluster_it_says_what_to_name(tmp_path: Path) -> None:
    done = nodewise("--home", str(tmp_path), "usage", "--hadoop-conf", str(tmp_path / "none"), env=dict(os.environ))
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr, done.stderr
    assert str(tmp_path / "none") in done.stderr
    wrong = nodewise("usage", "--since", "soon", env=dict(os.environ))
    assert wrong.returncode == 2 and "'soon' is not a span of time" in wrong.stderr
