"""How setuptools makes the small wheel: the modules that programs import, and all that these import, below `nodewise`.

The rooms that they come from have names that anybody may use, such as `jobs`: here they are in `nodewise._rooms`, and
every import of one is written anew. Nothing is changed by hand, so both wheels have the same code.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

CHECKOUT = Path(__file__).resolve().parents[2]
IMPORTED = ("nodewise.client", "nodewise.tasks", "nodewise.learning")
ROOMS = ("infosvc", "locality", "hadoop", "boxes", "environments", "learning", "jobs", "collectors")
PREFIX = "nodewise._rooms"
_NAME = re.compile(rf"(?:{'|'.join(ROOMS)})(?:\.[a-z_]+)+")
"""A module of a room: in an import, or as a text by which one is imported later."""


class BuildPy(build_py):  # type: ignore[misc] # setuptools has no types here
    """Writes the modules in the place of a package, of which this folder has none."""

    def run(self) -> None:
        """An editable installation would have nothing to lead to."""
        if self.editable_mode:
            raise SetupError("nodewise-client is made of a checkout: install the checkout itself")
        built = Path(self.build_lib)
        shutil.rmtree(built, ignore_errors=True)
        write(built)

    def get_source_files(self) -> list[str]:
        """Nothing that setuptools would look for."""
        return []


def write(folder: Path) -> None:
    """Every module that the imported ones need, `nodewise` itself without an `__init__`: other wheels may add to it."""
    for name, source in sorted(needed().items()):
        path = source.relative_to(CHECKOUT)
        target = folder / (path if name in IMPORTED else Path(*PREFIX.split("."), path))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(rewrite(source.read_text(encoding="utf-8")), encoding="utf-8")


def needed() -> dict[str, Path]:
    """The files of all modules that are imported, at first or later, by their names."""
    found: dict[str, Path] = {}
    waiting = list(IMPORTED)
    while waiting:
        name = waiting.pop()
        file = _file(name)
        if file is not None and name not in found:
            found[name] = file
            waiting += [name.rpartition(".")[0], *_imports(ast.parse(file.read_text(encoding="utf-8")))]
    del found["nodewise"]
    return found


def rewrite(text: str) -> str:
    """The same module with the new names of rooms."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        for name in _named(node):
            line = node.lineno - 1  # type: ignore[attr-defined] # whatever names a module has a line
            lines[line] = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\.?\w)", f"{PREFIX}.{name}", lines[line], count=1)
    return "".join(lines)


def _imports(tree: ast.AST) -> Iterator[str]:
    """What a module imports when it runs, or may import later; what serves types alone is left out."""
    if isinstance(tree, ast.If) and isinstance(tree.test, ast.Name) and tree.test.id == "TYPE_CHECKING":
        return
    for name in _named(tree):
        yield name
        if isinstance(tree, ast.ImportFrom):
            yield from (f"{name}.{one.name}" for one in tree.names)
    for below in ast.iter_child_nodes(tree):
        yield from _imports(below)


def _named(node: ast.AST) -> list[str]:
    """The module of a room that this piece names, if it does."""
    if isinstance(node, ast.Import) and any(_is_ours(one.name) for one in node.names):
        raise SetupError(f"line {node.lineno}: say `from PACKAGE import MODULE`, which can be written anew")
    if isinstance(node, ast.ImportFrom) and node.module and _is_ours(node.module):
        return [node.module]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.fullmatch(node.value):
        return [node.value] if _file(node.value) else []
    return []


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ROOMS


def _file(name: str) -> Path | None:
    path = CHECKOUT.joinpath(*name.split("."))
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if name and file.is_file()), None)
