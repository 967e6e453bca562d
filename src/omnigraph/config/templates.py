"""Projects to begin with: their files, and writing them.

Owns which files a template has. Overwrites none: where one of them is, nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from omnigraph.config.keys import TEMPLATES
from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint

_HIDDEN = {"gitignore": ".gitignore"}
"""Files that would mean something where they are kept."""


def write_template(name: str, directory: Path) -> list[Path]:
    """Write the files of a template; returns them."""
    if name not in TEMPLATES:
        raise BadRequest(f"there is no template {name!r:.60}: {name_hint(name, TEMPLATES)}")
    texts = {directory / place: text for place, text in _files(name)}
    there = [path for path in texts if path.exists()]
    if there:
        raise BadRequest(
            f"{there[0]} is there already, and nothing is overwritten: choose an empty directory"
        )
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"cannot write {error.filename}: {error.strerror}") from None
    return list(texts)


def _files(name: str) -> Iterator[tuple[Path, str]]:
    """The files of a template, each with its text, by their places."""
    yield from _below(files("omnigraph.config") / "template_files" / name, Path())


def _below(room: Traversable, place: Path) -> Iterator[tuple[Path, str]]:
    for found in sorted(room.iterdir(), key=lambda one: one.name):
        inside = place / _HIDDEN.get(found.name, found.name)
        if found.is_dir():
            yield from _below(found, inside)
        else:
            yield inside, found.read_text(encoding="utf-8")
