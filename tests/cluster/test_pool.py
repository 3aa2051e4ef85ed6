"""Pools on a real cluster: jobs on workers that are ready, several at once, and whatever is killed meanwhile."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import pytest

from infosvc.wire.records import Kind, Producer, Role
from jobs.kinds.pool.client import Pools
from jobs.kinds.pool.wishes import Picture
from tests.cluster import commands
from tests.cluster.many_pictures import FOLDER, load_pictures
from tests.cluster.site import BROKEN, PICTURES, Site, applications, job_files, succeed, told_by_master, until
from tests.cluster.small_network import small_network
from tests.cluster.test_job import rows
from tests.recipes.pages import block

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("kept_commands")]

MANY = 300
"""Pictures of a job that lasts long enough to have something killed in it."""
NETWORK = ("--engine", "onnx")
"""AlexNet, which is slow enough for that."""
UNHURRIED = ("--lease-seconds", "30", "--container-wait", "300")


def submit(site: Site, output: str, *words: str, source: str = "/data/images") -> subprocess.CompletedProcess[str]:
    """A job for the pool."""
    given = ("--input", f"hdfs://{source}", "--output", f"hdfs://{output}", "--capability", "perf_even")
    return site.nodewise("job", "submit", "--pool", "photos", *given, *words, "--json")


def jobs_of(site: Site) -> list[dict[str, Any]]:
    """As `pool show` lists them, without the time that the command takes to start."""
    return Pools(site.cluster.conf_dir, site.cluster.user).find("photos").jobs()


def job(site: Site, job_id: str) -> dict[str, Any]:
    return next(one for one in jobs_of(site) if one["job_id"] == job_id)


def state(site: Site, application_id: str) -> tuple[str, str]:
    found = next(one for one in applications(site.cluster) if one["id"] == application_id)
    return found["state"], found["finalStatus"]


def processes(application_id: str, module: str) -> list[psutil.Process]:
    """Of the containers of an application, those that run a module of ours, forked ones aside."""
    found = []
    for process in psutil.process_iter():
        try:
            words, container = process.cmdline(), process.environ().get("CONTAINER_ID", "")
            is_first = module not in (process.parent() or process).cmdline() or process.parent() is None
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        is_of = application_id.removeprefix("application_") in container
        if is_of and module in words and "python" in words[0] and is_first:
            found.append(process)
    return found


@contextmanager
def standing_still(pool: str, but: int = 0) -> Iterator[None]:
    """Workers of a pool stand still, so that no job ends before what a test does to it; the worker `but` goes on."""
    still: list[psutil.Process] = []
    try:
        for process in processes(pool, "jobs.worker"):
            if process.pid != but:
                process.suspend()
                still.append(process)
        yield
    finally:
        for process in still:
            with suppress(psutil.NoSuchProcess):  # the pool ends one that is silent for long
                process.resume()


def read_outcomes(site: Site, output: str) -> dict[str, Any]:
    """What became of each picture, whoever looked at it."""
    return {row["path"]: (row["class_id"], row["error"], row["engine"]) for row in rows(site, output)}


@pytest.fixture(scope="module")
def cold(site: Site) -> dict[str, Any]:
    """What a job with containers of its own makes of the pictures."""
    succeed(site.submit("hdfs:///pools/cold", *NETWORK))
    return read_outcomes(site, "/pools/cold")


@pytest.fixture(scope="module")
def many(site: Site, cold: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    load_pictures(site.cluster, tmp_path_factory.mktemp("many"), MANY)
    return FOLDER


@pytest.fixture(scope="module")
def pool(site: Site, cold: dict[str, Any]) -> Iterator[str]:
    """The application of a pool whose workers are ready."""
    words = (*NETWORK, "--batch", "8", "--idle", "0", *UNHURRIED, "--wait", "--json")
    found = json.loads(succeed(site.nodewise("pool", "up", "photos", *words)))
    yield found["job_id"]
    site.nodewise("pool", "down", "photos", "--now")


def test_two_jobs_at_once_have_the_rows_of_a_job_of_its_own(site: Site, cold: dict[str, Any], pool: str) -> None:
    before = len(applications(site.cluster))

    with commands.apart(), ThreadPoolExecutor(2) as threads:
        done = list(threads.map(lambda name: submit(site, f"/pools/{name}", "--wait"), ("one", "two")))

    reports = [json.loads(succeed(one)) for one in done]
    assert read_outcomes(site, "/pools/one") == read_outcomes(site, "/pools/two") == cold
    assert len(cold) == PICTURES + len(BROKEN)
    assert [report["errors"] for report in reports] == [len(BROKEN)] * 2
    assert {report["application_id"] for report in reports} == {pool}
    assert len(applications(site.cluster)) == before, "no job has an application of its own"
    assert len({report["job_id"] for report in reports}) == 2


def test_every_command_of_jobs_knows_a_job_in_a_pool(site: Site, pool: str) -> None:
    report = json.loads(succeed(submit(site, "/pools/known", "--wait")))
    job_id = report["job_id"]

    status = json.loads(succeed(site.nodewise("job", "status", job_id, "--json")))
    listed = json.loads(succeed(site.nodewise("job", "list", "--json")))
    shown = json.loads(succeed(site.nodewise("job", "report", job_id, "--json")))
    explained = json.loads(succeed(site.nodewise("job", "explain", job_id, "--json")))

    assert (status["final"], status["kind"], status["status"]["done"]) == ("SUCCEEDED", "classify", report["images"])
    assert {one["application_id"]: one["final"] for one in listed}[job_id] == "SUCCEEDED"
    assert shown == report
    assert explained["job_id"] == job_id
    assert "ready after" in succeed(site.nodewise("job", "logs", job_id))
    assert job_id in succeed(site.nodewise("job", "kill", job_id))


def test_a_job_sees_values_that_have_changed_since_the_job_before(site: Site, pool: str) -> None:
    client, planned = site.client(), []
    client.put_producer(Producer("my_turn", cmd="", time_max=3600, kind=Kind.PROGRAM))
    for turn in range(2):
        for number, node in enumerate(site.cluster.nodes):
            client.put_value("my_turn", node, 1.0 if number == turn else 0.0)
        given = ("--input", "hdfs:///data/images", "--capability", "my_turn", "--output", f"hdfs:///pools/turn{turn}")
        done = site.nodewise("job", "submit", "--pool", "photos", *given, "--wait", "--json")
        report = json.loads(succeed(done))
        planned.append([node["node_name"] for node in report["nodes"] if node["planned_images"]])
        assert {row["node_name"] for row in rows(site, f"/pools/turn{turn}")} == {site.cluster.nodes[turn]}

    assert planned == [[site.cluster.nodes[0]], [site.cluster.nodes[1]]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engine", "mxnet"), "the pool photos has the engine onnx, and the job wants mxnet"),
        (("--model", "alexnet_int8"), "the pool photos has the model alexnet, and the job wants alexnet_int8"),
        (("--batch", "9"), "the pool photos has --batch 8, and the job wants 9"),
        (("--vcores", "2"), "--vcores cannot be given with --pool: a pool's workers are there already"),
        (("--policy", "nonsense"), "nonsense"),
        (("--output", "hdfs:///pools/cold"), "/pools/cold exists already"),
        (("--input", "hdfs:///not/there"), "/not/there is not in HDFS"),
        (("--pool", "nobodys"), "there is no pool nobodys"),
    ],
)
def test_what_a_pool_cannot_do_is_refused_with_what_to_do(
    site: Site, pool: str, words: tuple[str, ...], said: str
) -> None:
    before = len(jobs_of(site))

    done = submit(site, "/pools/refused", *words)

    assert done.returncode == 1
    assert said in " ".join(done.stderr.split())
    assert len(jobs_of(site)) == before


def test_a_second_pool_of_a_name_is_refused(site: Site, pool: str) -> None:
    done = site.nodewise("pool", "up", "photos", *small_network(site.cluster.home))

    assert done.returncode == 1
    assert f"there is a pool photos already: {pool}" in done.stderr


def test_of_two_commands_that_bring_up_a_pool_of_one_name_at_once_one_does(site: Site, pool: str) -> None:
    words = ("pool", "up", "twins", *small_network(site.cluster.home), "--json")
    with commands.apart(), ThreadPoolExecutor(2) as threads:
        done = list(threads.map(lambda _: site.nodewise(*words), range(2)))

    assert sorted(one.returncode for one in done) == [0, 1]
    up, refused = sorted(done, key=lambda one: one.returncode)
    first = json.loads(up.stdout)["job_id"]
    assert f"there is a pool twins already: {first}" in " ".join(refused.stderr.split())
    listed = json.loads(succeed(site.nodewise("pool", "list", "--json")))
    assert [one["job_id"] for one in listed if one["name"] == "twins"] == [first]
    succeed(site.nodewise("job", "kill", first))


def infer(site: Site, *words: str) -> subprocess.CompletedProcess[str]:
    return site.nodewise("infer", *words, "--pool", "photos", "--timeout", "60", "--json")


@pytest.fixture(scope="module")
def local(site: Site, cold: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A picture on this machine, and the paths in HDFS of all that are pictures; it is the first of them."""
    names = sorted(path for path, (_, error, _) in cold.items() if not error)
    file = tmp_path_factory.mktemp("single") / "picture.jpg"
    with site.hdfs().read(names[0]) as reader:
        file.write_bytes(reader.read())
    return file, names


