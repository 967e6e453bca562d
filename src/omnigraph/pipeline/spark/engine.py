"""The Spark a piece of work runs on, whoever started it.

Owns what the rest of the pipeline may ask about it, and giving the package to executors, once;
what that depends on (Lance, Arrow, …) must be installed where they run. Must never start or
stop a session.
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
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import BadRequest
from omnigraph.pipeline.spark.pyspark_private import has_session, is_stopped
from omnigraph.pipeline.spark.settings import is_local, shares_this_disk
from omnigraph.storage.objects.location import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = "omnigraph"
# The oldest time an archive can name: equal sources make equal archives.
_NO_TIME = (1980, 1, 1, 0, 0, 0)

_lock = threading.Lock()
_served: weakref.WeakSet[object] = weakref.WeakSet()


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """A session, and what it is a session of.

    ``master`` is what Spark calls it, for Connect the address of the server.
    ``log_file`` is where the JVM of this process writes; None when another
    program started it.
    """

    session: SparkSession
    master: str
    is_connect: bool = False
    log_file: Path | None = None

    @property
    def is_local(self) -> bool:
        """Whether tasks run on this machine as children of this process."""
        return not self.is_connect and is_local(self.master)

    @property
    def cores(self) -> int:
        """How many tasks run at once, as far as executors have registered by now."""
        if not self.is_connect:
            return self.session.sparkContext.defaultParallelism
        from pyspark.sql.functions import max as highest
        from pyspark.sql.functions import spark_partition_id

        # A Connect client cannot ask; a range is cut into as many parts as there are cores.
        parts = self.session.range(0, 1 << 16).select(spark_partition_id().alias("part"))
        return int(parts.select(highest("part")).collect()[0][0]) + 1


def engine_of(session: SparkSession) -> SparkEngine:
    """The engine behind a session of the user's; the session stays as it is, and theirs."""
    if any(kind.__module__.startswith("pyspark.sql.connect.") for kind in type(session).__mro__):
        if getattr(session, "is_stopped", False):
            raise _stopped()
        return SparkEngine(session, f"sc://{getattr(session.client, 'host', '')}", is_connect=True)
    if is_stopped(session):
        raise _stopped()
    return SparkEngine(session, session.sparkContext.master or "")


def require_no_other_session() -> None:
    """Refuse to start a second session: pyspark keeps one per process, in its own variables."""
    if has_session():
        raise BadRequest(
            "this process has a Spark session already, and can have only one: pass that session"
        )


def require_shared_storage(engine: SparkEngine | str, uri: str) -> None:
    """Refuse a graph that the executors of an engine, or of a master, could not reach.

    A graph on a local disk needs executors on this machine: a local master, or
    a standalone master whose host is this machine (``localhost``, 127.0.0.1 or
    the machine's own name), whose workers are then taken to be here too.
    """
    location = Location.parse(uri)
    master, is_connect = (
        (engine, False) if isinstance(engine, str) else (engine.master, engine.is_connect)
    )
    if not location.is_local or (not is_connect and shares_this_disk(master)):
        return
    raise BadRequest(
        f"{location} is on the disk of this machine, where the executors of {master} "
        "cannot reach it: put the graph on shared storage (s3://…), or run with the master "
        "local[*]",
        details={"uri": location.uri, "master": master},
    )


def _stopped() -> BadRequest:
    return BadRequest("the Spark session was stopped: create another one and pass that")


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
