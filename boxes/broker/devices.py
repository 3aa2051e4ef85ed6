"""What a box of Docker gets with devices. A caller names them; which files come with them only root's CDI files say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxes.broker.order import Refusal
from boxes.cdi import libraries
from boxes.cdi.edits import Edits
from boxes.cdi.finding import find
from boxes.cdi.place import CdiError


def find_edits(names: Sequence[str], folders: Sequence[str]) -> Edits:
    """By the files of the folders that an operator has settled; Refusal when that cannot be."""
    if names and not folders:
        raise Refusal("boxes of Docker get no devices here", "an operator settles `cdi` in broker.json")
    try:
        return find(names, folders)
    except CdiError as error:
        raise Refusal(error.message, error.remedy) from None


def bind_mounts(edits: Edits) -> list[dict[str, Any]]:
    """Mounts as Docker's API has them."""
    return [
        {"Type": "bind", "Source": str(one.host), "Target": str(one.path), "ReadOnly": not one.is_writable}
        for one in (*edits.mounts, *libraries.by_soname(edits.mounts))
    ]


def device_files(edits: Edits) -> list[dict[str, str]]:
    """Devices as Docker's API has them."""
    return [
        {"PathOnHost": str(one.host), "PathInContainer": str(one.path), "CgroupPermissions": one.permissions}
        for one in edits.nodes
    ]


def variables(own: Mapping[str, str], of_image: Sequence[str], edits: Edits) -> list[str]:
    """The environment as Docker's API has it: libraries that the image names are found behind those of devices."""
    path = {name: value for name, _, value in (one.partition("=") for one in of_image) if name == libraries.PATH}
    found = libraries.extend({**path, **own}, edits) if edits.mounts or edits.environment else own
    return [f"{name}={value}" for name, value in found.items()]
