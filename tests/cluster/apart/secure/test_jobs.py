"""Jobs where Hadoop has Kerberos: whose they are, what containers may, and who is refused."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from jobs.application.package import WORKER_PYTHON
from tests.cluster.apart.secure.place import NO_TICKET, PICTURES, Command, Place
from tests.cluster.apart.secure.scripts import HELD, OWNERS
from tests.cluster.hadoop_scripts import Scripts
from tests.cluster.site import add_properties, succeed, until


def test_who_has_no_ticket_or_an_expired_one_is_told_so_and_nothing_is_submitted(place: Place, tmp_path: Path) -> None:
    before = place.jobs()
    old = {"KRB5CCNAME": f"FILE:{tmp_path}/old"}
    place.kinit("-l", "1s", **old)
    time.sleep(1.5)
    words = ("job", "run", "--memory", "256", "--wait", "--", "true")

    for shown, command in [(shown, place.start(*words, **shown)) for shown in (NO_TICKET, old)]:
        done = command.end()

        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            f"Error: this cluster has Kerberos, and you have no ticket that is valid now in {shown['KRB5CCNAME']}: "
            "run `kinit`, or name a keytab with --keytab"
        )
    assert place.jobs().keys() == before.keys()


def test_nobody_is_somebody_else(place: Place) -> None:
    users = ("bob", place.cluster.user)
    for user, command in [(user, place.start("job", "list", HADOOP_USER_NAME=user)) for user in users]:
        done = command.end()

        assert done.returncode == 1
        assert f"--user {user} is refused: this cluster has Kerberos, for which you are alice" in done.stderr


def test_a_token_that_yarn_cannot_renew_is_told_and_nothing_runs(place: Place, tmp_path: Path) -> None:
    before, wrong = place.jobs(), tmp_path / "conf"
    shutil.copytree(place.cluster.conf_dir, wrong)
    site, principal = wrong / "yarn-site.xml", "<name>yarn.resourcemanager.principal</name><value>"
    text = site.read_text()
    assert f"{principal}rm/" in text
    site.write_text(text.replace(f"{principal}rm/", f"{principal}other/"))
    add_properties(site, {"yarn.resourcemanager.principal.pattern": "*"})

    done = place.nodewise("job", "run", "--memory", "256", "--wait", "--", "true", HADOOP_CONF_DIR=str(wrong))

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "Error: YARN cannot renew the HDFS_DELEGATION_TOKEN of this submission, which other may renew: "
        "yarn.resourcemanager.principal in your yarn-site.xml must be the ResourceManager's own; if it is, the "
        "ResourceManager's log tells why"
    )
    assert len(place.jobs().keys() - before.keys()) == 1, "YARN refuses it by ending it"


def test_a_ticket_or_a_keytab_is_enough_to_classify_every_picture(service: Place, alice: Scripts) -> None:
    by_ticket = service.start_classifying("hdfs:///user/alice/by_ticket")
    by_keytab = service.start_classifying("hdfs:///user/alice/by_keytab", **service.by_keytab())

    for command in (by_ticket, by_keytab):
        report = command.report()
        assert report["images"] == PICTURES
        assert sum(node["images"] for node in report["nodes"]) == report["images"]
        assert report["failures"] == []
    for target in ("/user/alice/by_ticket", "/user/alice/by_keytab"):
        assert alice.find(OWNERS, target=target) == ["alice"]


def test_a_service_with_a_keytab_runs_tasks(service: Place) -> None:
    done = service.nodewise("task", "submit", "--memory", "256", "--wait", "--", "sh", "-c", "echo spoken; exit 3")

    assert "exit code 3" in done.stdout + done.stderr
    assert any("kind=task" in tags for tags in service.jobs().values())


def test_containers_get_a_token_of_hdfs_that_is_renewed_while_the_job_runs_and_ends_with_it(
    place: Place, alice: Scripts, long_job: tuple[Command, Path]
) -> None:
    command, copy = long_job

    assert succeed(command.end())
    assert alice.find(HELD, file=str(copy)) == [["HDFS_DELEGATION_TOKEN", "ha-hdfs:nodewise", "alice"]]
    until(lambda: "can't be found in cache" in _use(place, copy))  # YARN cancels it soon after the end


def test_what_a_job_says_is_shown_to_whom_it_belongs(place: Place, long_job: tuple[Command, Path]) -> None:
    job_id = str(long_job[0].report()["job_id"])
    by_alice, by_bob = (place.start("job", "logs", job_id, user=user) for user in ("alice", "bob"))

    seen = next(line for line in succeed(by_alice.end()).splitlines() if "| seen" in line)
    assert seen.count(".jpg") == PICTURES
    assert "seen" not in by_bob.end().stdout


def _use(place: Place, tokens: Path) -> str:
    """What is said to who shows these tokens and no ticket."""
    shown = NO_TICKET | {"HADOOP_TOKEN_FILE_LOCATION": str(tokens)}
    words = [str(WORKER_PYTHON), str(place.folder / "use"), f"{tokens}.again", "0"]
    variables = place.variables() | shown
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=120, check=False)
    return done.stderr
