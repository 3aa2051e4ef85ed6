"""AlexNet on onnxruntime in whole numbers of 8 bits: about four times as quick where the CPU has VNNI or AMX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobs.engines import onnx_graph

LEAST_AGREEMENT = 0.99
LEAST_PICTURES = 100
AGREEMENT, PICTURES = "nodewise.top1_agreement", "nodewise.top1_pictures"
REMEDY = "make one with `nodewise job quantize PICTURES --weights FILE.params`"


@dataclass(frozen=True)
class Gate:
    """How far the best class was the same as in float32, on so many real pictures; it stands in the model's file."""

    agreement: float
    pictures: int

    @property
    def passed(self) -> bool:
        """Whether the model may be used."""
        return self.agreement >= LEAST_AGREEMENT and self.pictures >= LEAST_PICTURES

    def write_into(self, model: Any) -> None:
        """Add to an ONNX model."""
        for key, value in ((AGREEMENT, self.agreement), (PICTURES, self.pictures)):
            model.metadata_props.add(key=key, value=str(value))

    @classmethod
    def of(cls, metadata: Mapping[str, str]) -> Gate:
        """What a model says of itself; a gate that was not passed where it says nothing of the kind."""
        try:
            return cls(float(metadata[AGREEMENT]), int(metadata[PICTURES]))
        except (KeyError, ValueError):
            return cls(0.0, 0)


class OnnxAlexnetInt8:
    """Takes what `nodewise job quantize` made of Gluon parameters, and only if that passed its gate."""

    def load(self, weights: Path | None, batch: int) -> None:
        """Make a session of the model, and run it once."""
        if weights is None:
            raise ValueError(f"onnx_alexnet_int8 needs a quantized model as --weights: {REMEDY}")
        self._session = _session(weights)
        gate = Gate.of(self._session.get_modelmeta().custom_metadata_map)
        if not gate.passed:
            said = f"agrees with float32 on {gate.agreement:.1%} of {gate.pictures} pictures" if gate.pictures else ""
            raise ValueError(f"{weights.name} {said or 'was never compared with float32'}: {REMEDY}")
        self.infer(np.zeros((batch, 3, 224, 224), dtype=np.float32))

    def infer(self, pictures: np.ndarray) -> np.ndarray:
        """Probabilities (pictures, classes)."""
        return onnx_graph.run(self._session, pictures)


def _session(weights: Path) -> Any:
    try:
        return onnx_graph.session(weights)
    except Exception as error:  # onnxruntime has a class of its own for each way in which a file is no model
        raise ValueError(f"{weights.name} is no ONNX model: {REMEDY}") from error
