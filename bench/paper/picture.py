"""The paper's figure 8 as it was measured here: seconds of work of each node, for each way to divide it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median

from PIL import Image, ImageDraw, ImageFont

from bench.paper.figures import Run, good_runs
from bench.paper.methods import TITLES
from bench.paper.table import node_seconds

WIDTH, TOP, LEFT, RIGHT = 920, 64, 300, 70
BAR, GAP, NUMBER = 13, 16, 28
COLOURS = ("#1f6f8b", "#5aa469", "#d9a441", "#b5523b")
INK, SOFT, PAPER = "#222222", "#888888", "#ffffff"
SHARPER = 2
"""Pixels of the PNG for each of the SVG."""


@dataclass(frozen=True)
class Box:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str


@dataclass(frozen=True)
class Words:
    """A text; `x` is its right end if `to_the_left`, else its left one, and `y` its middle."""

    x: float
    y: float
    text: str
    size: int = 13
    colour: str = INK
    to_the_left: bool = False


Shape = Box | Words


def draw(folder: Path, runs: Sequence[Run], names: Sequence[str]) -> list[Path]:
    """Write paper.svg and paper.png; their paths."""
    shapes = list(_shapes(runs, names))
    height = max(one.y for one in shapes) + 24
    vector, pixels = folder / "paper.svg", folder / "paper.png"
    vector.write_text(_svg(shapes, height))
    _png(shapes, height).save(pixels, optimize=True)
    return [vector, pixels]


def _shapes(runs: Sequence[Run], names: Sequence[str]) -> Iterator[Shape]:
    shown = [method for method in TITLES if good_runs(runs, method)]
    longest = max((one["seconds"] for method in shown for one in good_runs(runs, method)), default=1.0)

    def across(seconds: float) -> float:
        return (WIDTH - LEFT - RIGHT) * seconds / longest

    yield Words(
        16, 20, "Seconds of work of each node (medians); the line is the bound, where all would end at once", 15
    )
    for at, name in enumerate(names):
        yield Box(LEFT + 110 * at, 40, BAR, BAR, COLOURS[at % len(COLOURS)])
        yield Words(LEFT + 110 * at + BAR + 6, 47, name)
    y = float(TOP)
    for method in shown:
        yield from _group(runs, method, names, y, across)
        y += BAR * len(names) + GAP


def _group(
    runs: Sequence[Run], method: str, names: Sequence[str], y: float, across: Callable[[float], float]
) -> Iterator[Shape]:
    yield Words(LEFT - 10, y + BAR * len(names) / 2, TITLES[method], to_the_left=True)
    line = LEFT + across(median(one["bound"] for one in good_runs(runs, method)))
    for at, name in enumerate(names):
        seconds = node_seconds(runs, method, name) or 0.0
        end = LEFT + across(seconds)
        yield Box(LEFT, y + BAR * at, end - LEFT, BAR - 1, COLOURS[at % len(COLOURS)])
        free = line + 2 if end <= line <= end + NUMBER else end  # the line would go through the number
        yield Words(free + 5, y + BAR * (at + 0.5), f"{seconds:.0f}", 11, SOFT)
    yield Box(line, y - 4, 2, BAR * len(names) + 7, INK)


def _svg(shapes: Sequence[Shape], height: float) -> str:
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="{PAPER}"/>',
    ]
    for one in shapes:
        if isinstance(one, Box):
            size = f'width="{one.width:.1f}" height="{one.height:.1f}"'
            lines.append(f'<rect x="{one.x:.1f}" y="{one.y:.1f}" {size} fill="{one.colour}"/>')
        else:
            where = f'x="{one.x:.1f}" y="{one.y:.1f}" text-anchor="{"end" if one.to_the_left else "start"}"'
            how = f'font-size="{one.size}" fill="{one.colour}" dominant-baseline="central"'
            lines.append(f"<text {where} {how}>{escape(one.text)}</text>")
    return "\n".join([*lines, "</svg>", ""])


def _png(shapes: Sequence[Shape], height: float) -> Image.Image:
    image = Image.new("RGB", (WIDTH * SHARPER, round(height * SHARPER)), PAPER)
    pen = ImageDraw.Draw(image)
    for one in shapes:
        x, y = one.x * SHARPER, one.y * SHARPER
        if isinstance(one, Box):
            if one.width:
                pen.rectangle((x, y, x + one.width * SHARPER - 1, y + one.height * SHARPER - 1), one.colour)
        else:
            font = ImageFont.load_default(one.size * SHARPER)
            pen.text((x, y), one.text, one.colour, font, anchor="rm" if one.to_the_left else "lm")
    return image
