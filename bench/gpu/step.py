"""What runs in the box: a product and a convolution on a card, compared with the processor's; prints JSON.

Python that has PyTorch runs it, with nothing of ours.
"""

import json
import time

import torch
from torch.nn.functional import conv2d


def _deviate(on_card: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest deviation, as a part of the largest value."""
    return float((on_card.cpu().double() - expected).abs().max() / expected.abs().max())


began = time.perf_counter()
card = torch.device("cuda")
torch.manual_seed(1)
left, right = torch.randn(512, 512), torch.randn(512, 512)
product = _deviate(left.to(card) @ right.to(card), left.double() @ right.double())
picture, kernel = torch.randn(4, 8, 64, 64), torch.randn(16, 8, 3, 3)
convolved = _deviate(conv2d(picture.to(card), kernel.to(card)), conv2d(picture.double(), kernel.double()))
seconds = time.perf_counter() - began
with open("/proc/self/maps") as lines:  # noqa: PTH123
    mapped = {line.split(maxsplit=5)[-1].strip() for line in lines if ".so" in line}
print(
    json.dumps(
        {
            "package": torch.__file__,
            "version": torch.__version__,
            "cuda": torch.version.cuda,
            "card": torch.cuda.get_device_name(),
            "deviations": [product, convolved],
            "seconds": seconds,
            "mapped": sorted(mapped),
        }
    )
)
