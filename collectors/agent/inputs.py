"""Which data names have changed, for the processors that run on changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from infosvc.wire.records import Run


class Inputs:
    """What the inputs of a node's processors were last: their texts here, and the service's counts of changes."""

    def __init__(self) -> None:
        self._texts: dict[str, str | None] = {}
        self._counts: dict[str, int] = {}

    def follow(self, names: Iterable[str]) -> None:
        """These are the inputs from now on; of others nothing is remembered."""
        self._texts = {name: self._texts.get(name) for name in names}
        self._counts = {name: count for name, count in self._counts.items() if name in self._texts}

    def note_delivered(self, runs: Iterable[Run]) -> set[str]:
        """The inputs whose text these runs have changed."""
        changed = set()
        for run in runs:
            for name, text in _values_of(run):
                if name in self._texts and self._texts[name] != text:
                    self._texts[name] = text
                    changed.add(name)
        return changed

    def note_counts(self, counts: Mapping[str, int]) -> set[str]:
        """The inputs that changed somewhere since the service was heard before; a first count is not a change."""
        changed = {name for name, count in counts.items() if self._counts.get(name, count) != count}
        self._counts |= {name: count for name, count in counts.items() if name in self._texts}
        return changed


def _values_of(run: Run) -> Iterable[tuple[str, str]]:
    if run.value is not None:
        yield run.data_name, run.value
    yield from (run.values or {}).items()
