"""A Hadoop that is played over real HTTP: what a NameNode, a ResourceManager and a NodeManager answer to the board."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from jobs.reports.report import JobReport, LeaseReport, NodeReport, Weights
from tests.jobs.decisions import NODES

JOB = "application_1700000000000_0001"
MASTER = "container_1700000000000_0001_01_000001"
WORKER = "container_1700000000000_0001_01_000002"
SCHEDULER = Path(__file__).resolve().parents[1] / "fixtures" / "scheduler_sample.json"
"""What a ResourceManager of Hadoop 3.5 told of two queues, of which each was at a limit."""
WAITING: dict[str, Any] = {
    "state": "ACCEPTED",
    "queue": "root.default",
    "priority": 0,
    "elapsedTime": 60_000,
    "masterNodeId": "",
    "allocatedMB": 0,
    "allocatedVCores": 0,
    "runningContainers": 0,
    "resourceRequests": [
        {"resourceName": "*", "capability": {"memory": 768, "vCores": 1}, "numContainers": 1, "relaxLocality": True}
    ],
    "diagnostics": "[Wed Nov 25 21:35:55 +0000 2026] Application is Activated, waiting for resources to be assigned "
    "for AM. ",
}
"""What it told of an application that waits for its master's place."""
INACTIVE = (
    "[Wed Nov 25 21:35:55 +0000 2026] Application is added to the scheduler and is not yet activated. {limit} AM "
    "resource limit exceeded.  Details : AM Partition = <DEFAULT_PARTITION>; AM Resource Request = <memory:768, "
    "vCores:1>; Queue Resource Limit for AM = <memory:1536, vCores:4>; User AM Resource Limit of the queue = "
    "<memory:1152, vCores:3>; Queue AM Resource Usage = <memory:1152, vCores:3>; "
)
"""What it says of one that is not active, of the limit of `Queue's` or `User's`."""
FILES = {f"{number}.jpg": NODES[number % 3] for number in range(6)}


class Hadoop:
    """A NameNode with images, a ResourceManager with one job, its NodeManager, all at one address."""

    def __init__(self) -> None:
        self.app: dict[str, Any] = {
            "id": JOB,
            "name": "nodewise mxnet_alexnet",
            "applicationType": "NODEWISE",
            "user": "me",
            "queue": "default",
            "state": "RUNNING",
            "finalStatus": "UNDEFINED",
            "progress": 25.0,
            "startedTime": 1_700_000_000_000,
            "finishedTime": 0,
            "applicationTags": "output=/out/a",
        }
        self.others: list[dict[str, Any]] = []  # further applications that have not ended
        self.ended: list[dict[str, Any]] = []
        self.scheduler: dict[str, Any] = json.loads(SCHEDULER.read_text())
        self.logs = {(MASTER, "stdout"): f"plan\nstarted {WORKER} at ", (WORKER, "stdout"): "one\ntwo\nthr"}
        self.figures: dict[str, dict[str, Any]] = {}  # by node, what it has else than the others
        self.stored: dict[str, bytes] = {}
        self.away = False  # whether the ResourceManager refuses its list
        self.lists = 0  # how often that was asked for
        self._asked = threading.Condition()
        hadoop = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                where = urlsplit(self.path)
                status, body = hadoop.answer(unquote(where.path), parse_qs(where.query))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Tests need no log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self.logs[MASTER, "stdout"] += f"{self.address}\n"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait_for_lists(self, number: int) -> None:
        """Wait until the list of applications was asked for so many times."""
        with self._asked:
            assert self._asked.wait_for(lambda: self.lists >= number, 60)

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, bytes]:
        if path.startswith("/webhdfs/v1"):
            found = self.hdfs(path.removeprefix("/webhdfs/v1"), query["op"][0])
            if isinstance(found, bytes) and "noredirect" in query:
                found = {"Location": f"http://{self.address}/webhdfs/v1{path.removeprefix('/webhdfs/v1')}?op=OPEN"}
            elif isinstance(found, bytes) and "offset" in query:
                begin = int(query["offset"][0])
                found = found[begin : begin + int(query["length"][0])]
        elif path == "/jmx":
            live = {f"{node}:9866": {"location": "/default-rack"} for node in NODES}
            found = {"beans": [{"LiveNodes": json.dumps(live)}]}
        else:
            found = self.yarn(path.split("/")[1:], query)
        if found is None:
            return 404, b"{}"
        return 200, found if isinstance(found, bytes) else json.dumps(found).encode()

    def hdfs(self, path: str, operation: str) -> Any:
        name = path.rpartition("/")[2]
        match operation:
            case "GETHOMEDIRECTORY":
                return {"Path": "/user/me"}
            case "GETFILESTATUS" if path in self.stored or any(one.startswith(f"{path}/") for one in self.stored):
                return {"FileStatus": self._status(path)}
            case "OPEN" if path in self.stored:
                return self.stored[path]
            case "LISTSTATUS" if below := [one for one in self.stored if one.startswith(f"{path}/")]:
                names = sorted({one.removeprefix(f"{path}/").partition("/")[0] for one in below})
                return {"FileStatuses": {"FileStatus": [self._status(f"{path}/{name}") for name in names]}}
            case "LISTSTATUS" if path == "/data":
                rows = [{"pathSuffix": one, "type": "FILE", "length": 1000, "replication": 1} for one in FILES]
                hidden = [{"pathSuffix": "_tmp", "type": "DIRECTORY", "length": 0}]
                return {"FileStatuses": {"FileStatus": [*rows, *hidden]}}
            case "GETFILEBLOCKLOCATIONS" if name in FILES:
                row = {"offset": 0, "length": 1000, "hosts": [FILES[name]], "corrupt": False}
                return {"BlockLocations": {"BlockLocation": [row]}}
        return None

    def _status(self, path: str) -> dict[str, Any]:
        is_file, name = path in self.stored, path.rpartition("/")[2]
        length, kind = (len(self.stored[path]), "FILE") if is_file else (0, "DIRECTORY")
        return {"pathSuffix": name, "type": kind, "length": length, "modificationTime": 1_700_000_000_000}

    def yarn(self, words: list[str], query: dict[str, list[str]]) -> Any:
        match words:
            case ["ws", "v1", "cluster", "nodes"]:
                about = {
                    "nodeHTTPAddress": self.address,
                    "state": "RUNNING",
                    "usedMemoryMB": 1536,
                    "availMemoryMB": 512,
                }
                about |= {"usedVirtualCores": 2, "availableVirtualCores": 6}
                told = [{"nodeHostName": node, **about, **self.figures.get(node, {})} for node in NODES]
                return {"nodes": {"node": told}}
            case ["ws", "v1", "cluster", "scheduler"]:
                return self.scheduler
            case ["ws", "v1", "cluster", "apps"] if "states" in query:
                states = query["states"][0].split(",")
                known = [one for one in (self.app, *self.others, *self.ended) if one["state"] in states]
                limit = int(query.get("limit", [len(known)])[0])
                return {"apps": {"app": known[:limit]} if known else None}
            case ["ws", "v1", "cluster", "apps"]:
                assert query["applicationTypes"] == ["NODEWISE"]
                with self._asked:
                    self.lists += 1
                    self._asked.notify_all()
                return None if self.away else {"apps": {"app": [self.app]}}
            case ["ws", "v1", "cluster", "apps", application_id] if application_id == JOB:
                return {"app": self.app}
            case ["ws", "v1", "cluster", "apps", application_id, "appattempts"] if application_id == JOB:
                row = {"id": 1, "containerId": MASTER, "nodeHttpAddress": self.address}
                return {"appAttempts": {"appAttempt": [row]}}
            case ["ws", "v1", "node", "containerlogs", container_id, stream] if (container_id, stream) in self.logs:
                content = self.logs[container_id, stream]
                size = -int(query["size"][0])
                return f"LogLength:{len(content)}\nLogContents:\n{content[-size:]}".encode()
            case ["proxy", application_id, "status"] if application_id == JOB:
                return STATUS
        return None


