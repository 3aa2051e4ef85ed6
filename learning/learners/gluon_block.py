"""A block of MXNet Gluon with its optimizer, and with the scheduler of its learning rate where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mxnet
import torch
from mxnet.gluon.parameter import DeferredInitializationError

from learning.errors import LearningError
from learning.learners.clipping import clip
from learning.learners.gluon_optimizer import GluonOptimizer
from learning.state.plain_state import from_bytes, to_bytes

_RUNNING = ("running_mean", "running_var")


class GluonBlock:
    """A Learner; LearningError for what cannot be trained exactly by several processes.

    It takes the place of gluon.Trainer, so the optimizer belongs to no trainer. `clip_norm` is the longest gradient: a
    longer one is scaled to it. A parameter that the loss does not use has the gradient 0.
    """

    def __init__(
        self, net: mxnet.gluon.Block, optimizer: mxnet.optimizer.Optimizer, clip_norm: float | None = None
    ) -> None:
        self._all = list(net.collect_params().values())
        for one in self._all:
            _check(one)
        self._trained = [one for one in self._all if one.grad_req != "null"]
        if not self._trained:
            raise LearningError("the net has no parameters to train", "check their grad_req")
        self.size = sum(one.data().size for one in self._trained)
        is_double = any(_torch(one.data()).dtype == torch.float64 for one in self._trained)
        self.dtype = torch.float64 if is_double else torch.float32
        self._optimizer = GluonOptimizer(optimizer, self._trained, is_double=is_double)
        self._clip_norm = clip_norm

    def gradient(self, loss: Callable[[], Any], weight: float, into: torch.Tensor) -> float:
        """Add `weight` times the gradient of `loss()` to `into`; the loss as a number.

        `loss()` is recorded here. It returns the loss of each sample, as the losses of Gluon do, or their mean.
        """
        for one in self._trained:
            one.zero_grad()
        with mxnet.autograd.record():
            value = loss().mean()
        value.backward()
        for one, part in self._parts(into):
            part.add_(_torch(one.grad()).to(into), alpha=weight)
        return float(value.asscalar())

    def apply(self, gradient: torch.Tensor) -> None:
        """Make one step of the optimizer, and of the scheduler."""
        for one, part in self._parts(clip(gradient, self._clip_norm)):
            one.grad()[:] = part.numpy()
        self._optimizer.step()

    def state(self, before: bytes = b"") -> bytes:
        """The net's numbers, and the state of the optimizer."""
        told = {"net": [_torch(one.data()) for one in self._all], "optimizer": self._optimizer.state()}
        return to_bytes(told, before)

    def load(self, state: bytes | memoryview) -> None:
        """Continue from a state; LearningError when it is of another net."""
        try:
            told = from_bytes(state)
            self._match(told["net"])
            self._optimizer.load(told["optimizer"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            said = f"it has no {error}" if isinstance(error, KeyError) else error
            raise LearningError(
                f"a state does not fit this net and optimizer: {said}",
                "begin a new run, or build the net as it was when the state was stored",
            ) from error
        for one, stored in zip(self._all, told["net"], strict=True):
            _write(one.data(), stored)

    def values(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The parameters; moments of the optimizer, and running means and variances of the net's normalisation."""
        return self._flat([one.data() for one in self._trained]), self._flat(self._others())

    def set_values(self, parameters: torch.Tensor, others: torch.Tensor) -> None:
        """Continue from what `values` gave, or from means of it."""
        for given, found in (([one.data() for one in self._trained], parameters), (self._others(), others)):
            begin = 0
            for one in given:
                _write(one, found[begin : begin + one.size].view(one.shape))
                begin += one.size

    def counts(self) -> bytes:
        """None: what a net of Gluon has beside what it trains and averages, no step changes."""
        return b""

    def set_counts(self, counts: bytes | bytearray) -> None:
        """Nothing to continue from."""

    def _others(self) -> list[mxnet.nd.NDArray]:
        running = [one.data() for one in self._all if one.name.endswith(_RUNNING)]
        return [*running, *self._optimizer.moments()]

    def _flat(self, arrays: Sequence[mxnet.nd.NDArray]) -> torch.Tensor:
        """A copy, on the CPU."""
        return torch.cat([torch.zeros(0, dtype=self.dtype), *(_torch(one).view(-1).to(self.dtype) for one in arrays)])

    def _match(self, stored: list[torch.Tensor]) -> None:
        """ValueError when these are not the numbers of such a net."""
        if len(stored) != len(self._all):
            raise ValueError(f"it has {len(stored)} parameters, and the net {len(self._all)}")
        for one, theirs in zip(self._all, stored, strict=True):
            own = _torch(one.data())
            if (own.shape, own.dtype) != (theirs.shape, theirs.dtype):
                raise ValueError(f"{one.name} is {_told(own)} here, and {_told(theirs)} there")

    def _parts(self, vector: torch.Tensor) -> Iterator[tuple[mxnet.gluon.Parameter, torch.Tensor]]:
        """Each parameter that is trained with its part of a flat vector."""
        begin = 0
        for one in self._trained:
            size = one.data().size
            yield one, vector[begin : begin + size].view(one.shape)
            begin += size


def _write(array: mxnet.nd.NDArray, numbers: torch.Tensor) -> None:
    """By MXNet's own copy: those of NumPy fail where a convolution has put its weights in an order of its own."""
    array[:] = mxnet.nd.from_numpy(numbers.numpy(), zero_copy=False)


def _check(one: mxnet.gluon.Parameter) -> None:
    """LearningError when a parameter cannot be read as one array of numbers."""
    if {one._stype, one._grad_stype} != {"default"}:
        raise LearningError(f"the parameter {one.name} or its gradient is sparse", "build the net without sparse_grad")
    try:
        arrays = one.list_data()
    except DeferredInitializationError as error:
        raise LearningError(
            f"the parameter {one.name} has the shape {one.shape}, in which 0 is not known yet",
            "give in_units and in_channels, or call the net with a batch first",
        ) from error
    except RuntimeError as error:
        raise LearningError(f"the parameter {one.name} has no numbers", "call net.initialize() first") from error
    if len(arrays) != 1:
        devices = ", ".join(str(each.context) for each in arrays)
        raise LearningError(f"the parameter {one.name} is on {devices}", "let each process train on one device")


def _torch(array: mxnet.nd.NDArray) -> torch.Tensor:
    """A copy of its numbers, once MXNet has computed them."""
    return torch.from_numpy(array.asnumpy())


def _told(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"
