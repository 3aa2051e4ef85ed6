"""The Python sources of the product, and what stands in them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from tests.rooms import ROOT


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")) if "target" not in path.parts]


def module_of(path: Path) -> str:
    """How a source is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def texts(*folders: str) -> dict[str, str]:
    """Each source by its path in the repository."""
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in sources(*folders)}


def imported(text: str) -> Iterator[str]:
    """What a source imports, within functions and for types alone, too: modules, and what it takes from them."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, "an import names its module in full"
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def without_docstrings(text: str) -> ast.Module:
    """A source without the strings that say something to readers alone."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(value=...)
    return tree


def not_allowed(found: Collection[str], allowed: Mapping[str, str], home: Iterable[str] = ()) -> set[str]:
    """Those of the paths found that are neither at home nor allowed, and what is allowed without need.

    A path that ends in a slash is a folder.
    """

    def lies_in(path: str, place: str) -> bool:
        return path == place or (place.endswith("/") and path.startswith(place))

    outside = {path for path in found if not any(lies_in(path, place) for place in home)}
    needed = {place for place in allowed if any(lies_in(path, place) for path in outside)}
    return {path for path in outside if not any(lies_in(path, place) for place in allowed)} | (set(allowed) - needed)
