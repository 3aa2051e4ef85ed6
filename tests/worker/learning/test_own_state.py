"""States of other data are refused, where the data tells what it holds."""

from __future__ import annotations

import pytest
import torch

from learning.errors import LearningError
from learning.learners.torch_module import TorchModule
from learning.member.own_state import OwnState
from learning.member.rounds import Rounds
from learning.member.share_plan import SharePlan
from locality.training.sample_order import SampleOrder


def state(data: str) -> OwnState:
    model = torch.nn.Linear(2, 1)
    learner = TorchModule(model, torch.optim.SGD(model.parameters(), lr=0.1), None, None)
    order = SampleOrder(8, 4)
    return OwnState(learner, SharePlan(4), Rounds("every", learner, order), order, 10, data)


def test_a_state_of_other_data_is_refused() -> None:
    stored = state("5e1f").pack()

    with pytest.raises(LearningError, match="the state is of a run with data 5e1f, and this process has 77aa: take"):
        state("77aa").load(stored)
    with pytest.raises(LearningError, match="another member trains with data 5e1f, and this process has 77aa: take"):
        state("77aa").take_over(stored, is_behind=False)


@pytest.mark.parametrize("data", ["5e1f", ""])
def test_a_state_of_the_same_data_is_taken(data: str) -> None:
    state(data).load(state(data).pack())
