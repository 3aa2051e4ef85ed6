"""What the application master of a training run decides: members speak as real ones do, YARN and HDFS are played."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from hadoop.client.filesystem import Entry
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from jobs.application.attempts import STARTED
from jobs.application.calls import Gone, Request
from jobs.application.coordinator import Attempt, Container, End, Knowledge, Seat, Then
from jobs.application.exits import Exit
from jobs.application.journal import Record
from jobs.errors import JobError
from jobs.kinds.train import seating
from jobs.kinds.train.asked import check_unfinished, read
from jobs.kinds.train.coordinator import DONE, FEWER_SECONDS, FIRST_WORD_SECONDS, LAST_SECONDS, Train
from jobs.kinds.train.hearing import STOP
from jobs.kinds.train.registry import registry
from jobs.worker.memory import KEPT_MEMORY
from learning.lead.calls import MEMBER, Answer, Doing, Done, Say
from tests.jobs.stored import SPEC

AWAY = InfoClient("http://127.0.0.1:1", retries=0)
NODES = {"a": 4.0, "b": 2.0}
VALUES = NODES | {"c": 1.0, "d": 3.0, "unfit": 0.0}
A, B = "container_1_0001_01_000002", "container_1_0001_01_000003"
STEPS = 64
WELL, CRASHED, KILLED = End(Exit.FINISHED, 0), End(Exit.CRASHED, 1), End(Exit.KILLED, 137)
NAME = f"{STEPS}-{'0' * 64}.state"


class Files(dict[str, bytes]):
    """HDFS."""

    def __init__(self) -> None:
        super().__init__()
        self.copied: list[str] = []
        self.modes: dict[str, int] = {}

    def exists(self, name: str) -> bool:
        return any(one == name or one.startswith(f"{name}/") for one in self)

    def read(self, name: str) -> bytes:
        return self[name]

    def delete(self, name: str) -> None:
        self.pop(name, None)

    def make_folder(self, name: str) -> None:
        """There is none."""

    def checksum(self, name: str) -> str:
        return sha256(self[name]).hexdigest()

    def copy(self, source: str, target: str, mode: int = 0o644) -> None:  # type: ignore[override]
        self.copied.append(target)
        self[target] = self[source]
        self.modes[target] = mode

    def entries(self, folder: str) -> list[Entry]:
        return [Entry(name.rpartition("/")[2], 1, 0.0) for name in self if name.startswith(f"{folder}/")]

    def write(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self[name] = content
        self.modes[name] = mode

    def rename(self, source: str, target: str, overwrite: bool = False) -> None:
        self[target] = self.pop(source)
        self.modes[target] = self.modes.pop(source)


class Cluster(Knowledge):
    """Two nodes, and those that are added later."""

    def __init__(self, client: InfoClient) -> None:
        self.client = client
        self.up = sorted(NODES)

    def nodes(self) -> list[str]:
        return self.up


class Scene:
    """A run whose application master may be started again; the journal and HDFS stay."""

    def __init__(self, client: InfoClient = AWAY, **settings: Any) -> None:
        self.client = client
        self.cluster = Cluster(client)
        asked = {"argv": ["python", "train.py"], "output": "/out", "members": "1:2", "worker_python": "", **settings}
        self.spec = replace(SPEC, kind="train", settings=asked, container_wait=1.0, token="of the job")
        self.files, self.journal = Files(), list[Record]()
        self.files |= {f"/staging/{name}": name.encode() for name in settings.get("files", ())}
        self.now = 0.0
        self.attempts = 0
        self.begin()

    def begin(self) -> None:
        """The first attempt, or the next."""
        self.attempts += 1
        journal: Any = self
        files: Any = self.files
        earlier = list(self.journal)
        attempt = Attempt(self.attempts, self.spec, files, self.client, journal, "", earlier, 0.0, lambda: self.now)
        self.train = Train(attempt)
        (self.role,) = self.train.roles(self.cluster)

    def append(self, record: Record) -> None:
        """As a journal does, through JSON."""
        self.journal.append(Record(record.kind, json.loads(json.dumps(record.body))))

    def start(self, container: str, node: str) -> Container:
        """A container is given, and stands in the journal."""
        made = Container(Seat("member", int(node == "b"), node), container, "")
        if not any(record.body.get("container_id") == container for record in self.journal):
            self.append(Record(STARTED, {"container_id": container, "node_name": node}))
        self.train.on_start(made)
        return made

    def say(
        self, process: str, doing: Doing, done: Done, number: int = 1, connection: object = None, **more: Any
    ) -> Mapping[str, Any]:
        """What a member says, and what it is answered."""
        steps = done.steps if number else -1
        store = "host:1" if doing is Doing.WAITS else ""
        said = Say(process, doing, number, steps, store=store, done=done, **more)
        told = self.train.hear(MEMBER, Request("", json.dumps(said.to_json()).encode(), connection))
        return vars(Answer.from_json(told))

    def compute(self, steps: int) -> tuple[Container, Container]:
        """Two members, in one generation, that have done so many steps."""
        containers = self.start(A, "a"), self.start(B, "b")
        for process in (A, B):
            self.say(process, Doing.WAITS, Done(), number=0)
        self.tick()
        self.tell(steps)
        return containers

    def tell(self, steps: int, doing: Doing = Doing.COMPUTES, *, is_stopped: bool = False) -> None:
        """Both say how far they are; a has three quarters of the samples."""
        for process, samples in ((A, 48), (B, 16)):
            reads, local = samples * steps, samples * steps * 2 // 3
            done = Done(steps, STEPS, samples * steps, 1.0 * steps, 0.5, 0.25, reads=reads, local_reads=local)
            done = replace(done, is_stopped=is_stopped)
            self.say(process, doing, done)

    def tick(self, seconds: float = 0.25) -> None:
        self.now += seconds
        self.train.tick()

    def report(self) -> Any:
        return json.loads(self.files["/out/report.json"])


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run waits for values of the service as long as a busy machine may need."""
    monkeypatch.setattr(registry, "FIRST_SECONDS", 60.0)


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scene]:
    """make(members="2", ...): a run on nodes a and b, whose capability is known."""

    def measure(client: InfoClient, name: str, nodes: Sequence[str], wait_seconds: float = 1.0) -> Mapping[str, float]:
        if late := set(nodes) - set(VALUES):
            raise JobError(f"{name} has no value of {late}")
        return {node: VALUES[node] for node in nodes if VALUES[node] > 0}

    monkeypatch.setattr(seating, "measure", measure)
    return Scene


