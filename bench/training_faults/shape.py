"""How much a run of this bench trains."""

from __future__ import annotations

from pathlib import Path

from bench.training.settings import Settings
from locality.training.sample_order import SampleOrder

SAMPLES, BATCH, EPOCHS, SEED = 1920, 64, 20, 3
ORDER = SampleOrder(SAMPLES, BATCH, SEED)
STEPS = ORDER.steps * EPOCHS


def settings(out: Path) -> Settings:
    """What the program is told: it writes into this folder."""
    return Settings("", str(out), (), batch=BATCH, epochs=EPOCHS, seed=SEED, keeps_numbers=True)
