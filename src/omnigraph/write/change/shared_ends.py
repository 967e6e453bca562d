"""Shared ends: edges that name nodes of an interface by a key alone, and which type these are of.

Owns finding the type, among the rows of a write and those that are stored; what is found nowhere,
or in several types, stays open, and is missing when the rules are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.references import OPEN
from omnigraph.lang.structural import ID
from omnigraph.rows.references import are_of, nodes_of, referring
from omnigraph.write.change.change_set import TypeBatch, key_ids, type_key
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import ReadSet
from omnigraph.write.rules.key_finder import HeldKeys, Mask

Holds = Callable[[NodeType, pa.Array], Mask]
"""Which of some ids nodes of a type have."""


def closed(
    references: pa.Array, edge: EdgeType, column: str, catalog: Catalog, holds: Holds
) -> pa.Array:
    """References with the types of those that were open."""
    at = np.flatnonzero(are_of(references, OPEN))
    if not len(at):
        return references
    ids = nodes_of(references.take(pa.array(at))).dictionary_encode()
    wanted = ids.dictionary
    named, times = pa.nulls(len(wanted), pa.string()), np.zeros(len(wanted), dtype=np.int64)
    for node in catalog.nodes_at(edge, column):
        held = holds(node, wanted)
        named = pc.if_else(pa.array(held), referring(wanted, node.type_id), named)
        times += held
    named = pc.if_else(pa.array(times == 1), named, referring(wanted, OPEN))
    mask = np.zeros(len(references), dtype=bool)
    mask[at] = True
    return pc.replace_with_mask(references, pa.array(mask), named.take(ids.indices))


def with_closed_ends(
    batches: Sequence[TypeBatch], base: Base, reads: ReadSet, *, replaces_all: bool
) -> list[TypeBatch]:
    """The batches of a load, the types of their edges' ends told; ``replaces_all`` types it has."""
    given = {batch.type.name: batch for batch in batches if isinstance(batch.type, NodeType)}

    def holds(node: NodeType, ids: pa.Array) -> Mask:
        batch = given.get(node.name)
        if batch is None:
            return stored(node, ids, base, reads)
        held = HeldKeys(batch.rows.column(ID).combine_chunks()).has(ids)
        if replaces_all:
            return held
        return held | stored(node, ids, base, reads)

    return [_closed(batch, base.catalog, holds) for batch in batches]


def stored(node: NodeType, ids: pa.Array, base: Base, reads: ReadSet) -> Mask:
    """Which of some ids stored nodes of a type have."""
    rows = reads.hold(base, type_key(node), ID, ids, ID)
    return HeldKeys(rows.column(ID).combine_chunks()).has(ids)


def _closed(batch: TypeBatch, catalog: Catalog, holds: Holds) -> TypeBatch:
    edge = batch.type
    if not isinstance(edge, EdgeType) or not edge.shared:
        return batch
    ends: Mapping[str, pa.Array] = {
        column: closed(batch.rows.column(column).combine_chunks(), edge, column, catalog, holds)
        for column in edge.shared
    }
    rows = batch.rows
    for column, found in ends.items():
        rows = _put(rows, column, found)
    if edge.key:
        rows = _put(rows, ID, key_ids(edge, rows))
    return replace(batch, rows=rows)


def _put(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    position = rows.schema.get_field_index(name)
    return rows.set_column(position, rows.schema.field(position), values)