@pytest.fixture
def scene(make: Callable[..., Scene]) -> Scene:
    return make()


def test_an_attempt_that_follows_knows_how_far_the_run_is_before_a_member_has_spoken(scene: Scene) -> None:
    scene.compute(40)
    scene.files[f"/out/checkpoints/40-{'0' * 64}.state"] = b""
    scene.begin()

    progress = scene.train.progress()
    assert (progress.done, progress.is_done) == (40, False)
    scene.tell(41)
    assert (scene.train.progress().done, scene.train.progress().of) == (41, STEPS)


def test_a_run_is_over_when_its_members_have_ended_and_the_report_tells_it_all(scene: Scene) -> None:
    first, second = scene.compute(40)
    scene.now = 5.0
    scene.tell(STEPS, Doing.DONE)

    assert not scene.train.progress().is_done, "the programs may store something still"
    assert scene.train.on_end(second, WELL) is Then.DONE
    assert not scene.train.progress().is_done
    scene.files[f"/out/checkpoints/{NAME}"] = b""
    assert scene.train.on_end(first, WELL) is Then.DONE
    assert scene.train.progress().is_done

    assert scene.train.finish().message == "64 steps are done; checkpoints and report.json are in /out"
    report = scene.report()
    assert (report["steps"], report["seconds"], report["loss"], report["checkpoint"]) == (64, 5.0, 0.25, 64)
    did = {"samples": 3072, "reads": 3072, "local_reads": 2048}
    assert report["nodes"]["a"] == {**did, "compute_seconds": 64.0, "wait_seconds": 0.5, "loss": 0.25}
    assert [(one["first_step"], sorted(one["nodes"])) for one in report["generations"]] == [(0, ["a", "b"])]
    assert report["losses"] == [] and report["sync"] is None


def test_a_program_that_does_not_end_is_not_waited_for_without_end(scene: Scene) -> None:
    scene.compute(40)
    scene.tell(STEPS, Doing.DONE)
    scene.now += LAST_SECONDS + 1.0

    assert scene.train.progress().is_done
    assert scene.train.finish().message.endswith(", but the newest checkpoint is the one after 0 steps")


