"""An optimizer of MXNet that makes its steps without a gluon.Trainer, and whose state holds no code.

A trainer skips parameters for which this process had no samples, and stores its state as a pickle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mxnet
import torch

from learning.errors import LearningError
from learning.state.plain_state import to_bytes

SUPPORTED = (
    *("AdaDelta", "AdaGrad", "Adam", "Adamax", "FTML", "Ftrl"),
    *("LAMB", "LARS", "NAG", "RMSProp", "SGD", "Signum"),
)
"""Not SGLD, which draws numbers; LBSGD and DCASGD, which keep arrays where no state has them; and Nadam, whose steps
depend on the order of the parameters."""
_NOT_IN_FLOAT64 = ("AdaDelta", "AdaGrad", "Ftrl", "RMSProp")
"""MXNet 1.9.1 fails when they are to make a step."""
_PLAIN = (bool, int, float, str, type(None))
_NOT_OF_THE_RUN = ("aggregate_num", "allow_np_array")
"""Numbers that say how this process computes, not what."""


class GluonOptimizer:
    """Of these parameters, each of which takes part in every step; LearningError when it cannot be exact."""

    def __init__(
        self, optimizer: mxnet.optimizer.Optimizer, parameters: Sequence[mxnet.gluon.Parameter], *, is_double: bool
    ) -> None:
        self._optimizer = optimizer
        self._parameters = parameters
        _check(optimizer, is_double=is_double)
        optimizer.param_dict = dict(enumerate(parameters))
        optimizer._set_current_context(parameters[0].data().context.device_id)  # it counts steps for each device
        self._updater = mxnet.optimizer.get_updater(optimizer)

    def step(self) -> None:
        """Make one with the gradients that the parameters have."""
        self._updater(
            list(range(len(self._parameters))),
            [one.grad() for one in self._parameters],
            [one.data() for one in self._parameters],
        )

    def state(self) -> dict[str, Any]:
        """All that its next steps depend on."""
        return {
            "kind": _kind(self._optimizer),
            "numbers": _numbers(self._optimizer),
            "scheduler": _numbers_of_scheduler(self._optimizer),
            "steps": dict(self._optimizer._index_update_count),
            "arrays": {index: _to_torch(one) for index, one in self._updater.states.items()},
        }

    def moments(self) -> list[mxnet.nd.NDArray]:
        """The arrays themselves, in the order of the parameters; none before the first step."""
        return [array for _, state in sorted(self._updater.states.items()) for array in _arrays(state)]

    def load(self, told: Mapping[str, Any]) -> None:
        """Continue from a state; ValueError, KeyError, TypeError or AttributeError when it is of another optimizer."""
        optimizer, updater = self._optimizer, self._updater
        own, theirs = _kind(optimizer), told["kind"]
        if own != theirs:
            raise ValueError(f"it is of {theirs}, and the optimizer here is {own}")
        numbers = {name: told["numbers"][name] for name in _numbers(optimizer)}
        of_scheduler = {name: told["scheduler"][name] for name in _numbers_of_scheduler(optimizer)}
        steps = dict(told["steps"])
        updater.states = {index: _to_mxnet(one) for index, one in told["arrays"].items()}
        updater.states_synced = dict.fromkeys(updater.states, False)
        optimizer._index_update_count.clear()
        optimizer._index_update_count.update(steps)
        vars(optimizer).update(numbers)
        if of_scheduler:
            vars(optimizer.lr_scheduler).update(of_scheduler)


def _check(optimizer: Any, *, is_double: bool) -> None:
    name = type(optimizer).__name__
    if type(optimizer) not in [getattr(mxnet.optimizer, one) for one in SUPPORTED]:
        raise LearningError(f"{name} cannot be trained with", f"give one of mxnet.optimizer: {', '.join(SUPPORTED)}")
    if is_double and name in _NOT_IN_FLOAT64:
        raise LearningError(f"MXNet's {name} does not compute in float64", "take another one, such as Adam")
    if optimizer.rescale_grad != 1:
        raise LearningError(
            f"the optimizer has rescale_grad {optimizer.rescale_grad}",
            "leave it at 1, since the gradient is the mean over the samples",
        )
    if optimizer.num_update != optimizer.begin_num_update:
        raise LearningError("the optimizer has made steps without this run", "give a new one")
    try:
        to_bytes(_numbers_of_scheduler(optimizer))
    except TypeError as error:
        raise LearningError(f"a state that cannot be stored: {error}", "take another scheduler") from error


def _kind(optimizer: mxnet.optimizer.Optimizer) -> str:
    """Of an optimizer, with its scheduler.

    >>> _kind(mxnet.optimizer.SGD(lr_scheduler=mxnet.lr_scheduler.FactorScheduler(step=10)))
    'SGD with FactorScheduler'
    """
    scheduler = optimizer.lr_scheduler
    return type(optimizer).__name__ + (f" with {type(scheduler).__name__}" if scheduler else "")


def _numbers(optimizer: mxnet.optimizer.Optimizer) -> dict[str, Any]:
    """Its learning rate, how many steps it has made, and the like."""
    named = vars(optimizer).items()
    return {name: one for name, one in named if isinstance(one, _PLAIN) and name not in _NOT_OF_THE_RUN}


def _numbers_of_scheduler(optimizer: mxnet.optimizer.Optimizer) -> dict[str, Any]:
    return dict(vars(optimizer.lr_scheduler)) if optimizer.lr_scheduler else {}


def _to_torch(state: Any) -> Any:
    """The arrays of one parameter: an array, nothing, or several of these."""
    if isinstance(state, (tuple, list)):
        return tuple(map(_to_torch, state))
    return None if state is None else torch.from_numpy(state.asnumpy())


def _arrays(state: Any) -> list[mxnet.nd.NDArray]:
    if isinstance(state, (tuple, list)):
        return [array for one in state for array in _arrays(one)]
    return [] if state is None else [state]


def _to_mxnet(state: Any) -> Any:
    if isinstance(state, tuple):
        return tuple(map(_to_mxnet, state))
    return None if state is None else mxnet.nd.array(state.numpy(), dtype=state.numpy().dtype)
