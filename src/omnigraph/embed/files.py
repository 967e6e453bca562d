"""Embedding a file of records: NDJSON in, the same NDJSON with vectors out.

Owns what is to be embedded (a spec, by itself or inside a seed manifest), the four modes and
the order of the lines, in bounded memory. The output is there whole or not at all. Never opens
a graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.protocol import Embedder, Vectors
from omnigraph.embed.providers import embedder_of
from omnigraph.errors import BadRequest, EmbeddingError
from omnigraph.lang.diagnostics import name_hint
from omnigraph.storage.objects.files import replaced_file

_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text_decoder = msgspec.json.Decoder(str)

DEFAULT_OUTPUT = "./build/seed.embedded.jsonl"

Mode = Literal["fill_missing", "reembed_selected", "reembed_all", "clean"]

# So many lines, or so many bytes of them, are held at a time.
BLOCK_LINES = 1024
BLOCK_BYTES = 8 << 20
_BOM = b"\xef\xbb\xbf"


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


@dataclass(slots=True)
class FileSummary:
    """What was done, under the names that are printed."""

    input: str
    output: str
    records: int
    selected_records: int
    embedded_records: int
    cleaned_records: int
    mode: Mode
    dimension: int
    model: str


@dataclass(frozen=True, slots=True)
class RecordChoice:
    """Which records are meant: of some types if any are named, matching any of the selectors."""

    types: Collection[str] = ()
    selectors: Sequence[Selector] = ()

    def check(self, spec: EmbedSpec) -> None:
        """Refuse types that the spec does not have."""
        named = [*self.types, *(one.type_name for one in self.selectors if one.type_name)]
        for name in named:
            if name not in spec.types:
                hint = name_hint(name, spec.types)
                raise BadRequest(f"the spec has no type '{name}'" + (f"; {hint}" if hint else ""))

    def takes(self, record: Record) -> bool:
        """Whether a record is meant."""
        if self.types and record.type_name not in self.types:
            return False
        return not self.selectors or any(one.matches(record) for one in self.selectors)


@dataclass(slots=True)
class _Waiting:
    """A record whose vector is still to be made."""

    number: int
    record: Record
    type_: TypeSpec


@dataclass(slots=True)
class _Block:
    """Some lines in their order, those of records that wait left open."""

    lines: list[bytes | _Waiting] = field(default_factory=list)
    size: int = 0

    def add(self, line: bytes | _Waiting, size: int) -> None:
        self.lines.append(line)
        self.size += size

    @property
    def is_full(self) -> bool:
        return len(self.lines) >= BLOCK_LINES or self.size >= BLOCK_BYTES


def embed_file(
    files: EmbedFiles,
    choice: RecordChoice | None = None,
    mode: Mode | None = None,
    config: EmbedderConfig | None = None,
) -> FileSummary:
    """Embed the records of a file; without a mode, those that are selected or lack a vector."""
    choice = choice or RecordChoice()
    choice.check(files.spec)
    if mode is None:
        mode = "reembed_selected" if choice.selectors else "fill_missing"
    embedder = embedder_of(config)
    summary = FileSummary(
        str(files.input), str(files.output), 0, 0, 0, 0, mode, files.spec.dimension, embedder.model
    )
    try:
        files.output.parent.mkdir(parents=True, exist_ok=True)
        with files.input.open("rb") as source, replaced_file(files.output) as to:
            _Run(files, choice, embedder, summary).copy(source, to)
    except OSError as error:
        raise BadRequest(
            f"cannot embed {files.input} into {files.output}: {error.strerror or error}"
        ) from error
    return summary


@dataclass(slots=True)
class _Run:
    """One pass over a file."""

    files: EmbedFiles
    choice: RecordChoice
    embedder: Embedder
    summary: FileSummary

    def copy(self, source: BinaryIO, to: BinaryIO) -> None:
        block = _Block()
        for number, line in _lines(source):
            block.add(self._line(number, line), len(line))
            if block.is_full:
                self._write(block, to)
                block = _Block()
        self._write(block, to)

    def _line(self, number: int, line: bytes) -> bytes | _Waiting:
        """The line as it is written, or the record that has to wait for its vector."""
        try:
            record = Record.of(line)
        except ValueError as error:
            raise BadRequest(
                f"{self.files.input}, line {number}: {error}",
                details={"line": number},
            ) from error
        summary = self.summary
        summary.records += 1
        type_ = None if record is None else self.files.spec.types.get(record.type_name)
        if record is None or type_ is None or not self.choice.takes(record):
            return line
        summary.selected_records += 1
        if summary.mode == "clean":
            if not record.drop(type_.target):
                return line
            summary.cleaned_records += 1
            return record.line()
        if summary.mode == "fill_missing" and not record.lacks(type_.target):
            return line
        return _Waiting(number, record, type_)

    def _write(self, block: _Block, to: BinaryIO) -> None:
        waiting = [line for line in block.lines if isinstance(line, _Waiting)]
        if waiting:
            texts = [one.record.text(one.type_.fields) for one in waiting]
            try:
                vectors = self.embedder.embed(texts, self.files.spec.dimension)
            except EmbeddingError as error:
                raise self._placed(error, waiting) from None
            for one, vector in zip(waiting, vectors, strict=True):
                one.record.put(one.type_.target, vector)
            self.summary.embedded_records += len(waiting)
        to.writelines(
            (line.record.line() if isinstance(line, _Waiting) else line) + b"\n"
            for line in block.lines
        )

    def _placed(self, error: EmbeddingError, waiting: Sequence[_Waiting]) -> EmbeddingError:
        if error.position is None:
            return error
        number = waiting[error.position].number
        return EmbeddingError(
            f"{self.files.input}, line {number}: {error}",
            kind=error.kind,
            details={**error.details, "line": number},
        )


def _lines(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Every line that says something, with its number and without its end."""
    for number, line in enumerate(source, start=1):
        whole = line.removeprefix(_BOM) if number == 1 else line
        if whole.strip():
            yield number, whole.rstrip(b"\r\n")
