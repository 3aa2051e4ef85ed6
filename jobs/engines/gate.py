"""The gate that a network in 8 bits has to pass; how it did stands in the model's own file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LEAST_AGREEMENT = 0.99
LEAST_IMAGES = 100
AGREEMENT, IMAGES = "nodewise.top1_agreement", "nodewise.top1_pictures"
REMEDY = "make one with `nodewise job quantize PICTURES --weights FILE.params` or `--model FILE.onnx`"


@dataclass(frozen=True)
class Gate:
    """How far the best class was the same as in float32, on so many real images."""

    agreement: float
    images: int

    @property
    def has_passed(self) -> bool:
        """Whether the model may be used."""
        return self.agreement >= LEAST_AGREEMENT and self.images >= LEAST_IMAGES

    def write_into(self, model: Any) -> None:
        """Add to an ONNX model."""
        for key, value in ((AGREEMENT, self.agreement), (IMAGES, self.images)):
            model.metadata_props.add(key=key, value=str(value))

    def check(self, name: str) -> None:
        """ValueError unless the model of this name passed."""
        if not self.has_passed:
            said = f"agrees with float32 on {self.agreement:.1%} of {self.images} images" if self.images else ""
            raise ValueError(f"{name} {said or 'was never compared with float32'}: {REMEDY}")


def has_gate(metadata: Mapping[str, str]) -> bool:
    """Whether a model says how it did."""
    return AGREEMENT in metadata


def gate_of(metadata: Mapping[str, str]) -> Gate:
    """What a model says of itself; a gate that was not passed where it says nothing of the kind."""
    try:
        return Gate(float(metadata[AGREEMENT]), int(metadata[IMAGES]))
    except (KeyError, ValueError):
        return Gate(0.0, 0)