def test_single_pictures_have_the_classes_that_a_job_gives_them_and_leave_nothing(
    site: Site, cold: dict[str, Any], pool: str, local: tuple[Path, list[str]]
) -> None:
    file, names = local
    before = len(jobs_of(site)), job_files(site.cluster)

    found = json.loads(succeed(infer(site, str(file), *[f"hdfs://{name}" for name in names[1:8]], "--top", "2")))

    assert [row["path"] for row in found] == [str(file), *[f"hdfs://{name}" for name in names[1:8]]]
    assert [row["class_id"] for row in found] == [cold[name][0] for name in names[:8]]
    assert {len(row["top5"]) for row in found} == {2}
    assert {row["node_name"] for row in found} <= set(site.cluster.nodes)
    assert (len(jobs_of(site)), job_files(site.cluster)) == before


def test_pictures_are_answered_while_a_job_is_at_work_and_the_job_goes_on(
    site: Site, cold: dict[str, Any], pool: str, local: tuple[Path, list[str]], many: str
) -> None:
    file, names = local
    given = json.loads(succeed(submit(site, "/pools/beside", source=many)))["job_id"]
    until(lambda: job(site, given)["done"] > 0)

    (row,) = json.loads(succeed(infer(site, str(file))))

    assert row["class_id"] == cold[names[0]][0]
    succeed(site.nodewise("job", "status", given, "--watch"))
    assert len(read_outcomes(site, "/pools/beside")) == MANY


