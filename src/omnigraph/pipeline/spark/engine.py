"""The Spark a piece of work runs on, whoever started it.

Owns what the rest of the pipeline may ask about it. Must never start or stop a session.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import BadRequest
from omnigraph.pipeline.spark.pyspark_private import has_session, is_stopped
from omnigraph.pipeline.spark.settings import is_local, shares_this_disk
from omnigraph.storage.objects.location import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
