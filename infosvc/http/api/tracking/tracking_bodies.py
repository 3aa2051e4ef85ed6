"""What MLflow's client sends: JSON objects, whose other fields are of no account here; or a query in a GET."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import msgspec
from flask import request
from msgspec import Meta, Struct

from infosvc.http.api.body import body
from infosvc.state.tracked import MetricPoint
from infosvc.wire.errors import InvalidInput

S = TypeVar("S")

_LARGEST = 2**63 - 1
Id = Annotated[str, Meta(min_length=1, max_length=64)]
Name = Annotated[str, Meta(min_length=1, max_length=250, pattern=r"^[\w\-. :/]+\Z")]
Title = Annotated[str, Meta(min_length=1, max_length=250)]
Whole = Annotated[int, Meta(ge=-_LARGEST, le=_LARGEST)]
Moment = Annotated[int, Meta(ge=0, le=_LARGEST)]
PageToken = Annotated[str, Meta(pattern=r"^([0-9]{1,18})?\Z")]
Status = Literal["RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"]


class Tag(Struct):
    """A tag; with the run's id, runs/set-tag."""

    key: Title
    value: Annotated[str, Meta(max_length=8_000)] = ""


class Param(Struct):
    """A param; with the run's id, runs/log-parameter."""

    key: Title
    value: Annotated[str, Meta(max_length=6_000)] = ""


class Metric(Struct):
    """A point of a metric; with the run's id, runs/log-metric."""

    key: Name
    value: float
    timestamp: Whole = 0
    step: Whole = 0

    def point(self, run_id: str) -> MetricPoint:
        """As it is kept."""
        return MetricPoint(run_id, self.key, repr(float(self.value)), self.timestamp, self.step)


Tags = Annotated[list[Tag], Meta(max_length=100)]


class NewExperiment(Struct):
    """experiments/create."""

    name: Title
    tags: Tags = []


class OneExperiment(Struct):
    """experiments/get."""

    experiment_id: Id


class NamedExperiment(Struct):
    """experiments/get-by-name."""

    experiment_name: Title


class RunToCreate(Struct):
    """runs/create."""

    experiment_id: Id = "0"
    run_name: Annotated[str, Meta(max_length=250)] = ""
    start_time: Moment | None = None
    tags: Tags = []


class OneRun(Struct):
    """runs/get, runs/delete, and which run any other call is about; an older client says run_uuid."""

    run_id: Annotated[str, Meta(max_length=64)] = ""
    run_uuid: Annotated[str, Meta(max_length=64)] = ""

    @property
    def id(self) -> str:
        """Which run is meant."""
        return self.run_id or self.run_uuid


class RunUpdate(OneRun):
    """runs/update."""

    status: Status | None = None
    end_time: Moment | None = None
    run_name: Annotated[str, Meta(max_length=250)] = ""


class Batch(OneRun):
    """runs/log-batch."""

    metrics: Annotated[list[Metric], Meta(max_length=1_000)] = []
    params: Annotated[list[Param], Meta(max_length=100)] = []
    tags: Tags = []


class History(OneRun):
    """metrics/get-history."""

    metric_key: Name = ""
    max_results: Annotated[int, Meta(ge=1)] = 25_000
    page_token: PageToken = ""


class Search(Struct):
    """experiments/search."""

    max_results: Annotated[int, Meta(ge=1)] = 1_000
    order_by: list[str] = []
    page_token: PageToken = ""
    filter: str = ""
    view_type: Literal["ACTIVE_ONLY", "DELETED_ONLY", "ALL"] = "ACTIVE_ONLY"


class RunSearch(Search):
    """runs/search."""

    experiment_ids: list[str] = []
    run_view_type: Literal["ACTIVE_ONLY", "DELETED_ONLY", "ALL"] = "ACTIVE_ONLY"


def sent(kind: type[S]) -> S:
    """The body of a call, or the query of a GET; InvalidInput names the field that is wrong, and no value."""
    given = request.args.to_dict() if request.method in ("GET", "HEAD") else body().all()
    given = {name: value for name, value in given.items() if value is not None}
    try:
        return msgspec.convert(given, kind, strict=False)
    except (msgspec.ValidationError, OverflowError) as error:
        said = str(error).replace("`", "'")
        raise InvalidInput(f"the call is not as MLflow's client makes it ({said})", remedy="mend that field") from error
