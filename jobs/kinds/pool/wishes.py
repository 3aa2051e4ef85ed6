"""What users ask of a pool's application master, over HTTP in JSON, each a POST with the pool's token.

    /pool/submit  JobWish  -> {"job_id", "notes"} | Refusal: the same `key` again is the same job
    /pool/jobs    {}       -> {"jobs": [{"job_id", "state", "said", "output", "weight", "done", "of", "errors"}, ...]}
    /pool/job     OneJob   -> {"status", "said"} | Refusal
    /pool/kill    OneJob   -> {"was": the state that the job was in} | Refusal
    /pool/down    Down     -> {"jobs": how many are still at work}
    /pool/infer   ?Picture -> {"row": what a job would store of it, "milliseconds" and more} | Refusal. The body has the
                  bytes of the picture, and is empty for one that is in HDFS. It may be asked for again

A Refusal is {"refused": a sentence, "remedy": what to do, "passes": whether the same call may succeed later}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from jobs.application.calls import LARGEST_CALL

SUBMIT, JOBS, JOB, KILL, DOWN = "/pool/submit", "/pool/jobs", "/pool/job", "/pool/kill", "/pool/down"
INFER = "/pool/infer"
LARGEST_PICTURE = 8 << 20
"""Bytes of a picture that is not in HDFS."""
USERS: Mapping[str, int] = {**dict.fromkeys((SUBMIT, JOBS, JOB, KILL, DOWN), LARGEST_CALL), INFER: LARGEST_PICTURE}
"""The calls of users, and the most bytes of a body of each."""
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 100.0
READY = "ready"
"""What the status of a pool says of a node whose worker has its network loaded."""
IDLE_FOR = "Seconds without a job"
"""What the status of a pool calls the time since it had a job or a picture."""


class JobWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job for a pool: what it has of its own; everything else is the pool's.

    While jobs share the pool, each gets work by its `weight`. It fails when for `patience` seconds no worker of its
    nodes is there. For values of its capability it waits `capability_wait` seconds.
    """

    key: str
    input: str
    output: str
    capability: str
    cold_start: str | None = None
    policy: str = "algorithm1"
    fallback: str | None = None
    steal: bool = True
    weight: float = 1.0
    capability_wait: float = 20.0
    patience: float = 60.0

    def settings(self) -> dict[str, Any]:
        """Those of the kind of the pool's jobs that this job has of its own."""
        names = ("input", "output", "capability", "cold_start", "policy", "fallback", "steal")
        return {name: getattr(self, name) for name in names}


class Picture(msgspec.Struct, frozen=True):
    """A single picture: the query of a call. Either `path` says where it is in HDFS, or the body has its bytes.

    Its row has it under this `name`, or under its path. `seconds` is how long the answer may take.
    """

    name: str = ""
    path: str = ""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 30.0


class OneJob(msgspec.Struct, frozen=True):
    """A job of the pool, by its id."""

    job_id: str


class Down(msgspec.Struct, frozen=True):
    """The pool takes no more jobs, and ends with those it has; with `now` these are killed."""

    now: bool = False


class Refusal(Exception):
    """Why a pool does not do what it was asked for, and what to do; `passes` if it may later."""

    def __init__(self, refused: str, remedy: str = "", passes: bool = False) -> None:
        super().__init__(refused)
        self.refused, self.remedy, self.passes = refused, remedy, passes

    def to_json(self) -> dict[str, Any]:
        """As it travels."""
        return {"refused": self.refused, "remedy": self.remedy, "passes": self.passes}
