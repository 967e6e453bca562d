"""Checks of a pipeline as its document has them, and what is wrong with them.

Owns how a check is written: the text of a query, a file of queries, and which of them with which
parameters. When they are made is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from omnigraph.errors import LanguageError, OmniGraphError
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.pipeline.declared.yaml_node import DocumentErrors, YamlLocation, YamlNode
from omnigraph.pipeline.load.staged_checks import StagedCheck

_KEYS = ("file", "query", "params")
_SUFFIX = ".gq"
Place = Callable[[YamlNode], str | None]
"""A path as it is written, as one from where this process is."""


@dataclass(frozen=True, slots=True)
class DeclaredCheck:
    """A check, and where it is written."""

    check: StagedCheck
    spot: YamlLocation


def read_checks(written: YamlNode | None, place: Place) -> dict[str, DeclaredCheck]:
    """The checks of a document by name; what is wrong with them is told."""
    members = {} if written is None else written.members()
    found = ((name, _check(name, value, place)) for name, value in members.items())
    return {name: DeclaredCheck(one, members[name].spot) for name, one in found if one is not None}


def _check(name: str, written: YamlNode, place: Place) -> StagedCheck | None:
    if not written.is_mapping:
        text = written.text()
        if text is None:
            return None
        if not text.strip().endswith(_SUFFIX):
            return StagedCheck(name, text, path=written.spot.path)
        return _of_file(name, written, place)
    found = written.known(_KEYS)
    if "file" not in found:
        written.say("`file` is missing: the path of a file of queries")
        return None
    query = found["query"].text() if "query" in found else None
    values = found["params"].members() if "params" in found else {}
    params = {key: _value(value) for key, value in values.items()}
    return _of_file(name, found["file"], place, query, params)


def _of_file(
    name: str,
    written: YamlNode,
    place: Place,
    query: str | None = None,
    params: dict[str, Any] | None = None,
) -> StagedCheck | None:
    path = place(written)
    if path is None:
        return None
    try:
        source = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or error
        written.say(f"cannot read {path}: {said}")
        return None
    return StagedCheck(name, source, query, params or {}, path)


def _value(written: YamlNode) -> Any:
    """A number, a truth value or null as JSON writes them; any other scalar is a text."""
    if written.is_list:
        return [_value(one) for one in written.items()]
    if written.is_null:
        return None
    text = written.text()
    if text is None or written.is_quoted:
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def require_sound(
    checks: Iterable[DeclaredCheck], catalog: Catalog, problems: DocumentErrors
) -> None:
    """Tell which checks do not fit the schema."""
    for declared in checks:
        try:
            declared.check.compile(catalog)
        except LanguageError as error:
            problems.say(declared.spot, error.message)
        except OmniGraphError as error:
            problems.say(declared.spot, str(error))
