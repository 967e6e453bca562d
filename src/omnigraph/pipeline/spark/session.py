"""The Spark session of this process: started once, shared, ended when nobody needs it.

Owns who uses it and until when. Must never stop a session that somebody else created.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.errors import Conflict
from omnigraph.pipeline.spark import connect, local_driver
from omnigraph.pipeline.spark.engine import (
    SparkEngine,
    engine_of,
    require_shared_storage,
    ship_package,
)
from omnigraph.pipeline.spark.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkEngine", "SparkSettings", "require_shared_storage", "spark_session"]


@dataclass(slots=True)
class _Started:
    settings: SparkSettings
    driver: local_driver.Driver | connect.Client
    users: int = 0


_lock = threading.Lock()
_started: _Started | None = None


@contextmanager
def spark_session(
    settings: SparkSettings | None = None, *, existing: SparkSession | None = None
) -> Iterator[SparkEngine]:
    """The engine to run on: a session of the user's, or the one of this process.

    A local session outlives the block, since starting one takes seconds, and
    ends with the process or when other settings are asked for. One on a cluster
    ends with the last block that uses it, and gives its executors back.
    """
    if existing is not None:
        engine = engine_of(existing)
        ship_package(engine)
        yield engine
        return
    started = _acquire(settings or SparkSettings())
    try:
        with started.driver.at_work() as engine:
            ship_package(engine)
            yield engine
    finally:
        _release(started)


def _acquire(settings: SparkSettings) -> _Started:
    global _started  # noqa: PLW0603 - one per process is all that Spark allows
    with _lock:
        if _started is not None and not _started.driver.is_alive:
            _stop()
        if _started is not None and _started.settings != settings:
            if _started.users:
                raise Conflict(
                    "another Spark session is at work in this process, and it can have only one: "
                    "use the same settings, or wait until that work is done"
                )
            _stop()
        if _started is None:
            _started = _Started(settings, _start(settings))
        _started.users += 1
        return _started


def _start(settings: SparkSettings) -> local_driver.Driver | connect.Client:
    if settings.remote is not None:
        return connect.start(settings, settings.remote)
    return local_driver.start(settings)


def _release(started: _Started) -> None:
    with _lock:
        started.users -= 1
        idle = started is _started and not started.users
        if idle and not started.driver.engine.is_local:
            _stop()


def _stop() -> None:
    global _started
    started, _started = _started, None
    if started is not None:
        started.driver.stop()


def _stop_at_exit(owner: int) -> None:
    # A forked child inherits this list of duties, but not the session.
    if _started is not None and os.getpid() == owner:
        _started.driver.end()


atexit.register(_stop_at_exit, os.getpid())
