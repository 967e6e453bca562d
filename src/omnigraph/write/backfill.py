"""Embedding what is stored: `@embed` vectors that are missing, or to be made anew.

Owns the backfill of one type as one commit, in bounded memory. Nothing is written before
every vector is made. Never touches a row but to set its vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
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
from omnigraph.lang.query.values import Values, statement_time
from omnigraph.lang.schema.catalog import Catalog, NodeType
from omnigraph.lang.structural import ID
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.rows.external_sort import Spool
from omnigraph.rows.filters import RowFilter, row_filter
from omnigraph.rows.stored_columns import StoredColumns
from omnigraph.storage.tables.columns import plain_blobs
from omnigraph.storage.tables.row_lookup import MAX_LISTED, find_rows
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table, is_filterable
from omnigraph.storage.tables.version_diff import fragment_delta
from omnigraph.storage.tables.write_rows import write_streams
from omnigraph.write.change.change_set import type_key
from omnigraph.write.change.protocol import Change, Effects, WriteOutcome, WriteTxn
from omnigraph.write.mutation.operation import note_embedding
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.read_set import RecordedRead, WholeTable, has_blobs
from omnigraph.write.publish.staging import commit_rows
from omnigraph.write.recovery.intents import WriterKind


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """What a backfill did: how many vectors of each property are new.

    ``rows`` counts the nodes. The commit is None when nothing changed.
    """

    branch: str
    type_name: str
    vectors: Mapping[str, int]
    rows: int
    actor: str | None
    commit: Commit | None

    @property
    def embedding(self) -> Mapping[str, str] | None:
        """The provider and the model that made them."""
        return None if self.commit is None else self.commit.metadata["embedding"]


@dataclass(frozen=True, slots=True)
class RowsUnchanged:
    """A claim: the rows that get vectors are those that they were made from."""

    type_key: str
    addresses: npt.NDArray[np.uint64] = field(compare=False)

    def holds(self, before: Base, after: Base) -> bool:
        """Whether nobody has changed or deleted one of them; other rows do not matter."""
        if RecordedRead(self.type_key, WholeTable()).holds(before, after):
            return True
        old, new = before.table(self.type_key), after.table(self.type_key)
        same = old.identity == new.identity
        return same and fragment_delta(old.table, new.table).has_same(self.addresses)


@dataclass(frozen=True, slots=True)
class _Filled:
    """The rows of a type that have new vectors, and where those lie that they replace."""

    type_key: str
    rows: Spool
    replaced: pa.Table


@dataclass(slots=True)
class Backfill(Change[EmbedResult]):
    """One backfill; ``embedding`` is None for what the environment says.

    ``where`` chooses nodes as in a mutation. Without a ``property``, all that have `@embed`
    are meant.
    """

    kind: ClassVar[WriterKind] = "Mutation"

    type_name: str
    property: str | None = None
    where: str | None = None
    only_missing: bool = True
    actor: str | None = None
    embedding: EmbedderConfig | None = None
    notes: dict[str, Any] = field(default_factory=lambda: {"operation": "embed"})
    commit: PendingCommit = field(init=False)
    vectors: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    _filled: _Filled | None = None

    def __post_init__(self) -> None:
        self.commit = PendingCommit.mint(self.actor)

    def result(self, written: WriteOutcome) -> EmbedResult:
        """How many vectors are new."""
        return EmbedResult(
            written.branch, self.type_name, self.vectors, self.rows, self.actor, written.commit
        )

    def prepare(self, txn: WriteTxn) -> bool:
        """Make all vectors of the base that are wanted."""
        catalog = txn.base.catalog
        node = _find_node(self.type_name, catalog)
        names = _find_properties(node, self.property)
        key = type_key(node)
        table = txn.base.table(key).table
        wanted = _row_filter(self.where, node, catalog, table.columns)
        embedder = embedder_of(self.embedding)
        schema = plain_blobs(table.schema).remove_metadata()
        spool = Spool(schema.append(pa.field(ROW_ID, pa.uint64())))
        gone: list[pa.Table] = []
        self.vectors = dict.fromkeys(names, 0)
        for rows in self._candidates(table, node, names, wanted):
            filled = self._fill(rows, node, names, embedder)
            spool.add(filled.select(spool.schema.names).cast(spool.schema))
            gone.append(filled.select([ID, ROW_ADDRESS]))
        self.rows = spool.rows
        note_embedding(self.notes, embedder)
        if not spool.rows:
            return False
        self._filled = _Filled(key, spool, pa.concat_tables(gone))
        txn.reads.claim(RowsUnchanged(key, self._filled.replaced.column(ROW_ADDRESS).to_numpy()))
        return True

    def stage(self, txn: WriteTxn) -> Effects:
        """Write the rows that have new vectors in place of those that had none."""
        filled = self._filled
        if filled is None:
            raise AssertionError("vectors are made before they are written")
        base, files, key = txn.base, txn.files, filled.type_key
        found = base.table(key)
        files.begin([key], base, filled.rows.size)
        written = write_streams(found.table, filled.rows.tables(), ())
        files.name({key: written.files}, base)
        reach("rows_written", key)
        return (commit_rows(found, written, files.stamp(), filled.replaced),)

    def _candidates(
        self, table: Table, node: NodeType, names: tuple[str, ...], wanted: RowFilter
    ) -> Iterator[pa.Table]:
        """Whole rows, a bounded number at a time, of which some may get a vector."""
        with_blobs = has_blobs(table.schema)
        # The bytes of blobs are read for the rows that are written, and for no others.
        columns = None
        if with_blobs:
            sources = [embedding.source for embedding in embedded_properties(node).values()]
            columns = list(dict.fromkeys([ID, *names, *sources, *wanted.columns]))
        pushed = wanted.condition if wanted.sql or is_filterable(table) else None
        for batch in table.batches(columns, pushed, with_row_id=True, with_row_address=True):
            rows = wanted.select(pa.Table.from_batches([batch]))
            marks = self._marks(rows, node, names).values()
            rows = rows.filter(pa.array(np.any(list(marks), axis=0)))
            if not rows.num_rows:
                continue
            if not with_blobs:
                yield rows
                continue
            for start in range(0, rows.num_rows, MAX_LISTED):
                ids = rows.column(ID).slice(start, MAX_LISTED)
                yield find_rows(table, ID, ids, table.schema.names, with_blobs=True)

    def _marks(self, rows: pa.Table, node: NodeType, names: tuple[str, ...]) -> dict[str, Marks]:
        """For each property, the rows that get a vector."""
        found: dict[str, Marks] = {}
        for name, embedding in embedded_properties(node).items():
            if name in names:
                marks = has_text(rows, embedding.source)
                if self.only_missing:
                    marks = marks & rows.column(name).is_null().to_numpy()
                found[name] = marks
        return found

    def _fill(
        self, rows: pa.Table, node: NodeType, names: tuple[str, ...], embedder: Embedder
    ) -> pa.Table:
        """The rows that have a new vector."""
        marks = self._marks(rows, node, names)
        nothing = np.zeros(rows.num_rows, dtype=bool)
        among = {name: marks.get(name, nothing) for name in embedded_properties(node)}
        emptied = rows
        for name in () if self.only_missing else names:
            emptied = _emptied(emptied, name, marks[name])
        filled = fill_vectors(emptied, node, embedder, among)
        changed = nothing
        for name in names:
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


def _row_filter(
    where: str | None, node: NodeType, catalog: Catalog, names: StoredColumns
) -> RowFilter:
    """The filter of a where clause, read as the one of a statement that nobody runs."""
    if where is None:
        return RowFilter()
    text = f"query where() {{\n    delete {node.name} where\n{where}\n}}"
    match compile_query(text, catalog, path="<where>").require_mutation().statements:
        case (plan.DeleteNodes(node.name, predicates, _),):
            return row_filter(predicates, Values({}, statement_time()).of, names)
    raise BadRequest("`where` is one condition, such as `year > 1999 and title is not null`")
