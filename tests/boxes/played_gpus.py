"""Cards that a program plays in place of NVIDIA's own tool: what it tells stands in files of a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

TOOL = """#!/bin/sh
case "$1" in
--query-gpu=*compute_cap*)
    [ ! -e {folder}/old ] || {{ echo 'Field "compute_cap" is not a valid field to query.'; exit 2; }} ;;
esac
case "$1" in
--query-gpu=*utilization*compute_cap*) sed 's/, \\([^,]*\\)$/, 0, \\1/' {folder}/cards ;;
--query-gpu=*compute_cap*) cat {folder}/cards ;;
--query-gpu=*utilization*) sed 's/, [^,]*$/, 0/' {folder}/cards ;;
--query-gpu=*) sed 's/, [^,]*$//' {folder}/cards ;;
--query-compute-apps=gpu_uuid,pid) cat {folder}/users {folder}/busy/* 2> /dev/null; exit 0 ;;
--query-compute-apps=gpu_uuid) sed 's/, .*//' {folder}/users ;;
*) exit 1 ;;
esac
"""


class PlayedGpus:
    """The cards of a machine; `busy` holds a file for each card that is used, as its user writes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.busy, self.locks, self.tool = folder / "busy", folder / "locks", folder / "nvidia-smi"
        for one in (self.busy, self.locks):
            one.mkdir(parents=True)
        self.locks.chmod(0o1777)
        self.tool.write_text(TOOL.format(folder=folder))
        self.tool.chmod(0o755)
        self.use({})

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables by which programs find these cards and their locks."""
        return {"NVIDIA_SMI": str(self.tool), "NODEWISE_GPU_LOCKS": str(self.locks)}

    def have(self, *cards: str) -> None:
        """Have these: model, MB in all, MB free and compute capability of each, with commas between them."""
        lines = []
        for index, card in enumerate(cards):
            model, total, free, capability = card.split(", ")
            lines.append(f"{index}, {uuid(index)}, {model}, {total}, {free}, {capability}\n")
        (self.folder / "cards").write_text("".join(lines))

    def use(self, pids: Mapping[int, Sequence[int]]) -> None:
        """Let strangers use cards, by their numbers."""
        lines = [f"{uuid(index)}, {pid}\n" for index, found in pids.items() for pid in found]
        (self.folder / "users").write_text("".join(lines))


def uuid(index: int) -> str:
    """By which a card is named."""
    return f"GPU-00000000-0000-4000-8000-{index:012d}"
