"""The same AlexNet on onnxruntime, float32; the graph is made from Gluon's parameters when it is loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jobs.engines import alexnet, onnx_graph


class OnnxAlexnet:
    """Takes the parameters that `mxnet_alexnet` takes, and is seeded with the same numbers."""

    def load(self, weights: Path | None, batch: int) -> None:
        """Build the graph, make a session of it, and run it once."""
        self._session = onnx_graph.session_of(alexnet.parameters(weights))
        self.infer(np.zeros((batch, 3, 224, 224), dtype=np.float32))

    def infer(self, pictures: np.ndarray) -> np.ndarray:
        """Probabilities (pictures, classes)."""
        return onnx_graph.run(self._session, pictures)