def test_an_attempt_after_the_last_step_reports_what_the_one_before_has_heard(scene: Scene) -> None:
    containers = scene.compute(40)
    scene.tell(STEPS, Doing.DONE)
    scene.begin()

    assert scene.train.progress().is_done, "no member is left"
    for one in containers:  # YARN tells of them late
        assert scene.train.on_end(one, WELL) is Then.DONE
    scene.train.finish()
    assert scene.report()["steps"] == STEPS
    assert scene.report()["nodes"]["b"]["samples"] == 16 * STEPS
    assert sorted(scene.report()["generations"][0]["nodes"]) == ["a", "b"]


def test_the_end_is_recorded_once_for_each_member_that_tells_it(scene: Scene) -> None:
    scene.compute(40)
    scene.tell(STEPS, Doing.DONE)
    scene.tick()
    scene.begin()
    scene.tick()

    assert [record.kind for record in scene.journal].count(DONE) == 2


def test_a_lost_member_is_in_the_report_with_what_it_cost(scene: Scene) -> None:
    _, lost = scene.compute(40)
    scene.now = 7.0
    scene.train.on_end(lost, End(Exit.KILLED, 137))
    scene.now = 7.5
    scene.say(A, Doing.WAITS, Done(40, STEPS))
    scene.say(A, Doing.DONE, Done(STEPS, STEPS), number=2)
    scene.train.finish()

    (loss,) = scene.report()["losses"]
    assert (loss["node"], loss["at_seconds"], loss["cost_seconds"]) == ("b", 7.0, 0.5)
    assert [one["nodes"] for one in scene.report()["generations"]][1] == ["a"]
    assert any("b takes part no more: killed" in line for line in scene.train.progress().news)
    assert not any(A in line or B in line for line in scene.train.progress().news)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_capability_judges_members_also_after_a_restart(make: Callable[..., Scene], restarts: bool) -> None:
    scene = make(capability="perf_cpu")
    if restarts:
        scene.begin()
    scene.start(A, "a")
    scene.start(B, "b")
    for process in (A, B):
        scene.say(process, Doing.WAITS, Done(), number=0)
    scene.tick()

    assert scene.say(A, Doing.WAITS, Done(), number=0)["measures"] == {A: 4.0, B: 2.0}


def admit(scene: Scene, *nodes: str) -> Sequence[str]:
    """What comes of nodes that are new."""
    assert scene.role.admit is not None
    scene.cluster.up = sorted({*scene.cluster.up, *nodes} - {"other queue"})
    assert scene.role.admit(nodes) == (), "nobody waits for values"
    deadline = time.monotonic() + 60
    while not (taken := scene.role.admit(nodes)):
        assert time.monotonic() < deadline, "none is taken"
        time.sleep(0.01)
    return taken


def test_nodes_that_are_added_to_the_cluster_are_used_if_they_fit(make: Callable[..., Scene]) -> None:
    scene = make(capability="perf_cpu", members="1:4")
    assert (scene.role.nodes, scene.role.spares, scene.role.most) == (["a", "b"], [], 4)

    assert admit(scene, "c", "d", "late", "other queue", "unfit") == ["d", "c"]
    scene.start("container_1_0001_01_000004", "d")
    scene.begin()
    assert (scene.role.nodes, scene.role.spares) == (["a", "b", "d", "c"], [])


def test_nodes_that_were_added_while_nobody_led_are_found(make: Callable[..., Scene]) -> None:
    scene = make(capability="perf_cpu")
    scene.cluster.up = ["a", "b", "c"]
    scene.begin()
    scene.begin()

    assert (scene.role.nodes, scene.role.spares) == (["a", "b"], ["c"])


def test_nodes_are_used_without_values_where_no_capability_is_asked_for_and_the_service_is_away(scene: Scene) -> None:
    assert admit(scene, "c") == ["c"]
    scene.cluster.up = ["a", "b", "c", "d"]
    scene.begin()
    assert scene.role.spares == ["c", "d"]


