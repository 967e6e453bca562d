"""The JSON Schema of `omnigraph.yaml`, for editors.

Owns its making from the table of keys. Whatever the program accepts the schema accepts, older
spellings included, marked as deprecated.
"""

from __future__ import annotations

from typing import Any

from omnigraph.config.keys import NAMED, PROJECT, Key

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXTS = {"type": "array", "items": {"type": "string"}}
_FILE = {
    "type": "object",
    "properties": {"file": {"type": "string"}},
    "additionalProperties": False,
}
_QUERIES = {
    "anyOf": [
        {"type": "string"},
        _TEXTS,
        {"type": "object", "additionalProperties": {**_FILE, "required": ["file"]}},
    ]
}
_BASES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "base": {"type": "string"},
            "scope": {"enum": ["server_safe", "embedded_only"]},
        },
        "required": ["base"],
        "additionalProperties": False,
    },
}


def project_schema() -> dict[str, Any]:
    """The schema of a whole file."""
    root: dict[str, Any] = {"type": "object", "properties": {}}
    for key in PROJECT:
        _place(root, key.parts, key)
    graphs = root["properties"]["graphs"]
    root["properties"]["targets"] = {**graphs, "deprecated": True}
    return {
        "$schema": DIALECT,
        "title": "omnigraph.yaml",
        "description": "Graphs of a project, and how they are used and served.",
        **root,
    }


def _place(level: dict[str, Any], parts: tuple[str, ...], key: Key) -> None:
    """Put the schema of a key below the names on the way to it."""
    name, rest = parts[0], parts[1:]
    if name == NAMED:
        child = level.setdefault("additionalProperties", {"type": ["object", "null"]})
    elif rest:
        child = level.setdefault("properties", {}).setdefault(name, {"type": ["object", "null"]})
    else:
        level.setdefault("properties", {})[name] = _value(key)
        return
    if rest:
        _place(child, rest, key)


def _value(key: Key) -> dict[str, Any]:
    found: dict[str, Any] = {"description": key.about.replace("`", ""), **_shape(key)}
    if key.default in key.choices and key.default is not None:
        found["default"] = key.default
    if key.is_older:
        found["deprecated"] = True
    return found


def _shape(key: Key) -> dict[str, Any]:
    if key.path == "version":
        return {"const": 1}
    if key.path.endswith("queries"):
        return dict(_QUERIES)
    if key.path.endswith("external_blobs.allow"):
        return dict(_BASES)
    if key.path.endswith(".params"):
        return {"type": "object"}
    match key.kind:
        case "choice":
            return {"enum": list(key.choices)}
        case "number":
            return {"type": "integer", "minimum": key.least}
        case "list":
            return dict(_TEXTS)
        case "file":
            return {"anyOf": [{"type": "string"}, _FILE]}
        case "secret":
            return {"type": "string", "pattern": r"^\$\{[A-Z_][A-Z0-9_]*\}$"}
        case "variable":
            return {"type": "string", "pattern": "^OMNIGRAPH_[A-Z0-9_]*TOKEN[A-Z0-9_]*$"}
        case "duration":
            return {"type": "string", "pattern": "^[0-9]{1,6}[smhdw]?$"}
    return {"type": "string"}
