"""Schemas and queries as callers give them: as a source, as text, or by the path of a file.

Owns telling a text from a path. Never compiles one.
"""

from __future__ import annotations

from pathlib import Path

from omnigraph.errors import BadRequest
from omnigraph.lang.source import Source


def schema_source(schema: str | Path | Source) -> Source:
    """A schema that is given as it is, as its text, or by the path of its file."""
    if isinstance(schema, Source):
        return schema
    text = str(schema)
    if isinstance(schema, str) and ("{" in text or "\n" in text or not text.strip()):
        return Source(text, "<schema>")
    try:
        return Source(Path(text).read_text(encoding="utf-8-sig"), text)
    except OSError as error:
        raise BadRequest(f"cannot read {text}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"{text} is not UTF-8 text (byte {error.start})") from error


def desired_source(schema: str | Path | Source) -> Source:
    """The schema that a branch is to get; a text that got lost on the way is none."""
    found = schema_source(schema)
    if not found.text.strip():
        raise BadRequest(f"{found.name} is empty: that would drop every type")
    return found


def query_source(text: str | Source) -> Source:
    """Queries that are given as they are, or as their text."""
    return text if isinstance(text, Source) else Source(text, "<query>")
