"""Work of several kinds, of alice's and of bob's, that goes on while masters end."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task
from tests.cluster.apart.secure.place import Place
from tests.cluster.apart.secure.scripts import STATUS
from tests.cluster.hadoop_scripts import Scripts
from tests.cluster.site import ANSWER_SECONDS, find_processes, succeed, until, wait_for_end
from tests.learning.results import PROGRAM

CHAIN = "/user/alice/through_failover"
TRAINING = "hdfs:///user/alice/trained"
BATCH = ("--batch", "32")
STEPS = 128
MEMBERS = 2
ARRAY = (1, 2)
IN_ENVIRONMENT = """
import os, packaging
print(os.environ["ARRAY_INDEX"], packaging.__file__)
"""


@dataclass(frozen=True)
class Work:
    """A training run of alice's, a chain and an array of bob's; the first two end once there is the file `go`."""

    place: Place
    alice: Scripts
    bob: InfoClient
    go: Path
    training: str
    chain: tuple[Task, Task]
    array: tuple[Task, ...] = ()

    def is_running(self) -> bool:
        """Whether YARN runs the training run, the first of the chain and the first of the array."""
        tags = [set(one.split(",")) for one in self.place.jobs("RUNNING").values()]
        wanted = (f"task:{self.chain[0].task_id}", f"task:{self.array[0].task_id}", "kind=train")
        return all(any(tag in of_one for of_one in tags) for tag in wanted)

    def has_trained(self) -> bool:
        """Whether the members have come together and done a step."""
        return bool(self._look()[1].get("done"))

    def has_ended(self) -> bool:
        """Whether the training run has ended."""
        return bool(self._look()[0])

    def lose_a_member(self) -> None:
        """Kill one member of the training run; its store process came later."""
        os.kill(min(find_processes(self.training, PROGRAM.name)), signal.SIGKILL)

    def is_whole_again(self) -> bool:
        """Whether the training run knows of its loss, and has all its members."""
        training = (self._look()[1].get("section") or {}).get("training", {})
        sizes = [len(one["nodes"]) for one in training.get("generations", ())]
        return bool(training.get("losses")) and sizes[-1:] == [MEMBERS]

    def members_told(self) -> int:
        """How many members the command tells of, which asks the application master now."""
        told = self.place.ask_command("train", "status", self.training)["status"] or {}
        generations = (told.get("section") or {}).get("training", {}).get("generations")
        return len(generations[-1]["nodes"]) if generations else 0

    def _look(self) -> tuple[bool, Mapping[str, Any]]:
        """Whether the training run has ended, and what its application master tells; nothing while nobody answers."""
        try:
            has_ended, told = self.alice.find(STATUS, job=self.training)
        except AssertionError as error:
            print(error)  # for whoever reads why a test has failed
            return False, {}
        return has_ended, told

    def found_by_members(self) -> list[list[float]]:
        """What each member that came to the end has printed."""
        said = succeed(self.place.nodewise("train", "logs", self.training))
        lines = [line.partition(" | ")[2] for line in said.splitlines()]
        return [json.loads(line) for line in lines if line.startswith("[")]

    def ended(self, tasks: Iterable[Task]) -> list[tuple[str, str, str]]:
        """The state of each task once all have ended, why, and what each has printed."""
        known = [wait_for_end(self.bob, one.task_id, 480) for one in tasks]
        return [(one.state, one.reason, self.bob.task_log(one.task_id, "stdout").text) for one in known]


def start_work(place: Place, alice: Scripts, folder: Path) -> Work:
    """Start all of it, the array last; bob is a user of the service, whom it serves with alice's keytab."""
    with InfoClient.from_token_file(place.url, place.token_file, ANSWER_SECONDS) as admin:
        _, token = admin.create_token("bob", Role.USER)
    bob, go = InfoClient(place.url, token, ANSWER_SECONDS), folder / "go"
    wait = f"while [ ! -e {go} ]; do sleep 0.2; done; echo the word > $OUTPUT/word"
    first = bob.submit_task(TaskSpec(("sh", "-c", wait), memory_mb=128, output=f"hdfs://{CHAIN}"))
    read, data = ("sh", "-c", "cat $DATA/*/word"), (f"hdfs://{CHAIN}",)
    second = bob.submit_task(TaskSpec(read, memory_mb=128, data=data, after=(first.task_id,)))
    words = ("--members", str(MEMBERS), "--memory", "512", "--output", TRAINING, "--file", str(PROGRAM), "--json")
    program = ("--", "python", PROGRAM.name, *BATCH, "--until", str(go))
    submitted = json.loads(succeed(place.nodewise("train", "submit", *words, *program)))
    begun = Work(place, alice, bob, go, submitted["job_id"], (first, second))
    until(begun.has_trained)
    return replace(begun, array=tuple(bob.submit_task(_one_of_array(number)) for number in ARRAY))


def _one_of_array(number: int) -> TaskSpec:
    """The first one is in a box, whose image its node does not have."""
    program, box = ("python", "-c", IN_ENVIRONMENT), "docker" if number == ARRAY[0] else None
    variables = {"ARRAY_INDEX": str(number)}
    return TaskSpec(program, memory_mb=128, variables=variables, array="later", at_once=1, env="plain@1", box=box)
