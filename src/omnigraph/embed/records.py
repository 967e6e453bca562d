"""Records of a file: which are chosen, what their text is, and setting their vector.

Owns what is to be embedded in a file: a spec, by itself or inside a seed manifest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from omnigraph.embed.protocol import Vectors
from omnigraph.errors import BadRequest

_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text_decoder = msgspec.json.Decoder(str)

DEFAULT_OUTPUT = "./build/seed.embedded.jsonl"


@dataclass(slots=True)
class Record:
    """A node envelope, opened no further than needed."""

    type_name: str
    envelope: dict[str, msgspec.Raw]
    data: dict[str, msgspec.Raw]

    @classmethod
    def of(cls, line: bytes) -> Record | None:
        """The record of a line; None for one that has no type. Raises ValueError."""
        try:
            envelope = _decoder.decode(line)
            if "type" not in envelope:
                return None
            type_name = _text_decoder.decode(envelope["type"])
            data = _decoder.decode(envelope["data"]) if "data" in envelope else {}
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(str(error)) from error
        return cls(type_name, envelope, data)

    def get(self, name: str) -> Any:
        """The value of a field; None if there is none."""
        return msgspec.json.decode(self.data[name]) if name in self.data else None

    def text(self, fields: Sequence[str]) -> str:
        """What is embedded: the type, and every field that says something."""
        said = ((name, _spoken(self.get(name))) for name in fields)
        lines = [f"type: {self.type_name}", *(f"{name}: {value}" for name, value in said if value)]
        return "\n".join(lines)

    def lacks(self, target: str) -> bool:
        """Whether it has no vector."""
        return self.get(target) in (None, [])

    def put(self, target: str, vector: Vectors) -> None:
        """Set the vector, in as few digits as 32 bits need."""
        import pyarrow as pa

        digits = pa.array(vector, pa.float32()).cast(pa.string()).to_pylist()
        self.data[target] = msgspec.Raw(msgspec.json.encode([float(text) for text in digits]))

    def drop(self, target: str) -> bool:
        """Take the vector away; says whether there was one."""
        return self.data.pop(target, None) is not None

    def line(self) -> bytes:
        """The record as a line, without its end."""
        data = msgspec.Raw(msgspec.json.encode(self.data))
        return msgspec.json.encode({**self.envelope, "data": data})


def _spoken(value: Any) -> str:
    """A value as words; nothing for null, and for what is empty."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return ", ".join(filter(None, map(_spoken, value)))
    if value is None or value == {}:
        return ""
    return msgspec.json.encode(value).decode()


@dataclass(frozen=True, slots=True)
class Selector:
    """A field that has a value, of any type or of one."""

    field: str
    value: str
    type_name: str | None = None

    @classmethod
    def of(cls, text: str) -> Selector:
        """Read `Type:field=value` or `field=value`."""
        named, equals, value = text.partition("=")
        type_name, colon, field = named.rpartition(":")
        if not equals or not field.strip() or (colon and not type_name.strip()):
            raise BadRequest(f"{text!r} selects nothing: write Type:field=value or field=value")
        return cls(field.strip(), value.strip(), type_name.strip() or None)

    def matches(self, record: Record) -> bool:
        """Whether the field of a record is the value, or a list that holds it."""
        if self.type_name not in (None, record.type_name):
            return False
        found = record.get(self.field)
        return any(
            _spoken(one) == self.value for one in (found if isinstance(found, list) else [found])
        )


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
    except (msgspec.DecodeError, RecursionError) as error:
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
    except RecursionError:
        raise BadRequest(f"{path} nests too deeply to be read") from None
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
