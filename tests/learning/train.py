"""The smallest program that trains."""

import torch

from nodewise.learning import Run

torch.manual_seed(1)
x = torch.randn(2000, 20)
y = (x[:, :3].sum(1, keepdim=True) * x[:, 3:4] > 0).float()
model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loss = torch.nn.BCEWithLogitsLoss()

with Run(model, optimizer, (x, y), batch=200, epochs=5) as run:
    for a, b in run:  # this node's part of each batch
        run.step(lambda: loss(model(a), b))  # noqa: B023 called at once

print(f"nodewise: loss={run.loss:.6f} step={run.steps}")
