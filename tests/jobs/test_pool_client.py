"""How a user's commands find a pool and speak to its master, over real HTTP; Hadoop's masters are played."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.application.calls import Refused, Request, decode_body, decode_query
from jobs.application.coordinator import Hearing, Progress
from jobs.application.job_record import JobRecord
from jobs.application.listener import Listener
from jobs.application.master import status_of
from jobs.application.submit import Order
from jobs.commands.job.pooled import Followed, _wants
from jobs.commands.pool.pool_up import _check_name_is_free
from jobs.engines.network import choose
from jobs.errors import JobError
from jobs.kinds.classify.request import KIND
from jobs.kinds.pool import client as pool_client
from jobs.kinds.pool.client import Ended, NotNow, Pools, patiently
from jobs.kinds.pool.request import check_files, check_fits, order
from jobs.kinds.pool.settings import PoolSettings, check_name
from jobs.kinds.pool.wishes import LARGEST_PICTURE, USERS, JobWish, Picture, Refusal
from tests.jobs.played import JOB, Hadoop, running_app
from tests.jobs.stored import SETTINGS, SPEC

NONE: Any = None
WISH = JobWish(key="k", input="/in", output="/out", capability="weight")
FOLDER = f"/user/me/.nodewise/{JOB}"


class Answering(Hearing):
    """A pool's master that says what the test wants; `heard` is what it was asked."""

    calls = USERS

    def __init__(self) -> None:
        self.answers: list[Mapping[str, Any]] = []
        self.heard: list[tuple[str, bytes]] = []
        self.pictures: list[Picture] = []

    def hear(self, call: str, request: Request) -> Mapping[str, Any]:
        self.heard.append((call, request.body))
        if call == "/pool/submit":
            decode_body(request.body, JobWish)
        if call == "/pool/infer":
            self.pictures.append(decode_query(request.query, Picture))
        if not self.answers:
            raise Refused("nothing more was expected")
        return self.answers.pop(0)


class Place:
    """A cluster with one pool, called photos."""

    def __init__(self, hadoop: Hadoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str = "me") -> None:
        self.hadoop, self.master = hadoop, Answering()
        self.listeners: list[Listener] = []
        self.folder = FOLDER.replace("/me/", f"/{owner}/")
        settings = PoolSettings(name="photos", job=asdict(replace(SETTINGS, engine="onnx", model="alexnet")))
        self.spec = replace(SPEC, kind="pool", job_id=JOB, staging=FOLDER, token="t", settings=asdict(settings))
        hadoop.app |= {"applicationTags": "kind=pool,pool=photos"}
        hadoop.stored[f"{self.folder}/job.json"] = self.spec.to_bytes()
        address = (f"http://{hadoop.address}",)
        monkeypatch.setattr(pool_client, "resourcemanager_addresses", lambda _: address)
        monkeypatch.setattr(pool_client, "namenode_addresses", lambda _: address)
        self.pools = Pools(tmp_path, owner)
        self.listen()

    def listen(self) -> Listener:
        """Another attempt at being the master."""
        listener = Listener("127.0.0.1", self.spec.token)
        self.listeners.append(listener)
        listener.serve(self.master, lambda: NONE, lambda: "")
        self.hadoop.stored[f"{self.folder}/master.json"] = json.dumps({"address": listener.address}).encode()
        return listener

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()


@pytest.fixture
def place(hadoop: Hadoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr(pool_client, "PAUSE_SECONDS", 0.01)
    made = Place(hadoop, tmp_path, monkeypatch)
    yield made
    made.close()


def test_a_pool_is_found_by_its_tag_and_is_given_a_job(place: Place) -> None:
    place.master.answers.append({"job_id": "pool_1700000000000_0001_1", "notes": ["by perf"]})

    assert [(one.name, one.application_id, one.user) for one in place.pools.list()] == [("photos", JOB, "me")]
    assert place.pools.find("photos").submit(WISH) == ("pool_1700000000000_0001_1", ["by perf"])
    assert place.master.heard[0][0] == "/pool/submit"
    assert json.loads(place.master.heard[0][1])["output"] == "/out"


def test_a_picture_travels_as_its_bytes_or_as_its_path(place: Place) -> None:
    row = {"path": "größe & co.jpg", "class_id": 3, "error": None}
    place.master.answers += [{"row": row}, {"row": {"path": "/a.jpg"}}]
    sent, stored = Picture(name="größe & co.jpg", seconds=2.5), Picture(path="/a.jpg")
    pool = place.pools.find("photos")

    assert pool.infer(sent, b"\xff\xd8 bytes") == row
    assert pool.infer(stored) == {"path": "/a.jpg"}
    assert place.master.pictures == [sent, stored]
    assert [body for _, body in place.master.heard] == [b"\xff\xd8 bytes", b""]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "cat.jpg is empty: give a file"),
        (b"x" * (LARGEST_PICTURE + 1), "cat.jpg has more than the 8,388,608 bytes that are sent to a pool at most"),
    ],
    ids=["empty", "large"],
)
def test_what_can_be_no_picture_is_not_sent(place: Place, content: bytes, said: str) -> None:
    with pytest.raises(JobError, match=said):
        place.pools.find("photos").infer(Picture(name="cat.jpg"), content)

    assert place.master.heard == []


