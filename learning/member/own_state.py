"""The state that members hand to each other and store: the learner's, and what all members know of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from learning.errors import LearningError
from learning.learners import Learner
from learning.member.rounds import Rounds
from learning.member.share_plan import SharePlan
from learning.state.framed import frame, unframe
from locality.training.sample_order import SampleOrder

FORMAT = 1


class OwnState:
    """Of one member: `order` says which samples each step uses, `steps_in_all` when the run ends, `data` what they are.

    `loss` is that of the last step, None before the first.
    """

    def __init__(
        self,
        learner: Learner,
        plan: SharePlan,
        rounds: Rounds,
        order: SampleOrder,
        steps_in_all: int,
        data: str = "",
    ) -> None:
        self._learner = learner
        self._plan = plan
        self._rounds = rounds
        self._run = {**asdict(order), "numbers": learner.size, "dtype": str(learner.dtype)}
        if data:
            self._run["data"] = data
        self._ends = {"steps": steps_in_all, "sync": rounds.sync}
        self.loss: float | None = None

    def pack(self) -> bytes:
        """All of it."""
        return self._learner.state(self.pack_plan())

    def pack_plan(self) -> bytes:
        """What members know of the run, without the learner's state."""
        told = {"format": FORMAT, "run": self._run, "ends": self._ends, "plan": self._plan.to_json(), "loss": self.loss}
        return frame({**told, "rounds": self._rounds.to_json()}, [])

    def load(self, content: bytes) -> None:
        """Continue from what `pack` gave; LearningError when it is of another model, or of other data."""
        head, state = _split(content)
        self._load(head, state)

    def take_over(self, content: bytes | bytearray, *, is_behind: bool) -> None:
        """Know of the run what rank 0 does, whose `pack` or `pack_plan` this is; who `is_behind` has its state, too.

        Memory that can be written is given away to it. LearningError when it trains something else.
        """
        head, state = _split(content)
        self._check({**head["run"], **head["ends"]}, {**self._run, **self._ends}, "another member trains")
        if is_behind:
            self._load(head, state)
        else:
            self._load_plan(head)

    def _load(self, head: Mapping[str, Any], state: memoryview) -> None:
        self._check(head["run"], self._run, "the state is of a run")
        self._learner.load(state)
        self._load_plan(head)

    def _load_plan(self, head: Mapping[str, Any]) -> None:
        self._plan.load(head["plan"])
        self._rounds.load(head.get("rounds"))
        self.loss = head["loss"]

    def _check(self, theirs: Mapping[str, Any], own: Mapping[str, Any], what: str) -> None:
        for name, value in own.items():
            if theirs.get(name) != value:
                raise LearningError(
                    f"{what} with {name} {theirs.get(name)}, and this process has {value}",
                    "take the same model, data, batch, epochs, seed and sync, or begin a new run",
                )


def _split(content: bytes | bytearray) -> tuple[dict[str, Any], memoryview]:
    """What all know, and the learner's state; LearningError when it is something else."""
    try:
        head, rest = unframe(content)
        if head["format"] != FORMAT or not {"run", "ends", "plan", "loss"} <= head.keys():
            raise ValueError(f"its format is {head['format']}")
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise LearningError(f"a state cannot be read: {error}", "begin a new run") from error
    return head, rest
