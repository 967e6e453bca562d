"""Schemas and queries as callers give them: as a source, as text, or by the path of a file.

Owns telling a text from a path. Never compiles one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.lang.source import Source


def schema_source(schema: str | Path | Source) -> Source:
    """A schema that is given as it is, as its text, or by the path of its file."""
    if isinstance(schema, Source):
        return schema
    text = str(schema)
    if isinstance(schema, str) and ("{" in text or "\n" in text or not text.strip()):
        return Source(text, "<schema>")
    return Source(_read(Path(text)), text)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path} is not UTF-8 text (byte {error.start})") from None


def desired_source(schema: str | Path | Source) -> Source:
    """The schema that a branch is to get; a text that got lost on the way is none."""
    found = schema_source(schema)
    if not found.text.strip():
        raise BadRequest(f"{found.name} is empty: that would drop every type")
    return found


def query_source(query: str | Path | Source) -> Source:
    """Queries that are given as they are, as their text, or by the path of their file."""
    if isinstance(query, Path):
        return Source(_read(query), str(query))
    return query if isinstance(query, Source) else Source(query, "<query>")


def named_query(
    name: str | Mapping[str, Any] | None, params: Mapping[str, Any] | None
) -> tuple[str | None, Mapping[str, Any] | None]:
    """Which query is meant, and its parameters, which may stand where its name would."""
    if name is None or isinstance(name, str):
        return name, params
    if params is not None:
        raise BadRequest("params are given twice: once in the place of the query's name")
    return None, name
