"""Experiments: names under which the runs of a user stand. Each user has one called Default, which nothing stores."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from infosvc.access.roles import Caller
from infosvc.state.configuration import Configuration
from infosvc.state.tracked import Experiment
from infosvc.state.transaction import Transaction
from infosvc.wire.errors import Conflict, NotFound

DEFAULT = "0"  # the id that MLflow's client begins a run in when no experiment was set
DEFAULT_NAME = "Default"
LONGEST_NAME = 250
MOST_OF_USER = 1_000
MOST_EXPERIMENTS = 10_000


class AlreadyThere(Conflict):
    """There is an experiment of this name."""

    code = "already_exists"


def id_of(owner: str, name: str) -> str:
    """The id of a user's experiment: always the same for one name, so that it is found without a search.

    >>> id_of("maria", "mnist")
    '1018285428723722224'
    """
    digest = hashlib.sha256(b"\0".join((owner.encode(), name.encode())))
    return str(int(digest.hexdigest()[:15], 16))


def create(transaction: Transaction, owner: str, name: str, tags: Mapping[str, str], now: float) -> Experiment:
    """Begin an experiment at Unix second `now`; AlreadyThere when its owner has it, Conflict when there are too many.

    The oldest that have no run go for it.
    """
    experiment = Experiment(id_of(owner, name), owner, name, now, dict(tags))
    if name == DEFAULT_NAME or transaction.find("experiments", (experiment.experiment_id,)) is not None:
        raise AlreadyThere(f"{owner} has an experiment {name!r}", "name", remedy="set it, or choose another name")
    _make_room(transaction, owner)
    transaction.put("experiments", (experiment.experiment_id,), experiment)
    return experiment


def find(configuration: Configuration, caller: Caller, experiment_id: str) -> Experiment:
    """An experiment by its id; NotFound when there is none that the caller may see."""
    if experiment_id == DEFAULT:
        return _default_of(caller)
    found = configuration.experiments.get(experiment_id)
    if found is None or not caller.may_track(found.owner):
        raise NotFound(
            f"no experiment has the id {experiment_id[:80]!r}", "experiment_id", remedy="set one by its name"
        )
    return found


def find_named(configuration: Configuration, caller: Caller, name: str) -> Experiment:
    """The caller's own experiment of a name; NotFound when it has none."""
    if name == DEFAULT_NAME:
        return _default_of(caller)
    found = configuration.experiments.get(id_of(caller.user_name, name))
    if found is None:
        raise NotFound(f"{caller.user_name} has no experiment {name[:80]!r}", "experiment_name", remedy="create it")
    return found


def select(configuration: Configuration, caller: Caller) -> list[Experiment]:
    """All experiments that the caller may see, its own Default among them."""
    stored = list(configuration.experiments.values())
    return [_default_of(caller), *(one for one in stored if caller.may_track(one.owner))]


def empty_before(configuration: Configuration, moment: float, owner: str | None = None) -> list[Experiment]:
    """The experiments that were made before a Unix second and have no run, the oldest first; of one owner if named."""
    used = {stored.run.experiment_id for stored in list(configuration.runs.values())}
    found = [
        one
        for one in list(configuration.experiments.values())
        if one.created_at < moment and one.experiment_id not in used and owner in (None, one.owner)
    ]
    return sorted(found, key=lambda one: one.created_at)


def _default_of(caller: Caller) -> Experiment:
    return Experiment(DEFAULT, caller.user_name, DEFAULT_NAME, 0.0)


def _make_room(transaction: Transaction, owner: str) -> None:
    """Let the oldest go that has no run; Conflict when there are too many and all have runs."""
    experiments = transaction.configuration.experiments
    own = sum(one.owner == owner for one in experiments.values())
    if own < MOST_OF_USER and len(experiments) < MOST_EXPERIMENTS:
        return
    of_whom = owner if own >= MOST_OF_USER else None
    old = empty_before(transaction.configuration, float("inf"), of_whom)
    if not old:
        raise Conflict(
            f"{of_whom or 'all users together'} have {own if of_whom else len(experiments)} experiments with runs",
            "name",
            remedy="delete runs of some, or use one that is there",
        )
    transaction.put("experiments", (old[0].experiment_id,), None)
