"""Edges that have a key on one side of a merge and not on the other.

Owns giving the other sides the ids of that key before rows are compared, in versions that
nobody refers to, so that the same edge is the same row everywhere and nothing is deleted and
added; a dry run has copies outside the graph. Edges that the key cannot tell apart are conflicts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from tempfile import mkdtemp

import pyarrow as pa

from omnigraph.errors import MergeConflict
from omnigraph.history.merge.conflicts import Conflicts, rule_conflict
from omnigraph.history.merge.delta import MergeTables
from omnigraph.lang.schema.migration.effects import Column, UniqueEdges
from omnigraph.lang.structural import EDGE_COLUMNS, ID
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table, create_table
from omnigraph.storage.tables.write_rows import apply_rows, write_streams
from omnigraph.write.change.protocol import WriteTxn
from omnigraph.write.publish.base import BaseTable
from omnigraph.write.publish.read_set import has_blobs
from omnigraph.write.reshape.checks import violations_among
from omnigraph.write.reshape.column_effects import ReshapeEffect, TableReshape, stage_reshape
from omnigraph.write.reshape.edge_ids import with_key_ids


def with_keys(
    sides: MergeTables, conflicts: Conflicts, txn: WriteTxn, scratch: str | None
) -> MergeTables:
    """The sides of a merge with the ids of the key that the merged type has.

    With a ``scratch`` directory they are copies in it, so that the graph has nothing of them.
    """
    wanted = dict(sides.keyed)
    if sides.reshape is not None and sides.reshape.keyed is not None and not sides.adopts:
        wanted["target"] = sides.reshape
    if not wanted or sides.adopts:
        return sides
    tables = {"base": sides.base, "source": sides.source, "target": sides.target}
    broken = [*_dropped(sides, wanted, tables)]
    broken = broken or [found for name in wanted for found in _alike(sides, name, tables[name])]
    if broken:
        conflicts.standing += broken
        return replace(sides, source=sides.base)
    if scratch is not None:
        copies = {name: _copied(sides, tables[name], scratch) for name in wanted}
        return replace(
            sides,
            base=copies.get("base", sides.base),
            source=copies.get("source", sides.source),
            target=copies.get("target", sides.target),
        )
    if sides.target_key is not None:
        txn.files.begin([sides.target_key], txn.base)
    effects = {name: _staged(sides, tables[name], reshape, txn) for name, reshape in wanted.items()}
    keyed = {
        name: replace(tables[name], pin=effect.pin, columns=wanted[name].names)
        for name, effect in effects.items()
    }
    return replace(
        sides,
        base=keyed.get("base", sides.base),
        source=keyed.get("source", sides.source),
        target=keyed.get("target", sides.target),
        reshaped=effects.get("target"),
    )


def _staged(
    sides: MergeTables, table: Table, reshape: TableReshape, txn: WriteTxn
) -> ReshapeEffect:
    found = BaseTable(sides.target_key or sides.type_key, sides.table.identity, 0, table)
    effect = stage_reshape(found, reshape, txn.files)
    txn.files.name_files(sides.table, sides.version, effect.all_files)
    return effect


def _copied(sides: MergeTables, table: Table, scratch: str) -> Table:
    """The rows of a side with the ids of the key, in a table of their own."""
    location = Location.parse(mkdtemp(dir=scratch)).join("edges")
    copy = Table(location, create_table(location, table.schema))

    def rows() -> Iterator[pa.Table]:
        for batch in table.batches(None, with_blobs=has_blobs(table.schema)):
            yield with_key_ids(sides.type, pa.Table.from_batches([batch]))

    written = write_streams(copy, (), rows())
    return copy.at(apply_rows(copy, written))


def _dropped(
    sides: MergeTables, wanted: Collection[str], tables: Mapping[str, Table]
) -> Iterator[MergeConflict]:
    """The sides that have dropped what the key is made of: of rows they wrote since it is lost."""
    for side, dropped in zip(("source", "target"), sides.silent, strict=True):
        if side not in wanted or not tables[side].pin.row_count:
            continue
        for name in sides.type.key:
            if name in dropped:
                yield MergeConflict(
                    "value_constraint_violation",
                    "edge",
                    sides.type.name,
                    "",
                    f"the {side} has dropped {sides.type.name}.{name}, which the key of the merged "
                    "type is made of: let the drop win, or add the property there again",
                    name,
                )


def _alike(sides: MergeTables, side: str, table: Table) -> list[MergeConflict]:
    """The edges of a side that have the key of another edge."""
    type_ = sides.type
    members = [name for name in type_.key if name not in EDGE_COLUMNS]
    properties = [type_.properties[name] for name in members]
    columns = tuple(Column(one.property_id, one.type) for one in properties)
    check = UniqueEdges(0, type_.type_id, columns)

    def rows(names: Sequence[str]) -> Iterator[pa.Table]:
        for batch in table.batches(list(dict.fromkeys([ID, *names]))):
            yield pa.Table.from_batches([batch])

    found = violations_among(check, type_, rows)
    text = f"{found.count} edges of the {side} have the key of another edge"
    return [rule_conflict("unique_violation", type_, id_, text) for id_ in found.ids]
