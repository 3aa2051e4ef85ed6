"""The network, its data, and how well it knows digits that it has never seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

from bench.training.settings import Settings

RATE = 0.001


def network(seed: int) -> nn.Module:
    """283,914 parameters; no layer looks at which samples are together, and none draws numbers."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.GroupNorm(8, 64),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1024, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


def load(settings: Settings, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The digits of `train` or `test`, from 0 to 1, and what they are."""
    images = np.load(Path(settings.data) / f"{name}-images.npy")
    labels = np.load(Path(settings.data) / f"{name}-labels.npy")
    return torch.from_numpy(images).float().div_(16.0).unsqueeze(1), torch.from_numpy(labels).long()


def accuracy(net: nn.Module, settings: Settings) -> float:
    """The share of the test's digits that it knows."""
    images, labels = load(settings, "test")
    with torch.no_grad():
        return float((net(images).argmax(1) == labels).float().mean())
