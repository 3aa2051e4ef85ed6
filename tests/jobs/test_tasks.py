"""Tasks before they come to YARN, and the parts of their runner that need neither YARN nor HDFS."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from environments.manifest import Manifest
from hadoop.client.yarn import Application
from infosvc.wire.client import InfoClient
from infosvc.wire.task_spec import TaskSpec
from jobs.application.coordinator import Attempt
from jobs.application.environments.laid import Laid, beside
from jobs.application.environments.unfit import Unfit
from jobs.application.job_spec import JobOptions
from jobs.application.journal import Record
from jobs.application.submit import MasterNeeds
from jobs.errors import JobError
from jobs.kinds.task import runner, service_access, work_folder
from jobs.kinds.task.committing import Commit
from jobs.kinds.task.printed import CUT, PIECE_BYTES, Spool
from jobs.kinds.task.request import (
    LEAST_MEMORY_MB,
    RUNNER_MEMORY_MB,
    further,
    is_bound,
    order,
    patience_of,
    start_of,
    starts_until,
)
from jobs.kinds.task.runner import ENDED, Task
from jobs.kinds.task.settings import FILES, TaskSettings
from tests.jobs.stored import SPEC

NONE: Any = None
ID = "task_0f1e2d3c4b5a6978"


def test_a_task_asks_for_what_its_program_and_its_runner_need(tmp_path: Path) -> None:
    archive = tmp_path / "0f0f"
    archive.write_bytes(b"")
    spec = TaskSpec(
        ["python3", "train.py"],
        variables={"SEED": "1"},
        memory_mb=1000,
        vcores=2,
        queue="night",
        program="resnet",
        nodes=["c", "b", "away"],
        not_nodes=["b"],
        output="hdfs:///out/mnist/",
        attempts=3,
        seconds_at_most=60,
        devices=["nvidia.com/gpu=0"],
    )

    made = order(spec, ID, archive, ["a", "b", "c"], JobOptions(priority=4, master_memory=700))

    assert (made.kind, made.name, list(made.tags), made.uploads) == (
        "task",
        "python3",
        [f"task:{ID}"],
        {FILES: archive},
    )
    assert made.master == MasterNeeds(1000 + RUNNER_MEMORY_MB, 2, hosts=["c"], has_uploads=True)
    assert made.options == JobOptions(queue="night", program="resnet", attempts=3, priority=4)
    assert not made.needs_service
    assert TaskSettings.from_json(made.settings) == TaskSettings(
        task_id=ID,
        argv=["python3", "train.py"],
        variables={"SEED": "1"},
        has_files=True,
        memory_mb=1000,
        vcores=2,
        output="hdfs:///out/mnist",
        seconds_at_most=60,
        hosts=("c",),
        devices=("nvidia.com/gpu=0",),
    )


def test_a_small_task_has_the_least_that_a_master_may_have_and_any_node() -> None:
    made = order(TaskSpec(["true"], memory_mb=64), ID, None, ["a"])

    assert made.master == MasterNeeds(LEAST_MEMORY_MB, hosts=[])


def test_a_task_without_a_node_or_without_its_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"none of the nodes that may run it accepts work:"):
        order(TaskSpec(["true"], not_nodes=["a"]), ID, None, ["a"])
    with pytest.raises(JobError, match="gone is not a file of this machine"):
        order(TaskSpec(["true"]), ID, tmp_path / "gone", ["a"])


def test_the_variables_of_a_task_are_the_nodes_the_users_and_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "code.zip")
    monkeypatch.setenv("OF_NODE", "yes")
    settings = TaskSettings(task_id=ID, argv=["true"], variables={"SEED": "1", "NODE_NAME": "other"})

    found = work_folder.environment(settings, tmp_path, "n1", 2, shows_machine=True, of_service={})

    assert {"OF_NODE": "yes", "SEED": "1", "NODE_NAME": "n1", "TASK_ID": ID, "ATTEMPT": "2"}.items() <= found.items()
    assert (found["OUTPUT"], found["PYTHONUNBUFFERED"]) == (str(tmp_path / ".output"), "1")
    assert "PYTHONPATH" not in found


def test_where_the_machine_is_not_seen_its_variables_are_not_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_NODE", "yes")
    settings = TaskSettings(task_id=ID, argv=["true"], variables={"SEED": "1"})

    found = work_folder.environment(settings, tmp_path, "n1", 1, shows_machine=False, of_service={})

    assert (found["SEED"], found["HOME"]) == ("1", str(tmp_path))
    assert {"OF_NODE", "PATH"}.isdisjoint(found)


def test_a_program_finds_the_service_by_the_token_of_its_task_unless_it_tracks_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    assert service_access.variables("https://master:8400", ID, tmp_path, folder) == {}
    (tmp_path / "info_token").write_text("nw_task_secret\n")
    (tmp_path / "info_ca").write_text("authority")

    found = service_access.variables("https://master:8400", ID, tmp_path, folder)
    assert found == {
        "MLFLOW_TRACKING_URI": "https://master:8400",
        "MLFLOW_TRACKING_TOKEN": "nw_task_secret",
        "MLFLOW_RUN_ID": ID,
        "MLFLOW_TRACKING_SERVER_CERT_PATH": str(folder / ".service-ca.pem"),
    }
    assert (folder / ".service-ca.pem").read_text() == "authority"
    elsewhere = {"MLFLOW_TRACKING_URI": "https://other.example"}
    for given, expected in (({}, found), (elsewhere, elsewhere)):
        settings = TaskSettings(task_id=ID, argv=["true"], variables=given)
        environment = work_folder.environment(settings, folder, "n1", 1, shows_machine=False, of_service=found)
        assert {name: text for name, text in environment.items() if name.startswith("MLFLOW")} == expected


def test_one_more_application_of_a_task_counts_its_starts_on() -> None:
    first = order(TaskSpec(["true"]), ID, None, ["a"])
    assert further(first, 0) == first
    second = further(first, 3)
    assert second.settings["starts_before"] == 3 and set(second.tags) == {*first.tags, "starts:3"}
    application = Application("application_1_0001", "", "RUNNING", "UNDEFINED", 0.0, "", "n1", 1.0, attempt=2)
    assert start_of(application) == 2
    assert start_of(replace(application, tags=frozenset(second.tags))) == 5
    waits = replace(application, tags=frozenset(second.tags), attempt=0)
    assert (start_of(waits), starts_until(waits)) == (0, 3)


def test_one_more_application_of_a_task_may_be_bound_to_some_of_its_nodes() -> None:
    spec = TaskSpec(["true"], nodes=("a", "b"))
    bound = further(order(spec, ID, None, ["a", "b"]), 1, ["b"])
    free = further(order(spec, ID, None, ["a", "b"]), 2)

    application = Application("application_1_0001", "", "ACCEPTED", "UNDEFINED", 0.0, "", "N/A", 1.0)
    asked = [(one.master.hosts, tuple(one.settings["bound_to"])) for one in (bound, free)]
    assert asked == [(("b",), ("b",)), (["a", "b"], ())]
    assert [is_bound(replace(application, tags=frozenset(one.tags))) for one in (bound, free)] == [True, False]
    assert [patience_of(replace(application, tags=frozenset({tag}))) for tag in ("bound", "bound:7", "boundless")] == [
        *(60.0, 7.0, None)
    ]


IMAGE = "sha256:" + "a" * 64


def test_a_task_with_an_image_runs_in_a_box_of_docker_and_only_where_the_image_is_allowed() -> None:
    made = order(TaskSpec(["true"], image=f"torch@{IMAGE}"), ID, None, ["a", "b", "c"], image_nodes={"b", "c", "d"})
    assert (made.settings["box"], made.settings["image"]) == ("docker", IMAGE)
    assert made.master.hosts == ["b", "c"]
    fewer = order(TaskSpec(["true"], image=IMAGE, not_nodes=["c"]), ID, None, ["a", "b", "c"], image_nodes={"b", "c"})
    assert fewer.master.hosts == ["b"]
    unknown = order(TaskSpec(["true"], image=IMAGE), ID, None, ["a"])
    assert unknown.master.hosts == []


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (TaskSpec(["true"], box="docker"), "a box of kind docker needs an image: name one by --image"),
        (TaskSpec(["true"], box="process", image=IMAGE), "a box of kind process shows the node and no image: "),
        (TaskSpec(["true"], box="chest"), "there is no box 'chest': choose one of docker, process"),
        (TaskSpec(["true"], image=IMAGE), f"none of the nodes that may run it allows the image {IMAGE}: an operator "),
        (
            TaskSpec(["true"], image=IMAGE, nodes=["b"]),
            f"allows the image {IMAGE} (b): an operator allows it by a line in",
        ),
    ],
)
def test_a_box_that_cannot_be_is_refused_before_anything_runs(spec: TaskSpec, sentence: str) -> None:
    with pytest.raises(JobError) as refused:
        order(spec, ID, None, ["a", "b"], image_nodes={"z"})
    assert sentence in str(refused.value)


def test_a_stream_is_kept_and_passed_on_up_to_its_limit_and_then_says_so(tmp_path: Path) -> None:
    own = os.open(tmp_path / "own", os.O_CREAT | os.O_RDWR)
    spool = Spool(tmp_path / "spool", own, most_bytes=PIECE_BYTES + 5)
    printed = bytes(range(256)) * (PIECE_BYTES // 256)

    spool.write(printed)
    assert spool.read(0) == printed and spool.read(spool.size) == b""
    spool.write(b"1234567")
    spool.write(b"8")

    assert spool.read(PIECE_BYTES) == b"12345" + CUT
    assert (tmp_path / "own").read_bytes() == (tmp_path / "spool").read_bytes() == printed + b"12345" + CUT
    os.close(own)


def test_a_stream_without_room_is_cut_and_the_program_goes_on(tmp_path: Path) -> None:
    own = os.open(tmp_path / "own", os.O_CREAT | os.O_RDWR)
    spool = Spool(Path("/dev/full"), own)

    spool.write(b"first\n")
    spool.write(b"second\n")

    assert spool.size == 0
    assert (tmp_path / "own").read_bytes() == b"first\n\n(cut here: No space left on device)\n"
    os.close(own)


class Uploads:
    """HDFS as far as an upload needs it."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def delete(self, name: str) -> None: ...

    def make_folder(self, name: str) -> None:
        self.made.append(f"{name}/")

    def upload(self, local: Path, name: str) -> None:
        self.made.append(name)

    def identity(self, name: str) -> int:
        return 7