def test_a_pool_that_has_nothing_else_to_do_answers_a_picture_soon(
    site: Site, pool: str, local: tuple[Path, list[str]]
) -> None:
    content = local[0].read_bytes()
    asked = Pools(site.cluster.conf_dir, site.cluster.user).find("photos")
    beyond: list[float] = []
    for _ in range(30):
        begun = time.monotonic()
        row = asked.infer(Picture(name="picture.jpg"), content)
        beyond.append(1000 * (time.monotonic() - begun) - row["work_milliseconds"])

    print(f"ms beyond the work itself: median {median(beyond):.1f}, all {[round(one) for one in beyond]}")
    assert median(beyond) < 1000, "40 where nothing else is at work"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hdfs:///data/images/zz_text.jpg",), "not an image"),
        (("hdfs:///not/there.jpg",), "/not/there.jpg is no file in HDFS"),
        (("hdfs:///data/images",), "/data/images is no file in HDFS"),
        (("not_there.jpg",), "not_there.jpg cannot be read: No such file or directory"),
        (("hdfs:///data/images/zz_text.jpg", "--pool", "nobodys"), "there is no pool nobodys"),
    ],
)
def test_a_picture_that_cannot_be_looked_at_is_told(site: Site, pool: str, words: tuple[str, ...], said: str) -> None:
    done = site.nodewise("infer", "--pool", "photos", *words, "--json")

    assert done.returncode == 1
    assert said in " ".join((done.stdout + done.stderr).split())


def test_the_page_s_commands_ask_about_single_pictures(site: Site, pool: str, local: tuple[Path, list[str]]) -> None:
    file, names = local
    page = block("infer").replace("cat.jpg", str(file)).replace("/data/images/dog.jpg", names[1])

    for line in page.splitlines():
        said = succeed(site.nodewise(*shlex.split(line, comments=True)[1:]))
        print(f"{line}\n{said}")

    assert json.loads(said)[0]["path"] == str(file)