def test_a_pool_that_is_full_may_be_asked_later_about_a_picture(place: Place) -> None:
    place.master.answers.append(Refusal("the pool photos is full", "ask again", True).to_json())

    with pytest.raises(NotNow, match="the pool photos is full: ask again"):
        place.pools.find("photos").infer(Picture(name="cat.jpg"), b"x")


@pytest.mark.parametrize(
    "change",
    [
        {"user": "you"},
        {"state": "FINISHED"},
        {"applicationTags": "kind=pool,pool=other"},
        {"applicationTags": "pool=photos"},
    ],
)
def test_another_s_pool_or_one_that_has_ended_is_none_of_the_user_s(place: Place, change: dict[str, str]) -> None:
    place.hadoop.app |= change

    with pytest.raises(NotNow, match=r"there is no pool photos: me has .*: `nodewise pool up photos --engine ENGINE`"):
        place.pools.find("photos")


def test_who_names_another_s_pool_hears_at_once_whose_it_is_and_its_master_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_client, "AWAY_SECONDS", 1e6)  # nobody would wait for that
    place.hadoop.app |= {"user": "you"}

    with pytest.raises(NotNow, match="there is no pool photos: me has none: "):
        place.pools.find("photos")
    with pytest.raises(JobError, match=f"the pool {JOB} is you's, and me may not ask it: have you ask it") as refused:
        place.pools.of(JOB).job("pool_1700000000000_0001_1")

    assert not isinstance(refused.value, NotNow), "it does not pass"
    assert place.master.heard == []


def test_a_pool_of_the_user_s_own_is_found_by_its_application_until_it_has_ended(place: Place) -> None:
    place.master.answers.append({"jobs": []})
    assert place.pools.of(JOB).jobs() == []

    for change in ({"state": "FINISHED"}, {"user": "you"}):
        place.hadoop.app |= change
        with pytest.raises(Ended, match=f"the pool {JOB} has ended, and its jobs with it"):
            place.pools.of(JOB)
    with pytest.raises(Ended, match="has ended"):
        place.pools.of("application_1700000000000_0009")


def test_of_two_pools_of_a_name_the_one_counts_that_yarn_took_first(place: Place) -> None:
    second = running_app(2, "alpha", applicationTags="kind=pool,pool=photos", startedTime=1_700_000_000_005)
    other = running_app(3, "alpha", applicationTags="kind=pool,pool=photos", user="you", startedTime=1)
    place.hadoop.others += [second, other]
    assert place.pools.find("photos").application_id == JOB
    assert place.pools.find_older("photos", JOB) is None
    assert place.pools.find_older("paintings") is None

    place.hadoop.app |= {"startedTime": 1_700_000_000_010}  # it had its number earlier, and was submitted later

    assert place.pools.find("photos").application_id == second["id"]
    found = [place.pools.find_older("photos", mine) for mine in (JOB, second["id"], "")]
    assert [one and one.application_id for one in found] == [second["id"], None, second["id"]]


def test_who_brings_a_pool_up_at_the_same_moment_as_another_ends_it_again_and_says_so(place: Place) -> None:
    second = running_app(2, "alpha", applicationTags="kind=pool,pool=photos", startedTime=1_700_000_000_005)
    place.hadoop.others.append(second)
    killed: list[str] = []
    submitter: Any = SimpleNamespace(conf_dir=NONE, user="me", kill=killed.append)

    _check_name_is_free(submitter, "photos", JOB)
    with pytest.raises(JobError, match=f"there is a pool photos already: {JOB}"):
        _check_name_is_free(submitter, "photos", second["id"])

    assert killed == [second["id"]]


@pytest.mark.parametrize("passes", [True, False])
def test_a_refusal_is_a_sentence_with_its_remedy_and_tells_whether_to_wait(place: Place, passes: bool) -> None:
    place.master.answers.append(Refusal("the pool photos is full", "wait", passes).to_json())

    with pytest.raises(JobError, match=r"^the pool photos is full: wait$") as refused:
        place.pools.find("photos").submit(WISH)

    assert isinstance(refused.value, NotNow) == passes


