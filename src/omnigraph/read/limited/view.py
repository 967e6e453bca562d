"""Limited views: a snapshot as an actor sees it who may not see all of it.

Owns the narrowed schema, and which rows of every table are shown: those that pass the conditions
of their type, and of the edges those whose two ends are shown. Whatever reads the view reads
nothing else. Never decides who is limited.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from omnigraph.lang.query.row_conditions import condition_groups
from omnigraph.lang.query.values import Values, statement_time
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_sets import TypeSet
from omnigraph.lang.structural import DST, SRC
from omnigraph.manifest.entries import SchemaContract
from omnigraph.manifest.limits import ReadLimits
from omnigraph.manifest.narrowed_contract import narrowed_contract
from omnigraph.manifest.snapshot import (
    Snapshot,
    SnapshotTable,
    SnapshotTables,
    catalog_of,
)
from omnigraph.read.access.column_cache import columns
from omnigraph.read.access.entities import Entities
from omnigraph.read.access.entity_sets import EntitySet, parts_of
from omnigraph.read.access.topology_cache import EdgeTables, topologies
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.limited.columns import LimitedTopologies, entities_of
from omnigraph.rows.filters import RowFilter, row_filter
from omnigraph.storage.tables.limited_table import LimitedTable
from omnigraph.storage.tables.row_ids import RowIds
from omnigraph.storage.tables.table import Table


def limited_view(whole: Snapshot, limits: ReadLimits | None) -> Snapshot:
    """What an actor sees of a snapshot; itself for one without limits."""
    if limits is None:
        return whole
    contract = narrowed_contract(whole.schema, limits)
    return Snapshot(
        whole.branch,
        whole.manifest_version,
        whole.commit_id,
        LimitedTables(whole, contract, limits),
        contract,
    )


def is_whole(shown: Snapshot) -> bool:
    """Whether a snapshot shows all there is."""
    return not isinstance(shown.tables, LimitedTables)


def whole_of(shown: Snapshot) -> Snapshot:
    """All that a snapshot shows a part of."""
    return shown.tables.whole if isinstance(shown.tables, LimitedTables) else shown


def limited_context(ctx: ReadContext) -> ReadContext:
    """The context of a run that meets what is shown alone.

    Neither its bounds nor its trace tell how much was read to find that.
    """
    shown = LimitedTopologies(ctx.topologies, ctx.columns)
    ctx.trace.counts_reads = False
    budget = ctx.budget.of_default_bytes
    return replace(ctx, entities_of=entities_of, topologies=shown, budget=budget)


class LimitedTables(SnapshotTables):
    """The tables of a snapshot as they are shown, each found out when it is asked for."""

    def __init__(self, whole: Snapshot, contract: SchemaContract, limits: ReadLimits) -> None:
        self.whole, self._whole, self._limits = whole, whole.tables, limits
        self._catalog = catalog_of(whole.schema)
        self._schema_hash = whole.schema.ir_hash
        shown = catalog_of(contract)
        keys = {f"node:{name}" for name in shown.nodes} | {f"edge:{name}" for name in shown.edges}
        if not isinstance(whole.tables, SnapshotTables):
            raise AssertionError("a snapshot that was made by hand has no limits")
        live = whole.tables._live  # noqa: SLF001 - of the same kind
        self._live = {key: found for key, found in live.items() if key in keys}
        self._made: dict[str, SnapshotTable] = {}

    def __getitem__(self, type_key: str) -> SnapshotTable:
        made = self._made.get(type_key)
        if made is None:
            if type_key not in self._live:
                raise KeyError(type_key)
            found = self._whole[type_key]
            made = replace(found, pinned=self._limited(type_key, found.pinned))
            made = self._made.setdefault(type_key, made)
        return made

    def _limited(self, type_key: str, table: Table) -> Table:
        kind, _, name = type_key.partition(":")
        hidden = self._limits.hidden(kind, name)
        if kind == "node":
            rows, digest = self._nodes(self._catalog.nodes[name], table)
        else:
            rows, digest = self._edges(self._catalog.edges[name], table)
        if rows is None and not hidden:
            return table
        return LimitedTable.of(table, hidden, rows, digest)

    def _nodes(self, type_: NodeType, table: Table) -> tuple[RowIds | None, str]:
        passing = self._passing(type_)
        if not passing or not table.pin.row_count:
            return None, ""
        digest = self._digest("node", type_.name)
        return self._selected(type_, table, passing, digest), digest

    def _edges(self, type_: EdgeType, table: Table) -> tuple[RowIds | None, str]:
        passing = self._passing(type_)
        ends = [self._nodes_at(type_, column) for column in (SRC, DST)]
        shown_ends = [end for at_end in ends for _, end in at_end]
        if not table.pin.row_count or not (
            passing or any(end.shown_rows is not None for end in shown_ends)
        ):
            return None, ""
        whole = [self._whole_end(type_, SRC, ends[0]), self._whole_end(type_, DST, ends[1])]
        digests = [end.digest if isinstance(end, LimitedTable) else "" for end in shown_ends]
        versions = [end.pin.version for end in shown_ends]
        digest = _hashed(self._digest("edge", type_.name), *digests, *map(str, versions))

        def between() -> RowIds:
            topology = topologies.get(EdgeTables(Entities(type_, table, columns), *whole))
            shown = np.ones(len(topology.rows), dtype=bool)
            for at_end, nodes, positions in zip(
                ends, whole, (topology.sources, topology.targets), strict=True
            ):
                if any(end.shown_rows is not None for _, end in at_end):
                    parts = zip(at_end, parts_of(nodes), strict=True)
                    seen = [_shown_nodes(end, part) for (_, end), part in parts]
                    shown &= np.concatenate(seen)[positions]
            if passing:
                own = self._selected(type_, table, passing, self._digest("edge", type_.name))
                shown &= own.hold(topology.rows)
            return RowIds.of(topology.rows[shown])

        return columns.derived(table, f"@rows:{digest}", between), digest

    def _nodes_at(self, edge: EdgeType, column: str) -> list[tuple[NodeType, Table]]:
        """The tables of the nodes at an end of an edge, as they are shown."""
        nodes = self._catalog.nodes_at(edge, column)
        return [(node, self[f"node:{node.name}"].pinned) for node in nodes]

    def _whole_end(
        self, edge: EdgeType, column: str, nodes: list[tuple[NodeType, Table]]
    ) -> Entities | EntitySet:
        parts = tuple(Entities(node, table.stored, columns) for node, table in nodes)
        type_ = self._catalog.nodes_called(edge.end(column))
        return EntitySet(type_, parts) if isinstance(type_, TypeSet) else parts[0]

    def _selected(
        self, type_: NodeType | EdgeType, table: Table, passing: list[RowFilter], digest: str
    ) -> RowIds:
        """The rows that pass any of some filters."""

        def select() -> RowIds:
            entities = Entities(type_, table, columns)
            found = [
                entities.matching(one, in_memory=entities.are_at_hand(one.columns))
                for one in passing
            ]
            return RowIds.of(entities.row_ids.at(np.unique(np.concatenate(found))))

        return columns.derived(table, f"@rows:{digest}:own", select)

    def _passing(self, type_: NodeType | EdgeType) -> list[RowFilter]:
        """A filter for each group of conditions of which a row has to pass one."""
        limits = self._limits
        conditions = limits.conditions(type_.kind, type_.name)
        names = self._whole[f"{type_.kind}:{type_.name}"].pinned.columns
        values = Values({}, statement_time())
        groups = condition_groups(conditions, type_, self._catalog, limits.actor)
        return [row_filter(group, values.of, names) for group in groups]

    def _digest(self, kind: str, name: str) -> str:
        """What decides which rows are shown: conditions, their actor, and what names mean."""
        said = repr(self._limits.conditions(kind, name))
        return _hashed(self._limits.actor, said, self._schema_hash)


def _shown_nodes(shown: Table, whole: Entities) -> npt.NDArray[np.bool_]:
    """Which nodes of a whole table are shown."""
    if shown.shown_rows is None:
        return np.ones(whole.count, dtype=bool)
    return shown.shown_rows.hold(whole.row_ids.at(np.arange(whole.count)))


def _hashed(*texts: str) -> str:
    return hashlib.sha256(repr(texts).encode()).hexdigest()
