"""Sessions on a Spark Connect server.

Owns reaching the server and leaving it. Must never start a JVM: the server has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from omnigraph.pipeline.spark.engine import SparkEngine, require_no_other_session
from omnigraph.pipeline.spark.errors import engine_unavailable
from omnigraph.pipeline.spark.pyspark_private import (
    connect_channel,
    forget_server,
    set_connect_mode,
)
from omnigraph.pipeline.spark.settings import SparkSettings, connect_address, connect_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def start(settings: SparkSettings, remote: str) -> Client:
    """A session on the server, once it has answered and taken the configuration."""
    address = connect_address(remote)
    try:
        import grpc  # type: ignore[import-untyped]
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except ImportError as missing:
        raise engine_unavailable(
            "Spark Connect needs packages that are not installed: "
            '`pip install "omnigraph[connect]"`, or use a master instead of a remote',
            missing=str(missing).partition("\n")[0],
        ) from missing
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