def test_of_an_output_files_folders_and_links_within_are_uploaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "output"
    (folder / "a" / "empty").mkdir(parents=True)
    (folder / "a" / "file").write_text("")
    (folder / "within").symlink_to("a/file")
    (folder / "folder").symlink_to("a")
    (folder / "outside").symlink_to(__file__)
    (folder / "nowhere").symlink_to("gone")
    os.mkfifo(folder / "pipe")
    uploads: Any = Uploads()

    assert Commit(uploads, "/out", 2).upload(folder) == 7

    mine = "/out.attempt_2"
    assert sorted(uploads.made) == [f"{mine}/", f"{mine}/a/", f"{mine}/a/empty/", f"{mine}/a/file", f"{mine}/within"]
    left_out = {line.partition(" ")[0] for line in capsys.readouterr().out.splitlines()}
    assert left_out == {"folder", "outside", "nowhere", "pipe"}


@pytest.mark.parametrize("name", [b"with:colon", b"no-utf8-\xff"])
def test_a_name_that_hdfs_cannot_have_is_refused(name: bytes, tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_text("")
    uploads: Any = Uploads()

    with pytest.raises(JobError, match="HDFS cannot have the file "):
        Commit(uploads, "/out", 1).upload(tmp_path)


@pytest.mark.parametrize(("code", "failure"), [(0, ""), (3, "the program ended with exit code 3")])
def test_what_an_earlier_attempt_noted_is_the_end_and_nothing_runs_again(
    code: int, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NM_HOST", "n1")
    monkeypatch.setattr(runner, "on_stop", lambda _: None)
    settings = {"task_id": ID, "argv": ["/nowhere/program"]}
    noted = [Record("began", {}), Record(ENDED, {"code": code, "failure": failure})]
    spec = type(SPEC)(**{**SPEC.__dict__, "settings": settings})
    nobody = InfoClient("http://127.0.0.1:1")
    task = Task(Attempt(2, spec, NONE, nobody, NONE, "", noted, 0.0, lambda: 0.0))

    if failure:
        with pytest.raises(JobError, match=failure):
            task.run()
    else:
        assert task.run().message == "the program ended with exit code 0"
    assert task.progress().section == {"Program": "/nowhere/program", "Exit code": code}
    assert task.progress().done == (code == 0)


def test_an_environment_lies_beside_the_runner_and_comes_first_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    laid = Laid(archive="/nodewise/env/one.tar.gz")
    made = order(TaskSpec(["python3"], env="latest"), ID, None, ["a"], environment=laid)
    settings = TaskSettings.from_json(made.settings)

    assert made.master.archives == {"env": "/nodewise/env/one.tar.gz"}
    found = work_folder.environment(settings, Path("/container/work"), "a", 1, shows_machine=True, of_service={})
    assert found["PATH"] == "/container/env/bin:/usr/bin"
    without = order(TaskSpec(["python3"]), ID, None, ["a"])
    assert without.master.archives == {}
    with pytest.raises(JobError, match="has the Python of its image"):
        order(TaskSpec(["python3"], image=IMAGE, env="latest"), ID, None, ["a"])


def test_a_root_comes_with_its_variables_and_none_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_NODE", "1")
    manifest = Manifest("tools", "1", "", [], variables={"LANG": "C.UTF-8", "MORE": "image"})
    laid = Laid(parts={"/": "/nodewise/env/blobs/sha256-ab.sqfs"}, manifest=manifest)
    made = order(TaskSpec(["true"], env="tools@1", variables={"MORE": "user"}), ID, None, ["a"], environment=laid)
    settings = TaskSettings.from_json(made.settings)

    found = work_folder.environment(settings, Path("/container/work"), "a", 1, shows_machine=True, of_service={})

    assert (found["LANG"], found["MORE"], found["HOME"]) == ("C.UTF-8", "user", "/container/work")
    assert found["PATH"].endswith("/usr/bin:/sbin:/bin") and "OF_THE_NODE" not in found


def test_an_environment_that_was_made_is_laid_beside_the_runner_and_only_where_it_fits() -> None:
    laid = Laid(parts={"/opt/env": "/nodewise/env/blobs/sha256-ab.sqfs"})
    unfit = Unfit("torch@2", {"a": "it is old"}, lambda nodes: "torch@1" if list(nodes) == ["a"] else "")
    made = order(TaskSpec(["python"], env="torch@2"), ID, None, ["a", "b"], environment=laid, unfit=unfit)
    settings = TaskSettings.from_json(made.settings)

    assert made.master.shared == {"sha256-ab.sqfs": "/nodewise/env/blobs/sha256-ab.sqfs"}
    assert (made.master.archives, made.master.hosts) == ({}, ["b"])
    assert beside(settings.parts, Path("/container")) == {"/opt/env": Path("/container/sha256-ab.sqfs")}
    found = work_folder.environment(settings, Path("/container/work"), "b", 1, shows_machine=True, of_service={})
    assert found["PATH"].startswith("/opt/env/bin:")
    several = replace(settings, parts={f"/opt/{number}": "/ab.sqfs" for number in range(6)})
    found = work_folder.environment(several, Path("/container/work"), "b", 1, shows_machine=True, of_service={})
    assert found["PATH"].startswith("".join(f"/opt/{number}/bin:" for number in reversed(range(6))))
    with pytest.raises(JobError, match="can run torch@2: on a, it is old: take torch@1, the newest version that runs"):
        order(TaskSpec(["python"], env="torch@2"), ID, None, ["a"], environment=laid, unfit=unfit)
    none = replace(unfit, find_newest=lambda _: "")
    with pytest.raises(
        JobError,
        match="on a, it is old: no version of it is known to run on any of them; `nodewise env fit torch@2` tells",
    ):
        order(TaskSpec(["python"], env="torch@2"), ID, None, ["a"], environment=laid, unfit=none)
