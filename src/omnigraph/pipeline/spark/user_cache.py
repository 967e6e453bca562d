"""The per-user directory for files that can be made again: Java wrappers, Spark logs.

Owns where it is. Must never hold anything that a graph needs.
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path


def cache_directory(name: str) -> Path:
    """A directory below the user's cache that can be written to.

    A home that is missing or read-only (a container, a service account) is no
    reason to fail: then it is a private temporary directory.
    """
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        directory = base / "omnigraph" / name
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return _temporary(name)
    return directory if os.access(directory, os.W_OK | os.X_OK) else _temporary(name)


@cache
def _temporary(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"omnigraph-{name}-"))
