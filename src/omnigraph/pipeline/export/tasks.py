"""Export files: one part of a table written to one file, and all files shown together.

Owns how rows become lines or a Parquet file whose columns a load reads back without loss, where
parts are written, how they get their names, and the marker that comes last. Works batch by
batch, on executors too. Never touches a directory that has something in it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.pipeline.input.input_files import children, find
from omnigraph.pipeline.source.reading import (
    SourceColumn,
    TablePart,
    TypeSelection,
    columns_of,
    converted,
)
from omnigraph.read.output.export import Export
from omnigraph.read.output.json_text import within_bytes
from omnigraph.rows.arrow_types import SCALARS
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.files import bucket_store, new_object, replaced_file, sync_directory
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.sorted_scan import sorted_batches

MARKER = "_SUCCESS"

Format = Literal["jsonl", "parquet"]

_GROUP_ROWS = 131_072
_GROUP_BYTES = 64 << 20
# Parquet has no lists of one length.
_PARQUET: Mapping[Scalar, pa.DataType] = {
    **SCALARS,
    Scalar.BLOB: pa.large_binary(),
    Scalar.VECTOR: pa.list_(pa.field("element", pa.float32())),
}


@dataclass(frozen=True, slots=True)
class ExportDirectory:
    """A directory to be, and the hidden one where its files are made."""

    target: Location
    draft: Location

    @classmethod
    def of(cls, path: str | Path) -> Self:
        """The directory of a path or an ``s3://`` address."""
        text = str(path)
        target = Location.parse(text if "://" in text else str(Path(text).expanduser()))
        attempt = uuid4().hex
        if not target.is_local:
            return cls(target, target.join(f"_temporary-{attempt}"))
        # Beside it: on the same disk, a directory is renamed in one step.
        place = Path(target.path)
        return cls(target, Location("file", str(place.with_name(f".{place.name}.{attempt}.tmp"))))

    def require_free(self) -> None:
        """Refuse a place that is taken."""
        if find(self.target.uri) is not None:
            raise BadRequest(f"cannot export to {self.target}: it is a file; name a directory")
        self._require_empty()

    @contextmanager
    def drafting(self) -> Iterator[None]:
        """Make the hidden directory for a block; whatever is still in it at the end goes."""
        if self.draft.is_local:
            with storage_errors(f"writing {self.target}"):
                Path(self.draft.path).mkdir(parents=True)
        try:
            yield
        finally:
            self._discard()

    def moves(self, names: Collection[str]) -> list[Move]:
        """What is left to do for the files of these names, which tasks may do side by side."""
        self._require_empty()
        if self.draft.is_local:
            return []
        return [Move(self.draft.join(name), self.target.join(name)) for name in names]

    def show(self, names: Collection[str]) -> None:
        """Give the directory its name and its marker; all moves are done."""
        if not self.draft.is_local:
            ControlObjects(self.target).replace(MARKER, b"")
            return
        draft, target = Path(self.draft.path), Path(self.target.path)
        with storage_errors(f"writing {self.target}"):
            _remove_others(draft, names)
            with draft.joinpath(MARKER).open("xb") as marker:
                os.fsync(marker.fileno())
            draft.rename(target)
            sync_directory(target.parent)

    def _require_empty(self) -> None:
        found = children(self.target.uri, lambda name: name != self.draft.path.rpartition("/")[2])
        if found.directories or found.files:
            raise BadRequest(
                f"cannot export to {self.target}: there is something in it already; name another"
                " directory, or empty this one"
            )

    def _discard(self) -> None:
        if self.draft.is_local:
            shutil.rmtree(self.draft.path, ignore_errors=True)
            return
        objects = ControlObjects(self.draft)
        for name in objects.list():
            objects.delete(name)


def _remove_others(directory: Path, names: Collection[str]) -> None:
    """Remove what attempts left that were killed while they wrote."""
    wanted = {directory / name for name in names}
    for path in directory.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()


# -- in tasks ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Move:
    """An object of a store that gets another name."""

    source: Location
    target: Location


def move(wanted: Move) -> None:
    """Give an object its name; one that was moved already is left alone."""
    import obstore

    meter.count("copy")
    with storage_errors(f"moving {wanted.source}"):
        try:
            obstore.rename(bucket_store(wanted.source), wanted.source.prefix, wanted.target.prefix)
        except FileNotFoundError:
            if find(wanted.target.uri) is None:
                raise


@contextmanager
def open_sink(location: Location) -> Iterator[BinaryIO]:
    """A new file at a place, which has it when the block ends well and not before."""
    with storage_errors(f"writing {location}"), _opened(location) as sink:
        yield sink


def _opened(location: Location) -> AbstractContextManager[BinaryIO]:
    if not location.is_local:
        return new_object(location)
    place = Path(location.path)
    place.parent.mkdir(parents=True, exist_ok=True)
    return replaced_file(place)


@dataclass(frozen=True, slots=True)
class PartJob:
    """A part to write, as what, and where."""

    type: NodeType | EdgeType
    part: TablePart
    format: Format
    place: Location


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """How much one file has."""

    rows: int
    bytes: int


def write_part(job: PartJob) -> WrittenPart:
    """Write one file, ordered by id."""
    write = _write_lines if job.format == "jsonl" else _write_parquet
    with open_sink(job.place) as sink:
        rows = write(job, sink)
        return WrittenPart(rows, sink.tell())


def _write_lines(job: PartJob, sink: BinaryIO) -> int:
    rows = 0
    for chunk in Export([(job.type, job.part)]).chunks():
        sink.write(chunk.data)
        rows += chunk.rows
    return rows


# -- Parquet -----------------------------------------------------------------------


def _write_parquet(job: PartJob, sink: BinaryIO) -> int:
    selection = TypeSelection(job.part, job.type.name, columns_of(job.type, job.part))
    schema = _parquet_schema(selection.columns)
    rows = 0
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in _row_groups(_batches(selection, schema)):
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
    return rows


def _batches(selection: TypeSelection, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    stored = list(dict.fromkeys(one.stored for one in selection.columns if one.stored))
    blobs = selection.blobs
    for batch in sorted_batches(selection.table, stored, with_row_address=bool(blobs)):
        for rows in within_bytes(batch, blobs):
            yield converted(selection, rows, schema)


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Neighbouring batches together: readers of Parquet want groups of some size."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if held and (rows + batch.num_rows > _GROUP_ROWS or size + batch.nbytes > _GROUP_BYTES):
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if held:
        yield pa.Table.from_batches(held)


def _parquet_schema(columns: Sequence[SourceColumn]) -> pa.Schema:
    return pa.schema(
        [pa.field(one.name, _parquet_type(one.type), nullable=one.nullable) for one in columns]
    )


def _parquet_type(type_: ValueType) -> pa.DataType:
    scalar = _PARQUET[type_.scalar]
    return pa.list_(pa.field("element", scalar)) if type_.is_list else scalar