def ended_app(number: int, seconds: float = 60.0) -> dict[str, Any]:
    """An application that had its place for so many seconds."""
    launched = 1_699_990_000_000 + number
    return {
        "id": f"application_1699990000000_{number:04}",
        "name": "ended",
        "applicationType": "NODEWISE",
        "user": "me",
        "queue": "root.default",
        "state": "FINISHED",
        "finalStatus": "SUCCEEDED",
        "startedTime": launched - 5000,
        "launchTime": launched,
        "finishedTime": launched + int(1000 * seconds),
        "allocatedMB": -1,
        "runningContainers": -1,
    }


def running_app(number: int, node: str, mb: int = 512, **also: Any) -> dict[str, Any]:
    """An application of one container, which has its place since half a minute."""
    return {
        "id": f"application_1700000000000_{number:04}",
        "name": "running",
        "applicationType": "NODEWISE",
        "user": "me",
        "queue": "root.default",
        "state": "RUNNING",
        "finalStatus": "UNDEFINED",
        "startedTime": 1_700_000_000_000,
        "launchTime": 1_700_000_030_000,
        "finishedTime": 0,
        "elapsedTime": 60_000,
        "masterNodeId": f"{node}:8041",
        "allocatedMB": mb,
        "allocatedVCores": 1,
        "runningContainers": 1,
        **also,
    }


STATUS = {
    "job_id": JOB,
    "state": "running",
    "attempt": 1,
    "images": 40,
    "done": 10,
    "errors": 0,
    "seconds": 5.0,
    "seconds_left": 15.0,
    "news": [],
    "nodes": [
        {
            "node_name": "alpha",
            "state": "working",
            "planned": 5,
            "images": 6,
            "errors": 0,
            "local_images": 5,
            "running": 2,
            "images_per_second": 2.0,
            "failures": 0,
            "said": "",
        }
    ],
}


def make_report() -> JobReport:
    return JobReport(
        job_id=JOB,
        application_id=JOB,
        engine="mxnet_alexnet",
        policy="even",
        capability="weight",
        items=4,
        errors=0,
        started_at="2026-01-02T03:04:05+00:00",
        bytes_read=4000,
        bytes_moved=0,
        bytes_moved_optimal=0,
        nodes=(NodeReport("alpha", 1.0, 2, 3, 3, 1.5, 2.0), NodeReport("beta", 1.0, 2, 1, 1, 1.0, 1.0)),
        inputs=(),
        weights=Weights("seeded"),
        leases=(
            LeaseReport("alpha", 0.0, 1.0, 2, 2, "accepted", "alpha"),
            LeaseReport("alpha", 1.0, 1.5, 1, 1, "accepted", "beta"),
            LeaseReport("beta", 0.0, 1.0, 1, 1, "accepted", "beta"),
        ),
    )
