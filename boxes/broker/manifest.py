"""Says what Docker pulls when it takes an image layer by layer: a manifest that follows from the image's configuration.

The configuration, whose SHA-256 is the id of the image, holds the SHA-256 of each layer as it is unpacked. A layer is
served unpacked, so its digest is that one, and nothing of the manifest but sizes can differ for one id: whoever allows
an id allows exactly these bytes. The form is OCI's:
https://github.com/opencontainers/image-spec/blob/v1.0.2/manifest.md
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from boxes.broker.order import IMAGE, MOST_LAYERS, Refusal

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIGURATION = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


def digest_of(content: bytes) -> str:
    """The digest of a content: of a configuration, it is the id of the image."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def layers_of(configuration: bytes) -> list[str]:
    """The digest of each layer, unpacked, the lowest first; Refusal when the configuration does not name them."""
    try:
        parsed = json.loads(configuration)
    except (ValueError, RecursionError):
        raise Refusal("the image's configuration is not JSON") from None
    found = parsed.get("rootfs") if isinstance(parsed, dict) else None
    named = found.get("diff_ids") if isinstance(found, dict) else None
    if not isinstance(named, list) or not all(isinstance(one, str) and IMAGE.fullmatch(one) for one in named):
        raise Refusal("the image's configuration does not name its layers")
    if len(named) > MOST_LAYERS:
        raise Refusal(f"the image has more than {MOST_LAYERS} layers", "build it with fewer steps")
    return named


def manifest_of(configuration: bytes, sizes: Sequence[int]) -> bytes:
    """The manifest of an image whose layers have so many bytes, unpacked; Refusal for another number of layers.

    Its bytes are the same in every version of nodewise: a broker of one and a runner of another speak of one digest.
    """
    digests = layers_of(configuration)
    if len(digests) != len(sizes):
        raise Refusal(f"the image has {len(digests)} layers and not {len(sizes)}")
    body = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _described(CONFIGURATION, digest_of(configuration), len(configuration)),
        "layers": [_described(LAYER, digest, size) for digest, size in zip(digests, sizes, strict=True)],
    }
    return json.dumps(body, separators=(",", ":")).encode()


def _described(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": kind, "digest": digest, "size": size}