def test_known_values_stay_where_the_service_gives_none_for_new_nodes(
    make: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [("perf_cpu", {"a": 4.0, "b": 2.0}), ("", {})]
    monkeypatch.setattr(registry, "first_values", lambda *_: answers.pop(0))
    scene = make(members="1:3")

    assert admit(scene, "c") == ["c"]
    assert scene.journal[-1].body == {"nodes": ["a", "b", "c"], "values": {"a": 4.0, "b": 2.0}, "judged_by": "perf_cpu"}


def test_members_keep_the_memory_that_they_have_had(scene: Scene) -> None:
    launch = scene.role.launch(Seat("member", 0, "a"))

    assert KEPT_MEMORY.items() <= launch.environment.items()


def test_a_checkpoint_counts_once_hdfs_has_it(scene: Scene) -> None:
    scene.compute(40)
    scene.say(A, Doing.COMPUTES, Done(40, STEPS), checkpoint=40)
    scene.tick(3.0)
    scene.tell(41)
    assert scene.say(A, Doing.COMPUTES, Done(41, STEPS))["checkpoint"] == 0

    scene.files[f"/out/checkpoints/40-{'0' * 64}.state"] = b""
    scene.tick(3.0)

    assert scene.say(A, Doing.COMPUTES, Done(41, STEPS))["checkpoint"] == 40


def test_the_container_of_a_member_that_was_lost_is_to_end_although_its_program_does_not(scene: Scene) -> None:
    first, second = scene.compute(8)
    assert scene.train.last_heard(second.seat) == scene.now
    for _ in range(30):
        scene.say(A, Doing.COMPUTES, Done(8, STEPS))
        scene.tick()

    lost_at = scene.train.last_heard(second.seat)
    assert 5.0 < lost_at < scene.now
    assert scene.train.last_heard(first.seat) == scene.now
    assert scene.role.silence and scene.role.ends_alone


def test_the_program_of_a_member_that_was_silent_is_not_to_blame_for_its_end(make: Callable[..., Scene]) -> None:
    scene = make(restarts=0)
    _, second = scene.compute(8)
    for _ in range(30):
        scene.say(A, Doing.COMPUTES, Done(8, STEPS))
        scene.tick()

    scene.say(B, Doing.FAILED, Done(), why="the program ended with exit status 1")
    assert scene.train.on_end(second, CRASHED) is Then.AGAIN


def test_the_container_of_a_program_that_never_calls_is_to_end(scene: Scene) -> None:
    silent = scene.start(A, "a")
    assert scene.train.last_heard(silent.seat) == scene.now
    scene.now += FIRST_WORD_SECONDS + 1

    assert scene.train.last_heard(silent.seat) == 0.0


def test_the_container_of_a_lost_member_is_ended_by_the_next_application_master_too(scene: Scene) -> None:
    _, second = scene.compute(8)
    scene.say(B, Doing.FAILED, Done(), why="out of memory")
    lost_at = scene.now
    scene.now += 100
    scene.begin()
    scene.start(B, "b")

    assert scene.train.last_heard(second.seat) == scene.now > lost_at
    scene.now += 5
    assert scene.train.last_heard(second.seat) == scene.now - 5


def test_a_member_whose_connection_ends_is_lost_unless_it_calls_again(scene: Scene) -> None:
    scene.compute(8)
    one, other = object(), object()
    scene.say(A, Doing.COMPUTES, Done(8, STEPS), connection=one)
    scene.say(B, Doing.COMPUTES, Done(8, STEPS), connection=other)
    scene.train.hang_up(one)
    scene.say(A, Doing.COMPUTES, Done(8, STEPS), connection=object())
    scene.train.hang_up(other)
    for _ in range(4):
        scene.tick()

    assert scene.say(A, Doing.COMPUTES, Done(8, STEPS))["is_over"]
    with pytest.raises(Gone, match="its connection has ended"):
        scene.say(B, Doing.COMPUTES, Done(8, STEPS))


def test_a_call_that_waits_for_the_journal_is_to_be_made_again(scene: Scene) -> None:
    scene.compute(8)
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with scene.train._leader._lock:
            is_held.set()
            may_end.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait()
    try:
        with pytest.raises(HadoopError, match="waits until what has happened is recorded"):
            scene.say(A, Doing.COMPUTES, Done(8, STEPS))
    finally:
        may_end.set()
        holder.join()


def test_the_best_nodes_come_first_and_too_few_of_them_are_refused(make: Callable[..., Scene]) -> None:
    scene = make(capability="perf_cpu", members="1")
    assert (scene.role.nodes, scene.role.spares) == (["a"], ["b"])

    with pytest.raises(JobError, match="3 members need as many nodes, and only 2 have a perf_cpu above 0"):
        make(capability="perf_cpu", members="3")


def test_a_program_that_fails_again_and_again_ends_the_run_with_its_own_words(make: Callable[..., Scene]) -> None:
    scene = make(restarts=1)
    first, second = scene.compute(3)
    scene.say(A, Doing.FAILED, Done(3, STEPS), why="LearningError: the gradient of step 3 is not finite")
    assert scene.train.on_end(first, CRASHED) is Then.AGAIN
    scene.say(B, Doing.FAILED, Done(3, STEPS), why="LearningError: the gradient of step 3 is not finite")

    with pytest.raises(JobError, match="failed 2 times at step 3, the last time on b: LearningError: the gradient"):
        scene.train.on_end(second, CRASHED)


def test_members_that_are_killed_at_once_fail_once_and_those_that_follow_fail_again(make: Callable[..., Scene]) -> None:
    scene = make(restarts=1)
    scene.now = 1.0
    for container in scene.compute(3):
        assert scene.train.on_end(container, KILLED) is Then.AGAIN
    scene.now = 2.0
    again = scene.start("container_1_0001_01_000004", "a")

    with pytest.raises(JobError, match="failed 2 times at step 3, the last time on a"):
        scene.train.on_end(again, KILLED)


def test_members_that_were_killed_with_their_application_master_fail_once(make: Callable[..., Scene]) -> None:
    scene = make(restarts=1)
    members = scene.compute(3)
    scene.begin()

    for container in (*members, *members):
        scene.now += 1.0
        assert scene.train.on_end(container, KILLED) is Then.AGAIN


def test_failures_between_which_steps_are_done_do_not_add_up(make: Callable[..., Scene]) -> None:
    scene = make(restarts=1)
    first, _ = scene.compute(3)

    for steps in range(4, 8):
        scene.say(B, Doing.COMPUTES, Done(steps, STEPS))
        assert scene.train.on_end(first, CRASHED) is Then.AGAIN


def test_a_container_that_yarn_takes_away_is_no_failure_of_the_program(make: Callable[..., Scene]) -> None:
    scene = make(restarts=0)
    first, _ = scene.compute(3)

    assert scene.train.on_end(first, End(Exit.PREEMPTED, -102)) is Then.AGAIN


def test_a_program_that_leaves_its_loop_early_ends_the_run_though_it_ends_well(scene: Scene) -> None:
    first, _ = scene.compute(3)
    scene.say(A, Doing.DONE, Done(3, STEPS))

    with pytest.raises(JobError, match="on a ended with exit status 0 before the run was done: it has ended before"):
        scene.train.on_end(first, WELL)


def test_programs_that_end_well_without_a_run_end_the_job(make: Callable[..., Scene]) -> None:
    scene = make(restarts=1, members="1")
    assert scene.train.on_end(scene.start(A, "a"), WELL) is Then.AGAIN

    with pytest.raises(JobError, match="ended before the run was done 2 times at step 0, the last time on a"):
        scene.train.on_end(scene.start(B, "a"), WELL)


def test_a_run_without_hope_ends_and_tells_nodes(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.compute(3)
    monkeypatch.setattr(type(scene.train._leader), "hopeless", f"no progress with {A}")

    with pytest.raises(JobError, match="no progress with a"):
        scene.tick()


def test_too_few_members_for_long_end_the_run(make: Callable[..., Scene]) -> None:
    scene = make(members="2")
    scene.start(A, "a")
    scene.tick(FEWER_SECONDS)
    with pytest.raises(JobError, match="fewer than 2 members for 300 s: submit it again with the same --output"):
        scene.tick(2.0)


def test_what_members_are_told_is_laid_out_once(scene: Scene) -> None:
    told = scene.files.pop("/staging/train.json")
    scene.files["/staging/train.json"] = b"of the first attempt"
    scene.begin()

    assert (json.loads(told)["output"], json.loads(told)["sync"]) == ("/out", None)
    assert scene.files["/staging/train.json"] == b"of the first attempt"


def test_how_often_members_average_is_told_them_and_stands_in_the_report(make: Callable[..., Scene]) -> None:
    scene = make(sync="local:4")
    first, second = scene.compute(40)
    scene.tell(STEPS, Doing.DONE)
    for one in (first, second):
        scene.train.on_end(one, WELL)
    scene.train.finish()

    assert json.loads(scene.files["/staging/train.json"])["sync"] == "local:4"
    assert scene.report()["sync"] == "local:4"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_run_that_is_told_to_stop_ends_well_and_says_how_it_goes_on(scene: Scene, restarts: bool) -> None:
    first, second = scene.compute(40)
    assert scene.train.hear(STOP, Request("", b"")) is None
    assert scene.train.hear(STOP, Request("", b"")) is None
    if restarts:
        scene.begin()
    assert scene.say(A, Doing.COMPUTES, Done(40, STEPS))["is_stopping"]
    assert not scene.train.progress().is_done
    assert sum("stops after the step that is computed" in line for line in scene.train.progress().news) == 1

    scene.files[f"/out/checkpoints/41-{'0' * 64}.state"] = b""
    scene.tell(41, Doing.DONE, is_stopped=True)
    assert [scene.train.on_end(one, WELL) for one in (first, second)] == [Then.DONE, Then.DONE]
    assert (scene.train.progress().done, scene.train.progress().of) == (41, 41)
    said = scene.train.finish().message
    assert said == "stopped after 41 of 64 steps; resume it with nodewise train resume hdfs:///out"
    assert (scene.report()["stopped"], scene.report()["steps"]) == (True, 41)
    files: Any = scene.files
    check_unfinished(files, "/out", read(files, "/out"))


def test_what_a_run_was_asked_for_stays_in_its_output(make: Callable[..., Scene]) -> None:
    scene = make(files=["train.py", "data.csv"], sync="local:4")
    files: Any = scene.files

    asked = read(files, "/out")
    assert (asked.job_id, asked.options.container_wait) == (SPEC.job_id, 1.0)
    assert (list(asked.settings.argv), asked.settings.sync) == (["python", "train.py"], "local:4")
    assert {name: files[f"/out/files/{name}"] for name in asked.settings.files} == {
        "train.py": b"train.py",
        "data.csv": b"data.csv",
    }
    assert {files.modes[f"/out/{name}"] for name in ("run.json", "files/train.py", "files/data.csv")} == {0o640}
    assert scene.spec.token not in files["/out/run.json"].decode()

    del files["/staging/train.json"]
    files["/staging/data.csv"] = b"another"
    files.copied.clear()
    scene.begin()
    assert files.copied == ["/out/files/data.csv.new"]
    assert files["/out/files/data.csv"] == b"another"


def test_a_run_that_has_done_all_is_not_to_be_resumed_until_another_has_begun(scene: Scene) -> None:
    containers = scene.compute(40)
    scene.tell(STEPS, Doing.DONE)
    for one in containers:
        scene.train.on_end(one, WELL)
    scene.train.finish()
    files: Any = scene.files

    asked = read(files, "/out")
    with pytest.raises(JobError, match=f"{SPEC.job_id} has done all 64 steps of the run in /out: for more epochs"):
        check_unfinished(files, "/out", asked)
    check_unfinished(files, "/out", replace(asked, job_id="another"))


WRONG: Mapping[str, tuple[Any, str]] = {
    "nothing": (None, "/out holds no run.json: is it the output of a training run"),
    "no JSON": (b"{", "/out/run.json does not tell what a run was asked for"),
    "a list": (b"[]", "/out/run.json does not tell what a run was asked for"),
    "a name elsewhere": ({"files": ["../x"]}, "it names no program, or no names of files"),
    "a name of ours": ({"files": ["job.json"]}, "it names no program, or no names of files"),
    "no program": ({"argv": []}, "it names no program, or no names of files"),
}


@pytest.mark.parametrize(("wrong", "said"), WRONG.values(), ids=WRONG)
def test_an_output_that_does_not_tell_what_was_asked_for_is_refused(scene: Scene, wrong: Any, said: str) -> None:
    files: Any = scene.files
    told = json.loads(files.pop("/out/run.json"))
    if wrong is not None:
        told["settings"] |= wrong if isinstance(wrong, dict) else {}
        files["/out/run.json"] = wrong if isinstance(wrong, bytes) else json.dumps(told).encode()

    with pytest.raises(JobError, match=said):
        read(files, "/out")
