"""What is to be embedded in a file of records: a spec, by itself or inside a seed manifest.

Owns reading both. Never looks at the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from omnigraph.errors import BadRequest

DEFAULT_OUTPUT = "./build/seed.embedded.jsonl"


class TypeSpec(msgspec.Struct, frozen=True):
    """The vector of a type, and the fields that its text is put together from."""

    target: str
    fields: list[str]


class EmbedSpec(msgspec.Struct, frozen=True):
    """How many numbers a vector has, and the types that get one."""

    dimension: int
    types: dict[str, TypeSpec]


@dataclass(frozen=True, slots=True)
class EmbedFiles:
    """What is read, what is written, and what happens in between."""

    input: Path
    output: Path
    spec: EmbedSpec


def read_spec(path: Path) -> EmbedSpec:
    """The spec in a JSON file."""
    try:
        written = msgspec.json.decode(_read(path))
    except msgspec.DecodeError as error:
        raise BadRequest(f"{path} is not JSON: {error}") from error
    return _spec(written, str(path))


def read_seed(path: Path, output: Path | None = None) -> EmbedFiles:
    """What a seed manifest says; its paths are relative to where it lies."""
    import yaml

    try:
        written = yaml.safe_load(_read(path))
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise BadRequest(f"{path} is not YAML: {reason}") from error
    if not isinstance(written, Mapping) or "embeddings" not in written:
        raise BadRequest(f"{path} has no `embeddings:`, which say what is to be embedded")
    source = _text(written, "sources", "raw_seed", path) or _text(written, "seed", "data", path)
    if source is None:
        raise BadRequest(f"{path} does not say where the records are: give `sources.raw_seed`")
    made = _text(written, "artifacts", "embedded_seed", path) or DEFAULT_OUTPUT
    return EmbedFiles(
        path.parent / source,
        output or path.parent / made,
        _spec(written["embeddings"], f"{path}, embeddings"),
    )


def _text(written: Mapping[str, Any], section: str, name: str, path: Path) -> str | None:
    inner = written.get(section)
    found = inner.get(name) if isinstance(inner, Mapping) else None
    if found is not None and not isinstance(found, str):
        raise BadRequest(f"{path}: `{section}.{name}` is the path of a file")
    return found


def _spec(written: object, place: str) -> EmbedSpec:
    try:
        spec = msgspec.convert(written, EmbedSpec)
    except msgspec.ValidationError as error:
        raise BadRequest(
            f"{place}: {error}; what is wanted is "
            '{"dimension": n, "types": {"T": {"target": "vector", "fields": ["a", "b"]}}}'
        ) from error
    if spec.dimension < 1:
        raise BadRequest(f"{place}: the dimension is {spec.dimension}, but vectors have numbers")
    for name, type_ in spec.types.items():
        if not type_.target or not type_.fields:
            raise BadRequest(f"{place}: {name} needs a target and at least one field")
    return spec


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror or error}") from error
