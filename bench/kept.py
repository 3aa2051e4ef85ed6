"""Where results are kept, and how they are told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

RESULTS = Path(__file__).resolve().parent / "results"


def keep(directory: Path, bench: str, record: Mapping[str, Any], text: str) -> Path:
    """Write both forms, named after bench, day and time, so that no run replaces another; the path of the table."""
    directory.mkdir(parents=True, exist_ok=True)
    name = f"{bench}-" + record["date"][:19].replace("T", "-").replace(":", "")
    (directory / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (directory / f"{name}.md").write_text(text)
    return directory / f"{name}.md"


def tell(bench: str, record: Mapping[str, Any], text: str, as_json: bool, directory: Path | None) -> None:
    """Print one form, keep both where a directory is given, and say where."""
    click.echo(json.dumps(record, indent=1) if as_json else text)
    if directory:
        click.echo(f"kept in {keep(directory, bench, record, text)}", err=True)
