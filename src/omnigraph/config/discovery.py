"""Finding the project: the file that is named, else the first one on the way up.

Owns that way and where it ends. Reads the file it finds; without one there is no project.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from omnigraph.config.keys import CONFIG, PROJECT_FILE
from omnigraph.config.project import ProjectFile
from omnigraph.errors import BadRequest


def find_project_file(start: Path) -> Path | None:
    """The file of a directory, or of the next one above it, up to the end of the repository."""
    here = start.absolute()
    for directory in (here, *here.parents):
        candidate = directory / PROJECT_FILE
        if candidate.is_file():
            return candidate
        if (directory / ".git").exists():
            return None
    return None


def named_project_file(
    given: str | None, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """The file that an option names, or a variable; a directory means the file in it."""
    named = given if given is not None else environment.get(CONFIG, "").strip() or None
    if named is None:
        return None
    path = Path(named).expanduser()
    found = path / PROJECT_FILE if path.is_dir() else path
    if not found.is_file():
        where = "--config" if given is not None else CONFIG
        raise BadRequest(f"there is no file {found}, which {where} names")
    return found


def discover(
    given: str | None = None,
    start: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> ProjectFile | None:
    """The project that is meant, if any."""
    path = named_project_file(given, environment) or find_project_file(start or Path())
    if path is None:
        return None
    from omnigraph.config.project_reader import read_project

    return read_project(path)
