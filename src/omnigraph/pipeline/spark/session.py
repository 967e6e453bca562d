"""The Spark session of this process: started once, shared, ended when nobody needs it.

Owns who uses it and until when, and reaching and leaving a Spark Connect server, which has a
JVM of its own. Must never stop a session that somebody else created.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from omnigraph.errors import BadRequest, Conflict
from omnigraph.extras import require_extra
from omnigraph.pipeline.spark import local_driver
from omnigraph.pipeline.spark.engine import (
    SparkEngine,
    engine_of,
    require_no_other_session,
    require_shared_storage,
    ship_package,
)
from omnigraph.pipeline.spark.errors import engine_unavailable
from omnigraph.pipeline.spark.pyspark_private import (
    connect_channel,
    forget_server,
    set_connect_mode,
)
from omnigraph.pipeline.spark.settings import SparkSettings, connect_address, connect_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkEngine", "SparkSettings", "require_shared_storage", "spark_session"]


@dataclass(frozen=True, slots=True)
class Client:
    """A session on a server."""

    engine: SparkEngine

    @property
    def is_alive(self) -> bool:
        """Whether the session can take work."""
        return not self.engine.session.client.is_closed

    @contextmanager
    def at_work(self) -> Iterator[SparkEngine]:
        """The engine for a block."""
        yield self.engine

    def stop(self) -> None:
        """Leave the server, so that a session of another kind can follow."""
        self.engine.session.stop()
        set_connect_mode(on=False)

    def end(self) -> None:
        """Leave the server while this process ends."""
        self.stop()


def start_client(settings: SparkSettings, remote: str) -> Client:
    """A session on the server, once it has answered and taken the configuration."""
    import grpc  # type: ignore[import-untyped]
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    address = connect_address(remote)
    require_no_other_session()
    set_connect_mode(on=True)
    try:
        session = cast("SparkSession", ConnectSession.builder.remote(remote).create())
        try:
            # Asked by hand: the calls below would go on trying for ten minutes.
            grpc.channel_ready_future(connect_channel(session)).result(settings.start_seconds)
            for key, value in connect_conf(settings).items():
                session.conf.set(key, value)
        except BaseException:
            forget_server(session)
            session.stop()
            raise
    except BaseException as error:
        set_connect_mode(on=False)
        if not isinstance(error, Exception):
            raise
        late = isinstance(error, grpc.FutureTimeoutError)
        said = f"no answer after {settings.start_seconds:g} s" if late else _one_line(error)
        raise engine_unavailable(
            f"cannot use the Spark Connect server at {address}: {said}",
            remote=address,
            reason=said,
        ) from error
    return Client(SparkEngine(session, address, is_connect=True))


def _one_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


@dataclass(slots=True)
class _Started:
    settings: SparkSettings
    driver: local_driver.Driver | Client
    users: int = 0


_lock = threading.Lock()
_started: _Started | None = None
_submitted: SparkSession | None = None


@contextmanager
def spark_session(
    settings: SparkSettings | None = None, *, existing: SparkSession | None = None
) -> Iterator[SparkEngine]:
    """The engine to run on: a session of the user's, or the one of this process.

    A local session outlives the block, since starting one takes seconds, and
    ends with the process or when other settings are asked for. One on a cluster
    ends with the last block that uses it, and gives its executors back.
    """
    if existing is None:
        existing = _submitted_for(settings)
    if existing is not None:
        engine = engine_of(existing)
        ship_package(engine)
        yield engine
        return
    settings = settings or SparkSettings()
    if settings.remote is None:
        require_extra("spark", "work on Spark")
    else:
        require_extra("connect", "Spark Connect", otherwise="use a master instead of a remote")
    started = _acquire(settings)
    try:
        with started.driver.at_work() as engine:
            ship_package(engine)
            yield engine
    finally:
        _release(started)


def adopt_submitted() -> None:
    """Take the session that spark-submit has made ready for all work that names none."""
    from pyspark.sql import SparkSession

    global _submitted  # noqa: PLW0603 - a process is submitted once
    builder = SparkSession.builder
    for key, value in connect_conf(SparkSettings()).items():
        builder = builder.config(key, value)
    _submitted = builder.getOrCreate()


def _submitted_for(settings: SparkSettings | None) -> SparkSession | None:
    if _submitted is not None and settings is not None and settings != SparkSettings():
        raise BadRequest(
            "this program was submitted to a Spark: leave --master, --remote and --conf to"
            " spark-submit"
        )
    return _submitted


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


def _start(settings: SparkSettings) -> local_driver.Driver | Client:
    if settings.remote is not None:
        return start_client(settings, settings.remote)
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