def test_a_call_goes_to_the_next_attempt_when_the_master_is_lost(place: Place) -> None:
    pool = place.pools.find("photos")
    place.master.answers += [{"jobs": []}, {"jobs": [{"job_id": "x"}]}]
    assert pool.jobs() == []
    place.listeners[0].close()
    place.listen()

    assert pool.jobs() == [{"job_id": "x"}]


def test_a_master_that_is_lost_with_its_pool_is_told_from_one_that_comes_back(place: Place) -> None:
    pool = place.pools.find("photos")
    place.listeners[0].close()
    place.hadoop.app |= {"state": "KILLED"}

    with pytest.raises(NotNow, match=f"the pool {JOB} has ended"):
        pool.jobs()


def test_who_gave_up_on_a_master_that_was_lost_finds_the_next_one_with_his_next_call(place: Place) -> None:
    pool, picture = place.pools.find("photos"), Picture(name="cat.jpg")
    place.master.answers += [{"row": {"path": "1"}}, {"row": {"path": "2"}}]
    assert pool.infer(picture, b"x", away_seconds=0.0) == {"path": "1"}
    place.listeners[0].close()
    with pytest.raises(NotNow, match="does not answer"):
        pool.infer(picture, b"x", away_seconds=0.0)
    place.listen()

    assert pool.infer(picture, b"x", away_seconds=0.0) == {"path": "2"}


def test_a_stranger_who_listens_where_the_master_did_is_not_taken_for_it(place: Place) -> None:
    pool = place.pools.find("photos")
    place.master.answers += [{"jobs": []}, {"jobs": [{"job_id": "x"}]}]
    assert pool.jobs() == []
    stranger = Listener("127.0.0.1", "another token")
    place.listeners.append(stranger)
    pool._address = stranger.address

    assert pool.jobs() == [{"job_id": "x"}]


def test_a_pool_that_yarn_has_forgotten_has_ended(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = place.pools.find("photos")
    place.master.answers.append({"jobs": []})
    assert pool.jobs() == []
    place.listeners[0].close()
    monkeypatch.setattr(place.hadoop, "yarn", lambda *_: None)

    with pytest.raises(Ended, match=f"the pool {JOB} has ended"):
        pool.jobs()


@pytest.mark.parametrize(("pool_state", "final"), [("RUNNING", "UNDEFINED"), ("KILLED", "KILLED")])
def test_a_job_whose_pool_does_not_answer_has_ended_only_if_the_pool_has(
    place: Place, monkeypatch: pytest.MonkeyPatch, pool_state: str, final: str
) -> None:
    monkeypatch.setattr(pool_client, "AWAY_SECONDS", 0.0)
    job_id, pool = "pool_1700000000000_0001_1", place.pools.find("photos")
    status = status_of(replace(place.spec, job_id=job_id), "running", 1, 0.0, Progress(1, 3, "images"), ())
    place.hadoop.stored[f"/user/me/.nodewise/records/{job_id}.json"] = JobRecord(status).to_bytes()
    place.listeners[0].close()
    place.hadoop.app |= {"state": pool_state}

    assert Followed(place.pools, pool).look(job_id).final == final


def test_a_call_that_is_wrong_is_not_made_again(place: Place) -> None:
    with pytest.raises(JobError, match="the pool's master refused /pool/jobs: nothing more was expected"):
        place.pools.find("photos").jobs()

    assert len(place.master.heard) == 1


def test_who_waits_for_a_pool_tries_again_until_there_is_one_and_says_why_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_client, "PAUSE_SECONDS", 0.001)
    said: list[str] = []
    left = iter([NotNow("there is no pool"), NotNow("there is no pool"), NotNow("it is full"), None])

    def give() -> str:
        if error := next(left):
            raise error
        return "given"

    assert patiently(60, give, said.append) == "given"
    assert said == ["waits: there is no pool", "waits: it is full"]


def test_who_does_not_wait_or_is_refused_for_good_hears_it_at_once() -> None:
    tries: list[str] = []

    def give() -> None:
        tries.append("given")
        raise error

    for seconds, error in ((0, NotNow("it is full")), (60, JobError("never"))):
        with pytest.raises(JobError, match=error.message):
            patiently(seconds, give, tries.append)
    assert len(tries) == 2


@pytest.mark.parametrize(
    ("wants", "said"),
    [
        ({"engine": "mxnet"}, "the pool photos has the engine onnx, and the job wants mxnet: leave that option out"),
        ({"engine": "onnx", "model": "0123456789ab"}, "has the model alexnet, and the job wants 0123456789ab"),
        ({"batch": 7}, "has --batch 32, and the job wants 7"),
    ],
)
def test_a_job_that_wants_another_network_is_refused(place: Place, wants: dict[str, Any], said: str) -> None:
    pool = place.pools.find("photos")
    check_fits("photos", pool, {"engine": "onnx", "model": "alexnet", "batch": 32})

    with pytest.raises(JobError, match=said):
        check_fits("photos", pool, wants)


