"""The one error for a Spark that cannot be had: no Java, no master, a JVM that ended.

Owns which class of the tree that is. A setting that makes no sense is not one of
these: it is refused where it is read.
"""

from __future__ import annotations

from typing import Any

from omnigraph.errors import EngineError


def engine_unavailable(message: str, **details: Any) -> EngineError:
    """Spark could not be started, or is gone; the message says what to do."""
    return EngineError(message, details=details)
