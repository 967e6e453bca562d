"""The package on its way to executors, which run what this process runs.

Owns the archive and who has got it. What the package depends on (Lance, Arrow, …)
is not shipped: it must be installed where executors run.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import sys
import tempfile
import threading
import weakref
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from omnigraph.pipeline.spark.engine import SparkEngine

PACKAGE = "omnigraph"
# The oldest time an archive can name: equal sources make equal archives.
_NO_TIME = (1980, 1, 1, 0, 0, 0)

_lock = threading.Lock()
_served: weakref.WeakSet[object] = weakref.WeakSet()


def ship_package(engine: SparkEngine) -> None:
    """Give the package to the executors of an engine, once.

    Those of a local master need nothing: they run this interpreter, in this
    environment, and import what it imports.
    """
    if engine.is_local:
        return
    session = engine.session
    holder: object = session if engine.is_connect else session.sparkContext
    with _lock:
        if holder in _served:
            return
        archive = str(package_archive())
        if engine.is_connect:
            session.addArtifacts(archive, pyfile=True)
        else:
            path = list(sys.path)
            session.sparkContext.addPyFile(archive)
            # Meant for a driver that has not got it; this one would hand it to its own children.
            sys.path[:] = path
        _served.add(holder)


@cache
def package_archive() -> Path:
    """The package as a zip file, named by its content and removed with this process."""
    directory = Path(tempfile.mkdtemp(prefix="omnigraph-package-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    draft = directory / "draft"
    write_archive(draft)
    digest = hashlib.sha256(draft.read_bytes()).hexdigest()[:12]
    return draft.rename(directory / f"{PACKAGE}-{digest}.zip")


def write_archive(path: Path) -> None:
    """Write the package as a zip file; equal sources give equal bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in _members(files(PACKAGE), PACKAGE):
            archive.writestr(
                zipfile.ZipInfo(name, _NO_TIME), file.read_bytes(), zipfile.ZIP_DEFLATED
            )


def _members(directory: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        inner = f"{name}/{entry.name}"
        if entry.is_file():
            yield inner, entry
        elif entry.name != "__pycache__":
            yield from _members(entry, inner)
