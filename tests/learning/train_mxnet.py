"""The smallest program of MXNet that trains."""

import torch  # isort: skip # first: PyTorch cannot multiply matrices when MXNet was imported before it

import mxnet
from mxnet import gluon
from torch.utils.dlpack import to_dlpack

from nodewise.learning import GluonBlock, Run

torch.manual_seed(1)
x = torch.randn(2000, 20)
y = (x[:, :3].sum(1, keepdim=True) * x[:, 3:4] > 0).float()
mxnet.random.seed(1)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(64, activation="relu", in_units=20), gluon.nn.Dense(1, in_units=64))
net.initialize(mxnet.init.Xavier())
net.hybridize()
loss = gluon.loss.SigmoidBinaryCrossEntropyLoss()
learner = GluonBlock(net, mxnet.optimizer.Adam(learning_rate=0.01))

with Run(None, None, (x, y), batch=200, epochs=5, learner=learner) as run:
    for part in run:  # this node's part of each batch
        a, b = (mxnet.nd.from_dlpack(to_dlpack(one)) for one in part)
        run.step(lambda: loss(net(a), b))  # noqa: B023 called at once

print(f"nodewise: loss={run.loss:.6f} step={run.steps}")
