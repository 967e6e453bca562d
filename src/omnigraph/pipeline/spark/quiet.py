"""What the Python side of Spark would print on the console by itself.

Owns which loggers are silenced, and only where the session is ours. Everything
they say is also raised as an error, or is in the log file of the JVM.
"""

from __future__ import annotations

import logging

# They print the stack of the JVM as JSON for every error in an expression, before it is raised.
_CONTEXT_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


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
