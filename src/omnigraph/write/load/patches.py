"""Patches: rows of which the input mentions some properties, completed by those that are stored.

Owns what a patch leaves as it is: a row that exists keeps what the input does not mention, and one
that does not begins with its defaults. One implementation for loads in memory and for tasks. Never
publishes, and never asks for rows by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.fill import embedded_properties
from omnigraph.embed.protocol import Embedder
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.structural import ENDPOINTS, ID
from omnigraph.rows.filters import RowFilter
from omnigraph.storage.tables.table import Table
from omnigraph.write.change.change_set import EntityType, TypeBatch, row_columns, type_key
from omnigraph.write.load.columns.typed_rows import default_of
from omnigraph.write.load.sifting import CheckedRows, SiftedBatch, chosen, in_order, sift_values
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import FilteredLookup, KeyLookup, ReadSet
from omnigraph.write.rules.violations import Violation, Violations

FindStored = Callable[[EntityType, pa.Array], pa.Table]
"""The whole stored rows of a type that have one of these ids."""

_ROLES = {"from": "source", "to": "target"}


def stored_in(base: Base, reads: ReadSet) -> FindStored:
    """Those of a base, which the write depends on from then on."""
    return lambda type_, ids: reads.ask(base, type_key(type_), _question(ids))


def stored_in_table(table: Table, ids: pa.Array) -> pa.Table:
    """Those of one version of a table."""
    return _question(ids).ask(table)


def _question(ids: pa.Array) -> FilteredLookup:
    return FilteredLookup(KeyLookup(ID, ids, (ID,)), RowFilter())


def patched(batches: Iterable[TypeBatch], find: FindStored) -> list[TypeBatch]:
    """Batches of patches as the whole rows they lead to; all that is wrong is raised."""
    wrong = Violations()
    whole = []
    for batch in batches:
        one = _completed(batch, find)
        for violation in _without_ends(one):
            wrong.add(violation)
        whole.append(one)
    wrong.raise_if_any()
    return whole


def sift_patched(sifted: CheckedRows, find: FindStored, embedder: Embedder) -> CheckedRows:
    """The same, without the rows that are wrong by themselves, and with their vectors."""
    batches: list[SiftedBatch] = []
    violations = list(sifted.violations)
    for one in sifted.batches:
        batch = _completed(one.batch, find)
        found = _without_ends(batch)
        wrong = {_row_of(violation): violation for violation in reversed(found)}
        violations += wrong.values()
        kept = np.delete(np.arange(batch.rows.num_rows, dtype=np.int64), list(wrong))
        if len(kept) or not batch.rows.num_rows:
            batches.append(SiftedBatch(chosen(batch, kept), one.lines[kept]))
    return sift_values(CheckedRows(batches, in_order(violations)), embedder)


def _row_of(violation: Violation) -> int:
    if violation.place is None or violation.place.row is None:
        raise AssertionError("an edge without an end has a place")
    return violation.place.row


def _completed(batch: TypeBatch, find: FindStored) -> TypeBatch:
    """The rows that become of a batch of patches."""
    given = batch.given
    if given is None:
        # Of such a type there is nothing but the key, which every row has.
        return batch
    type_, rows, schema = batch.type, batch.rows, row_columns(batch.type)
    stored = find(type_, rows.column(ID).combine_chunks()).select(schema.names).cast(schema)
    at = pc.index_in(rows.column(ID).combine_chunks(), value_set=stored.column(ID).combine_chunks())
    for name in given.column_names:
        marks = given.column(name).combine_chunks()
        if pc.all(marks, min_count=0).as_py():
            continue
        before = _before(type_, name, stored.column(name), at)
        rows = _put(rows, name, pc.if_else(marks, rows.column(name).combine_chunks(), before))
    for name, embedding in embedded_properties(type_).items():
        # A vector of another text is none of the row's; the new text gives it a new one.
        was = stored.column(embedding.source).combine_chunks().take(at)
        now = rows.column(embedding.source).combine_chunks()
        same = pc.coalesce(pc.equal(now, was), pc.and_(now.is_null(), was.is_null()))
        kept = pc.or_(given.column(name).combine_chunks(), same)
        vectors = rows.column(name).combine_chunks()
        rows = _put(rows, name, pc.if_else(kept, vectors, pa.nulls(len(rows), vectors.type)))
    return replace(batch, rows=rows, given=None)


def _put(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    position = rows.schema.get_field_index(name)
    return rows.set_column(position, rows.schema.field(position), values)


def _before(type_: EntityType, name: str, stored: pa.ChunkedArray, at: pa.Array) -> pa.Array:
    """What each row has before: what is stored, or the default."""
    before = stored.combine_chunks().take(at)
    property_ = type_.properties.get(name)
    default = None if property_ is None else default_of(property_, stored.type)
    return before if default is None else pc.if_else(at.is_null(), default, before)


def _without_ends(batch: TypeBatch) -> list[Violation]:
    """The edges that no stored one gives the ends to."""
    found: list[Violation] = []
    if not isinstance(batch.type, EdgeType):
        return found
    for column, word in ENDPOINTS.items():
        ends = batch.rows.column(column)
        for row in pc.indices_nonzero(ends.is_null()).to_pylist() if ends.null_count else ():
            id_ = batch.rows.column(ID)[row].as_py()
            said = f"'{word}' is missing: there is no {batch.type.name} '{id_}' to patch;"
            text = f"{said} give the id of the {_ROLES[word]} node to add it"
            place = batch.places.place(row, word)
            key = type_key(batch.type)
            found.append(Violation("required", text, key, word, entity_id=id_, place=place))
    return found