def test_the_page_s_calls_have_the_service_ask_about_single_pictures(
    site: Site, cold: dict[str, Any], pool: str, local: tuple[Path, list[str]], tmp_path: Path
) -> None:
    file, names = local
    token = tmp_path / "maria.token"
    token.write_text(site.client().create_token("maria", Role.USER)[1])
    page = block("infer-rest").replace("cat.jpg", str(file)).replace("/data/images/dog.jpg", names[1])
    page = page.replace("maria.token", str(token)).replace("http://127.0.0.1:8400", site.url)

    said = []
    for line in page.splitlines():
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, timeout=120)
        said.append(json.loads(done.stdout))

    assert [one["error"] for one in said] == [None, None], said
    assert [one["classes"][0]["class_id"] for one in said] == [cold[name][0] for name in names[:2]]


def test_the_page_s_calls_give_the_pool_a_job_and_show_it(
    site: Site, cold: dict[str, Any], pool: str, tmp_path: Path
) -> None:
    token = tmp_path / "maria.token"
    token.write_text(site.client().create_token("maria", Role.USER)[1])
    page = block("pool-rest").replace("perf_cpu", "perf_even")
    page = page.replace("maria.token", str(token)).replace("http://127.0.0.1:8400", site.url)
    size = len(site.cluster.nodes)

    def ask(line: str) -> Any:
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, timeout=120)
        return json.loads(done.stdout)

    def look() -> Any:
        """The pool, once its master tells in time of jobs and workers: these keep the machine busy."""
        found = ask(show)
        return found if found.get("jobs") and found["ready"] == size else None

    list_all, give, show = page.splitlines()
    listed, given = ask(list_all), ask(give)
    shown = until(look)
    assert [(one["name"], one["job_id"], one["own"]) for one in listed["pools"]] == [("photos", pool, True)]
    assert given["job_id"] in [one["job_id"] for one in shown["jobs"]], shown
    assert shown["wanted"] == size
    until(lambda: job(site, given["job_id"])["state"] == "succeeded")
    assert read_outcomes(site, "/out/by-rest") == cold


def test_a_worker_that_is_killed_is_replaced_and_no_picture_is_lost(site: Site, pool: str, many: str) -> None:
    victims = {process.pid for process in processes(pool, "jobs.worker")}
    assert len(victims) == len(site.cluster.nodes)
    with standing_still(pool, but=min(victims)):
        given = json.loads(succeed(submit(site, "/pools/killed", source=many)))["job_id"]
        until(lambda: job(site, given)["done"] > 0)

        os.kill(min(victims), signal.SIGKILL)

        until(lambda: Pools(site.cluster.conf_dir, site.cluster.user).find("photos").job(given)[0]["news"])
    succeed(site.nodewise("job", "status", given, "--watch"))
    assert len(read_outcomes(site, "/pools/killed")) == MANY
    report = json.loads(succeed(site.nodewise("job", "report", given, "--json")))
    assert len(report["failures"]) == 1
    until(lambda: len({one.pid for one in processes(pool, "jobs.worker")}) == len(site.cluster.nodes))


def test_one_that_is_killed_or_whose_submitter_is_leaves_the_other_alone(site: Site, pool: str, many: str) -> None:
    command = [sys.executable, "-m", "nodewise", "--home", str(site.cluster.home), "job", "submit", "--pool", "photos"]
    given = ("--input", f"hdfs://{many}", "--output", "hdfs:///pools/orphan", "--capability", "perf_even", "--wait")
    environment = {**os.environ, "NODEWISE_URL": site.url}
    environment.pop("HADOOP_CONF_DIR", None)
    with standing_still(pool):
        victim = subprocess.Popen([*command, *given], env=environment, stderr=subprocess.DEVNULL)
        orphan = until(lambda: [one["job_id"] for one in jobs_of(site) if one["output"] == "/pools/orphan"])[0]
        other = json.loads(succeed(submit(site, "/pools/ended", source=many)))["job_id"]
        until(lambda: job(site, other)["state"] == "running")
        victim.kill()
        victim.wait()

        assert "killed" in succeed(site.nodewise("job", "kill", other))

    succeed(site.nodewise("job", "status", orphan, "--watch"))
    assert len(read_outcomes(site, "/pools/orphan")) == MANY
    assert job(site, other)["state"] == "killed"
    assert site.hdfs().status("/pools/ended", strict=False) is None


