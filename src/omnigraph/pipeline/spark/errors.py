"""What went wrong on Spark, told to a person: no Java, no master, a JVM that ended, a failed job.

Owns the one error for a Spark that cannot be had, and Spark's own words without codes and
stacks.
"""

from __future__ import annotations

import re
from typing import Any

from omnigraph.errors import EngineError

_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+")
_PLACE = re.compile(r"[.;]*\s*\(?line \d+,? pos \d+\)?[;\s]*$")
# How py4j begins the text of what Java has thrown.
_OF_JAVA = re.compile(r"^: [\w.$]+: (?P<said>.*)$", re.MULTILINE)


def engine_unavailable(message: str, **details: Any) -> EngineError:
    """Spark could not be started, or is gone; the message says what to do."""
    return EngineError(message, details=details)


def failures() -> tuple[type[Exception], ...]:
    """What is raised when Spark refuses something; not that it is gone."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def message_of(error: Exception) -> str | None:
    """What Spark says in its own words; None for an error that it has no words for."""
    text = _text(error)
    found = _CONDITION.match(text)
    if found is None:
        return None
    said = _STATE.sub("", text[found.end() :]).strip().partition("\n")[0]
    return _PLACE.sub("", said).rstrip(".; ") or found["name"]


def condition_of(error: Exception) -> str:
    """The stable name of what went wrong; empty if it has none."""
    found = _CONDITION.match(_text(error))
    return "" if found is None else found["name"]


def parameter_of(error: Exception, name: str) -> str:
    """One of the things that the message is about; empty if it is not told."""
    of_error = getattr(error, "getMessageParameters", None)
    parameters: dict[str, Any] = (of_error() if of_error is not None else None) or {}
    return str(parameters.get(name, ""))


def _text(error: Exception) -> str:
    text = str(error).strip()
    of_java = _OF_JAVA.search(text)
    return text if of_java is None or _CONDITION.match(text) else of_java["said"]
