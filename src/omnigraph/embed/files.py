"""Embedding a file of records: NDJSON in, the same NDJSON with vectors out.

Owns the four modes and the order of the lines, in bounded memory. The output is there
whole or not at all. Never opens a graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.protocol import Embedder
from omnigraph.embed.providers import embedder_of
from omnigraph.embed.records import EmbedFiles, EmbedSpec, Record, Selector, TypeSpec
from omnigraph.errors import BadRequest, EmbeddingError
from omnigraph.lang.diagnostics import name_hint
from omnigraph.storage.objects.files import replaced_file

Mode = Literal["fill_missing", "reembed_selected", "reembed_all", "clean"]

# So many lines, or so many bytes of them, are held at a time.
BLOCK_LINES = 1024
BLOCK_BYTES = 8 << 20
_BOM = b"\xef\xbb\xbf"


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