def test_one_whose_results_could_not_be_stored_is_resumed(site: Site, pool: str, many: str) -> None:
    with standing_still(pool):
        given = json.loads(succeed(submit(site, "/pools/kept", source=many)))["job_id"]
        until(lambda: job(site, given)["state"] == "running")
        site.hdfs().write("/pools/kept/foreign", data=b"of somebody else")

    until(lambda: job(site, given)["state"] == "failed")

    assert f"`nodewise job resume {given}`" in job(site, given)["said"]
    assert site.nodewise("job", "resume", given).returncode == 1, "the output is still there"
    site.hdfs().delete("/pools/kept", recursive=True)
    succeed(site.nodewise("job", "resume", given))
    assert len(read_outcomes(site, "/pools/kept")) == MANY
    assert given not in job_files(site.cluster)
    report = json.loads(succeed(site.nodewise("job", "report", "hdfs:///pools/kept", "--json")))
    assert (report["job_id"], report["application_id"]) == (given, pool)


def test_jobs_go_on_when_the_pool_s_master_is_killed(site: Site, pool: str, many: str) -> None:
    workers = {process.pid for process in processes(pool, "jobs.worker")}
    (master,) = processes(pool, "jobs.kinds")
    with commands.apart(), ThreadPoolExecutor(2) as threads:
        done = threads.map(lambda number: submit(site, f"/pools/master{number}", source=many), range(2))
        given = [json.loads(succeed(one))["job_id"] for one in done]
    until(lambda: all(job(site, one)["done"] > 0 for one in given))

    master.kill()

    for number, one in enumerate(given):
        succeed(site.nodewise("job", "status", one, "--watch"))
        assert len(read_outcomes(site, f"/pools/master{number}")) == MANY
    assert workers & {process.pid for process in processes(pool, "jobs.worker")}, "workers stay"
    told = until(lambda: told_by_master(site.nodewise("job", "status", pool, "--json")))
    assert told["status"]["attempt"] == 2


def test_a_pool_goes_down_when_its_jobs_are_done_and_leaves_nothing(site: Site, pool: str, many: str) -> None:
    with standing_still(pool):
        last = json.loads(succeed(submit(site, "/pools/last", source=many)))["job_id"]

        assert "once its job is done" in succeed(site.nodewise("pool", "down", "photos"))
        assert "is going down" in submit(site, "/pools/late").stderr
    until(lambda: state(site, pool) == ("FINISHED", "SUCCEEDED"))

    assert len(read_outcomes(site, "/pools/last")) == MANY
    assert json.loads(succeed(site.nodewise("job", "status", last, "--json")))["final"] == "SUCCEEDED"
    until(lambda: job_files(site.cluster) == set())
    done = submit(site, "/pools/late")
    assert "there is no pool photos" in done.stderr
    assert "`nodewise pool up photos" in done.stderr


def test_a_pool_that_nobody_needs_ends_and_a_job_may_wait_for_one(site: Site, pool: str, tmp_path: Path) -> None:
    until(lambda: state(site, pool)[0] == "FINISHED")
    words = (*small_network(site.cluster.home), "--nodes", "2", "--best-by", "perf_even", "--idle", "30s")
    with commands.apart(), ThreadPoolExecutor(1) as threads:
        waits = threads.submit(submit, site, "/pools/waited", "--wait-for-pool", "240", "--wait")
        found = json.loads(succeed(site.nodewise("pool", "up", "photos", *words, "--json")))["job_id"]
        report = json.loads(succeed(waits.result()))

    assert 1 <= len(report["nodes"]) <= 2
    until(lambda: state(site, found) == ("FINISHED", "SUCCEEDED"))
    ended = next(one for one in applications(site.cluster) if one["id"] == found)
    assert "it had no job or picture for 30s" in ended["diagnostics"]


def test_the_page_s_commands_make_a_pool_use_it_and_end_it(site: Site, pool: str) -> None:
    until(lambda: Pools(site.cluster.conf_dir, site.cluster.user).list() == [])

    for line in block("pool").replace("perf_cpu", "perf_even").splitlines():
        words = shlex.split(line, comments=True)
        said = succeed(site.nodewise(*words[1:]))
        print(f"{line}\n{said}")

    assert len(rows(site, "/out/pooled")) == PICTURES + len(BROKEN)
    assert "the pool photos goes down" in said
    until(lambda: state(site, applications(site.cluster)[-1]["id"]) == ("FINISHED", "SUCCEEDED"))
