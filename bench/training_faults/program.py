"""`program.py SETTINGS ROOT`: trains a small network in float64, and notes its samples, steps and final parameters.

It lies beside a member in its container, so it finds the rest of the bench in ROOT. A sample takes its time, more on
some nodes than on others, until the file `go` is in the folder of the settings; the last fifth of the run waits for it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

FEATURES = 12
SAMPLE_SECONDS = 0.004
SLOWER = 0.3
"""By how much a sample takes longer on each next node."""
LAST = 0.8
"""From this part of the run on, its end waits for the file."""
WAIT_SECONDS = 1.0
CHECKPOINT_SECONDS = 2.0
RATE = 0.001
"""Of learning. With 0.01 the order of sums alone makes parameters differ by 5e-10 in the end, with 0.001 by 3e-15."""


def data(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """So many seeded samples, which of two sorts each is, and their numbers."""
    chance = torch.Generator().manual_seed(7)
    x = torch.randn(count, FEATURES, dtype=torch.float64, generator=chance)
    return x, (x[:, :4].sum(1) * x[:, 4] > 0).double(), torch.arange(count)


def model() -> torch.nn.Module:
    """Nothing in it depends on who computes which samples."""
    torch.manual_seed(11)
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 16), torch.nn.Tanh(), torch.nn.GroupNorm(4, 16), torch.nn.Linear(16, 1)
    ).double()


def main(settings_file: str) -> None:
    """Train, and write what was found into result-PID.json."""
    from bench.training.programs.step_log import StepLog
    from bench.training.settings import Settings
    from bench.training_faults.shape import BATCH, EPOCHS, SAMPLES, SEED, STEPS
    from nodewise.learning import Run

    settings = Settings.read(settings_file)
    out, node = Path(settings.out), int(os.environ.get("NODE_NAME", "0").rpartition(".")[2])
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)
    log = StepLog(settings, node)
    data_of_all = data(SAMPLES)
    with Run(
        net, optimizer, data_of_all, batch=BATCH, epochs=EPOCHS, seed=SEED, checkpoint_seconds=CHECKPOINT_SECONDS
    ) as run:
        for x, y, numbers in run:
            log.compute(run.steps, run._membership.number, numbers.tolist())  # only the bench needs to know that
            if not (out / "go").exists():
                seconds = SAMPLE_SECONDS * (1 + SLOWER * (node % 4))
                time.sleep(seconds * len(x) + WAIT_SECONDS * (run.steps >= LAST * STEPS))
            run.step(lambda: binary_cross_entropy_with_logits(net(x).squeeze(1), y))  # noqa: B023 called at once
            log.computed()
    log.reach(run.steps)
    found = torch.cat([one.detach().reshape(-1) for one in net.parameters()]).tolist()
    half = out / f"half-{os.getpid()}.json"  # it may be killed while it writes
    half.write_text(json.dumps(found))
    half.rename(out / f"result-{os.getpid()}.json")


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.path.append(sys.argv[2])
    main(sys.argv[1])