class Files:
    """A pool's network and a job's, each with files of its own."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place, self.folders = place, (folder / "pool", folder / "job")
        for one in self.folders:
            one.mkdir()
            self.write(one, model=b"m")

    def write(self, folder: Path, **contents: bytes) -> None:
        names = {"model": "net.onnx", "labels": "labels.txt", "preparation": "net.toml"}
        for what, content in contents.items():
            (folder / names[what]).write_bytes(content)

    def bring_up(self, **contents: bytes) -> None:
        """Start the pool as its command does, its network with these files."""
        mine = self.folders[0]
        self.write(mine, **contents)
        labels = str(mine / "labels.txt") if "labels" in contents else None
        network = choose("onnx", str(mine / "net.onnx"), None, Path(labels) if labels else None)
        staged = network.staged_names()
        settings = asdict(replace(SETTINGS, engine="onnx", model=network.model)) | staged
        job = Order(KIND, "", settings, uploads={staged[name]: file for name, file in network.files()})
        asked = order(PoolSettings(name="photos"), job)
        assert (job.stands, asked.stands) == (False, True), "YARN counts its attempts of ten minutes alone"
        told = asked.settings
        self.place.spec = replace(self.place.spec, settings=told)
        self.place.hadoop.stored[f"{FOLDER}/job.json"] = self.place.spec.to_bytes()

    def give(self, *named: str, **contents: bytes) -> None:
        """What a job is refused for that names these options, with these files on its side."""
        mine, pool = self.folders[1], self.place.pools.find("photos")
        self.write(mine, **contents)
        given = {"engine": "onnx", "model": str(mine / "net.onnx"), "labels": str(mine / "labels.txt"), "batch": 32}
        wants, files = _wants(given, set(named), pool.settings.job)
        check_fits("photos", pool, wants)
        check_files("photos", pool, files)


@pytest.fixture
def files(place: Place, tmp_path: Path) -> Files:
    return Files(place, tmp_path)


def test_files_of_a_network_are_compared_by_their_content(files: Files) -> None:
    files.bring_up(labels=b"cat", preparation=b"mean = [0]")

    files.give("model", "labels", labels=b"cat", preparation=b"mean = [0]")
    with pytest.raises(
        JobError, match=r"the pool photos has other labels than .*/job/labels\.txt: leave that option out"
    ):
        files.give("labels", labels=b"dog")
    with pytest.raises(JobError, match=r"the pool photos has other preparation than .*/job/net\.toml"):
        files.give("model", preparation=b"mean = [1]")
    (files.folders[1] / "net.toml").unlink()
    with pytest.raises(JobError, match="the pool photos has a file of preparation, and the job has none"):
        files.give("model")


def test_a_file_that_the_pool_has_not_is_told(files: Files) -> None:
    files.bring_up()

    files.give("model")
    with pytest.raises(JobError, match=r"the pool photos has no labels, and the job has .*/job/labels\.txt"):
        files.give("labels", labels=b"cat")


@pytest.mark.parametrize(("idle", "seconds"), [("90s", 90), ("45", 45), ("30m", 1800), ("2h", 7200), ("0", None)])
def test_idle_is_a_time(idle: str, seconds: float | None) -> None:
    assert PoolSettings(idle=idle).idle_seconds == seconds


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (PoolSettings(idle="soon"), "--idle is 'soon': give a time such as 90s, 30m or 2h, or 0 for never"),
        (PoolSettings(nodes="some"), "--nodes is 'some': give all, or a number of 1 or more"),
        (PoolSettings(nodes="0"), "--nodes is '0'"),
        (PoolSettings(nodes="0", best_by="perf"), "--nodes is '0'"),
        (PoolSettings(best_by="perf"), "--best-by perf chooses some of the nodes, .*: give --nodes N, too"),
    ],
)
def test_what_is_no_time_or_number_is_refused(settings: PoolSettings, said: str) -> None:
    with pytest.raises(JobError, match=said):
        settings.check()


def test_a_name_has_to_be_one_that_a_tag_can_have() -> None:
    assert check_name("photos.v2") == "photos.v2"
    with pytest.raises(JobError, match="'My Pool' is no name of a pool"):
        check_name("My Pool")


def test_a_pool_that_is_open_is_not_done_although_nothing_is_left() -> None:
    assert not Progress(3, 3, "images", is_open=True).is_done
    assert Progress(3, 3, "images", is_open=True).share == 0.0
    assert Progress(3, 3, "images").is_done
