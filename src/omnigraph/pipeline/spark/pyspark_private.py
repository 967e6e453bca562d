"""What can only be asked of pyspark by its private names, in one place.

Owns every use of such a name, and what the Python side of Spark would print by itself.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

# ruff: noqa: SLF001 - to touch what is private is what this module is for


Installed = tuple[Any, Any]

# They print the stack of the JVM as JSON for every error in an expression, before it is raised.
_CONTEXT_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def install_gateway(gateway: Any, jvm: Any) -> Installed:
    """Make a gateway the one that pyspark uses; returns what it had before."""
    from pyspark import SparkContext

    with SparkContext._lock:
        before = SparkContext._gateway, SparkContext._jvm
        SparkContext._gateway, SparkContext._jvm = gateway, jvm
    return before


def attach_gateway() -> Any:
    """Connect to the JVM that the environment names, as a child of `spark-submit` does."""
    from pyspark.java_gateway import launch_gateway

    return launch_gateway()  # type: ignore[no-untyped-call]


def new_conf() -> SparkConf:
    """A configuration in the JVM of the installed gateway, with what Spark was started with."""
    from pyspark import SparkConf, SparkContext

    return SparkConf(_jvm=SparkContext._jvm)


def has_session() -> bool:
    """Whether pyspark has a session in this process, of either kind."""
    from pyspark import SparkContext
    from pyspark.sql.utils import is_remote

    return SparkContext._active_spark_context is not None or is_remote()


def is_stopped(session: SparkSession) -> bool:
    """Whether a classic session was stopped, in Python or in its JVM, which must be alive."""
    context = session.sparkContext._jsc
    return context is None or bool(context.sc().isStopped())


def executor_count(context: SparkContext) -> int:
    """How many executors have registered."""
    # The driver counts as one.
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


def silence_lost_connection(context: SparkContext) -> None:
    """Let the thread for accumulators end without a traceback when the JVM ends first."""

    def ignore(request: object, client_address: object) -> None:
        """Whoever waits for the JVM learns of its end by an error of its own."""

    context._accumulatorServer.handle_error = ignore  # type: ignore[method-assign]


def forget_session() -> None:
    """Remove the classic session whose JVM is gone: its own `stop` would try to talk to it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if (context := SparkContext._active_spark_context) is not None:
        context._jsc = None
        context.stop()
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def connect_channel(session: SparkSession) -> Any:
    """The gRPC channel of a session on a Connect server."""
    return session.client._channel


def set_connect_mode(*, on: bool) -> None:
    """Whether the functions of pyspark build expressions for Connect, in the whole process."""
    variables = os.environ  # where pyspark keeps it; nothing for users to set
    if on:
        variables["SPARK_CONNECT_MODE_ENABLED"] = "1"
    else:
        variables.pop("SPARK_CONNECT_MODE_ENABLED", None)


def forget_server(session: SparkSession) -> None:
    """Let a session on a Connect server be stopped without telling a server that may be gone."""
    session.release_session_on_close = False  # type: ignore[attr-defined]


def silence_loggers() -> None:
    """Let errors be raised without being printed first."""
    from pyspark.logger import PySparkLogger

    for name in _CONTEXT_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # The same filter is added once only.
    logging.getLogger().addFilter(_not_by_py4j)


def _not_by_py4j(record: logging.LogRecord) -> bool:
    """Py4j writes an interrupt to the root logger, with the stack of its own socket."""
    return "/py4j/" not in record.pathname
