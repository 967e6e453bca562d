"""Rows that get vectors: which of a table they are, and the same rows with new vectors.

Owns one pass over a table, or over some of its files, in bounded memory; and the task that writes
what comes of it, wherever that runs. Never touches a row but to set its vectors, and commits
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.fill import Marks, embedded_properties, fill_vectors, has_text
from omnigraph.embed.protocol import Embedder
from omnigraph.embed.providers import embedder_of
from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.query import plan
from omnigraph.lang.query.compile import compile_query
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import Catalog, NodeType
from omnigraph.lang.structural import ID
from omnigraph.rows.filters import RowFilter, row_filter
from omnigraph.storage.tables.columns import plain_blobs
from omnigraph.storage.tables.fragments import FragmentPart, stream_parts
from omnigraph.storage.tables.row_lookup import MAX_LISTED, find_rows
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table, is_filterable
from omnigraph.storage.tables.write_rows import WrittenRows, write_streams
from omnigraph.write.publish.read_set import has_blobs


@dataclass(frozen=True, slots=True)
class EmbedWork:
    """What is to be embedded: the nodes of a type, the properties, and the moment of it all."""

    catalog: Catalog
    type_name: str
    property_name: str | None
    where: str | None
    only_missing: bool
    now: datetime
    embedding: EmbedderConfig | None = None

    @property
    def node(self) -> NodeType:
        """The type."""
        return _find_node(self.type_name, self.catalog)

    @property
    def names(self) -> tuple[str, ...]:
        """The properties that get vectors."""
        return _find_properties(self.node, self.property_name)


@dataclass(frozen=True, slots=True)
class EmbedJob:
    """A pass over one table; ``parts`` are the files to be looked at, if not all of them are."""

    work: EmbedWork
    table: Table
    parts: tuple[FragmentPart, ...] | None = None


@dataclass(frozen=True, slots=True)
class EmbeddedRows:
    """Rows in files that have new vectors, and where those lie that they replace."""

    written: WrittenRows
    replaced: tuple[pa.Table, ...]
    vectors: Mapping[str, int]
    used: Mapping[str, str] | None
    """The provider and the model, if any were asked."""


def embedded_schema(table: Table) -> pa.Schema:
    """The columns of whole rows of a table, with their row ids, as they are handed on."""
    schema: pa.Schema = plain_blobs(table.schema).remove_metadata()
    return schema.append(pa.field(ROW_ID, pa.uint64()))


def write_embedded(job: EmbedJob) -> EmbeddedRows:
    """Write the rows of a job that get vectors, wherever this runs."""
    embedder = embedder_of(job.work.embedding)
    replaced: list[pa.Table] = []
    looking = EmbedPass(job, embedder)

    def rows() -> Iterator[pa.Table]:
        for filled in looking.rows():
            replaced.append(filled.select([ID, ROW_ADDRESS]))
            yield filled.drop_columns([ROW_ADDRESS])

    written = write_streams(job.table, rows(), ())
    return EmbeddedRows(written, tuple(replaced), dict(looking.vectors), embedder.used)


class EmbedPass:
    """One look at the rows of a job; ``vectors`` counts the new ones, by property."""

    def __init__(self, job: EmbedJob, embedder: Embedder) -> None:
        self.job = job
        self.embedder = embedder
        self.node = job.work.node
        self.names = job.work.names
        self.vectors: Counter[str] = Counter(dict.fromkeys(self.names, 0))

    def rows(self) -> Iterator[pa.Table]:
        """Whole rows that have a new vector, with their row ids and addresses."""
        schema = embedded_schema(self.job.table)
        schema = schema.append(pa.field(ROW_ADDRESS, pa.uint64()))
        for rows in self._candidates():
            yield self._filled(rows).select(schema.names).cast(schema)

    def _candidates(self) -> Iterator[pa.Table]:
        """Whole rows, a bounded number at a time, of which some may get a vector."""
        table = self.job.table
        wanted = _row_filter(self.job.work, self.node, table)
        with_blobs = has_blobs(table.schema)
        # The bytes of blobs are read for the rows that are written, and for no others.
        columns = None
        if with_blobs:
            sources = [one.source for one in embedded_properties(self.node).values()]
            columns = list(dict.fromkeys([ID, *self.names, *sources, *wanted.columns]))
        for batch in self._batches(columns, wanted):
            rows = wanted.select(pa.Table.from_batches([batch]))
            marks = self._marks(rows).values()
            rows = rows.filter(pa.array(np.any(list(marks), axis=0)))
            if not rows.num_rows:
                continue
            if not with_blobs:
                yield rows
                continue
            for start in range(0, rows.num_rows, MAX_LISTED):
                ids = rows.column(ID).slice(start, MAX_LISTED)
                yield find_rows(table, ID, ids, table.schema.names, with_blobs=True)

    def _batches(self, columns: list[str] | None, wanted: RowFilter) -> Iterator[pa.RecordBatch]:
        table, parts = self.job.table, self.job.parts
        if parts is not None:
            return stream_parts(
                table, [*(columns or table.schema.names), ROW_ID, ROW_ADDRESS], parts
            )
        pushed = wanted.condition if wanted.sql or is_filterable(table) else None
        return table.batches(columns, pushed, with_row_id=True, with_row_address=True)

    def _marks(self, rows: pa.Table) -> dict[str, Marks]:
        """For each property, the rows that get a vector."""
        found: dict[str, Marks] = {}
        for name, embedding in embedded_properties(self.node).items():
            if name in self.names:
                marks = has_text(rows, embedding.source)
                if self.job.work.only_missing:
                    marks = marks & rows.column(name).is_null().to_numpy()
                found[name] = marks
        return found

    def _filled(self, rows: pa.Table) -> pa.Table:
        """The rows that have a new vector."""
        marks = self._marks(rows)
        nothing = np.zeros(rows.num_rows, dtype=bool)
        among = {name: marks.get(name, nothing) for name in embedded_properties(self.node)}
        emptied = rows
        for name in () if self.job.work.only_missing else self.names:
            emptied = _emptied(emptied, name, marks[name])
        filled = fill_vectors(emptied, self.node, self.embedder, among)
        changed = nothing
        for name in self.names:
            new = marks[name] & ~_equal(rows.column(name), filled.column(name))
            self.vectors[name] += int(new.sum())
            changed = changed | new
        return filled.filter(pa.array(changed))


def _emptied(rows: pa.Table, name: str, marks: Marks) -> pa.Table:
    position = rows.schema.get_field_index(name)
    field_ = rows.schema.field(position)
    none = pa.nulls(rows.num_rows, field_.type)
    kept = pc.if_else(pa.array(marks), none, rows.column(name))
    return rows.set_column(position, field_.with_nullable(True), kept)  # noqa: FBT003 - pyarrow


def _equal(before: pa.ChunkedArray, after: pa.ChunkedArray) -> Marks:
    """The rows that have the same vector in both."""
    marks: Marks = pc.and_(before.is_valid(), after.is_valid()).to_numpy().copy()
    if marks.any():
        old, new = (
            column.filter(pa.array(marks))
            .combine_chunks()
            .flatten()
            .to_numpy()
            .reshape(-1, before.type.list_size)
            for column in (before, after)
        )
        marks[marks] = (old == new).all(axis=1)
    return marks


def _find_node(name: str, catalog: Catalog) -> NodeType:
    node, _ = catalog.named(name)
    if node is None:
        hint = name_hint(name, catalog.nodes)
        raise BadRequest(f"there is no node type '{name}'" + (f"; {hint}" if hint else ""))
    return node


def _find_properties(node: NodeType, name: str | None) -> tuple[str, ...]:
    known = embedded_properties(node)
    if name is None and known:
        return tuple(known)
    if name in known:
        return (name,)
    if not known:
        raise BadRequest(
            f"{node.name} has no property with @embed: declare a vector that says which text it "
            "is made from"
        )
    hint = name_hint(name or "", known)
    raise BadRequest(f"{node.name} has no property '{name}' with @embed; {hint}")


def _row_filter(work: EmbedWork, node: NodeType, table: Table) -> RowFilter:
    """The filter of a where clause, read as the one of a statement that nobody runs."""
    if work.where is None:
        return RowFilter()
    text = f"query where() {{\n    delete {node.name} where\n{work.where}\n}}"
    match compile_query(text, work.catalog, path="<where>").require_mutation().statements:
        case (plan.DeleteNodes(node.name, predicates, _),):
            return row_filter(predicates, Values({}, work.now).of, table.columns)
    raise BadRequest("`where` is one condition, such as `year > 1999 and title is not null`")
