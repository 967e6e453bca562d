"""The plan of a merge: every type, the conflicts, and the changes for the writer.

Owns the order: rows of all types first, then the rules of the schema on what came out,
so that everything that is wrong is told at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from omnigraph.errors import MergeConflict
from omnigraph.history.merge.conflicts import Conflicts, MergedRowCounts, Side, rule_conflict
from omnigraph.history.merge.delta import (
    MergeDelta,
    MergeTables,
    footprint_of_one_side,
)
from omnigraph.history.merge.rules import (
    Orphan,
    broken_cardinalities,
    broken_uniques,
    orphans,
)
from omnigraph.history.merge.tables import MergedTable, adopt_source, left_alone, merged_table
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.migration.effects import (
    CardinalityWithin,
    DataCheck,
    UniqueEdges,
    UniqueMembers,
)
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.rows.external_sort import SortLimits
from omnigraph.write.change.change_set import EntityType, without
from omnigraph.write.reshape.checks import violations_among
from omnigraph.write.rules.edges import named_by, stands_at

_BROKEN: Mapping[type, str] = {
    UniqueMembers: "unique_violation",
    UniqueEdges: "unique_violation",
    CardinalityWithin: "cardinality_violation",
}


@dataclass(slots=True)
class MergePlan:
    """What a merge does to every type that it concerns."""

    sides: Mapping[str, MergeTables]
    conflicts: Conflicts
    limits: SortLimits
    is_exact: bool = True
    """Whether every count matters, also that of rows that were written anew as they were."""
    tables: dict[str, MergedTable] = field(default_factory=dict)
    footprints: dict[str, MergeDelta] = field(default_factory=dict)
    is_stricter: bool = False
    """Whether the target has another schema than the base."""
    checks: Mapping[str, Sequence[DataCheck]] = field(default_factory=dict)
    """What rows have to obey that one of the sides did not know, by type key."""
    kept_ends: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Nodes that stay because an edge needs them, by type key."""

    @property
    def is_fast_forward(self) -> bool:
        """Whether the target has changed nothing: then the source's rows obey the rules already."""
        is_untouched = not any(sides.target_changed for sides in self.sides.values())
        return is_untouched and not self.is_stricter

    def build(self) -> None:
        """Merge the rows of every type, and judge what comes out."""
        for key, sides in self.sides.items():
            if sides.target_key is None:
                self.tables[key] = adopt_source(sides, self.limits)
            elif not (sides.source_changed or (sides.silent[1] and sides.target_changed)):
                if sides.reshape is not None and not sides.reshape.is_nothing:
                    self.tables[key] = left_alone(sides, self.limits)
            elif sides.adopts:
                self.tables[key] = adopt_source(sides, self.limits)
            else:
                self.tables[key], self.footprints[key] = merged_table(
                    sides, self.conflicts, self.limits, is_exact=self.is_exact
                )
        if not self.is_fast_forward:
            self._judge()
        self._check_new_rules()

    def counts(self) -> dict[str, MergedRowCounts]:
        """What happens to each type, by type key; reads the rows of those taken over."""
        found = {key: table.counts() for key, table in sorted(self.tables.items())}
        return {key: counts for key, counts in found.items() if counts != MergedRowCounts()}

    # -- rules -----------------------------------------------------------------------

    def _check_new_rules(self) -> None:
        """What one side asks of rows that the other did not know, on the rows that come out."""
        told = {(one.kind, one.type_name, one.entity_id) for one in self.conflicts.standing}
        for key, checks in sorted(self.checks.items()):
            type_ = self.sides[key].type
            for check in checks:
                found = violations_among(check, type_, partial(self._rows_after, key))
                for id_ in found.ids:
                    conflict = rule_conflict(
                        _BROKEN.get(type(check), "value_constraint_violation"),
                        type_,
                        id_,
                        f"{found.count} rows break a rule that the other branch has added",
                        _checked_property(check, type_),
                    )
                    if (conflict.kind, conflict.type_name, id_) not in told:
                        self.conflicts.standing.append(conflict)

    def _rows_after(self, key: str, names: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of the rows that a type has after the merge."""
        table, columns = self.tables.get(key), list(dict.fromkeys([ID, *names]))
        start = self.sides[key].target if table is None else table.start
        gone = pa.array([], pa.string())
        if table is not None and table.gone:
            gone = pa.concat_tables(table.gone).column(ID).combine_chunks()
        for batch in start.batches(columns):
            yield without(pa.Table.from_batches([batch]), gone)
        if table is not None:
            for spool in (table.updated, table.inserted):
                for rows in spool.tables():
                    yield rows.select(columns)

    def _judge(self) -> None:
        for key in self._related():
            self._footprint(key)
        self.conflicts.standing += self._settle_orphans()
        revived = self._revived()
        for key, sides in sorted(self.sides.items()):
            table = self.tables.get(key)
            # What one side has as a whole obeys the rules.
            is_mixed = table is not None and (not table.takes_over or bool(table.settled))
            if is_mixed:
                self.conflicts.standing += broken_uniques(self._footprint(key), sides.target)
            if isinstance(sides.type, EdgeType) and sides.type.is_bounded:
                back = self._at_sources(sides.type, revived)
                if is_mixed or (back and sides.is_changed):
                    self.conflicts.standing += broken_cardinalities(
                        self._footprint(key),
                        sides.target if table is None else table.start,
                        self.footprints,
                        revived=pa.array(sorted(back), pa.string()),
                        every_source=bool(self.conflicts.settled),
                    )

    def _footprint(self, key: str) -> MergeDelta:
        if key not in self.footprints:
            self.footprints[key] = footprint_of_one_side(self.sides[key])
        return self.footprints[key]

    def _revived(self) -> Mapping[str, set[str]]:
        """The nodes that stay although one side deleted them with their edges, by type key."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for conflict, side in self.conflicts.settled:
            stays = getattr(conflict, side) is not None
            if conflict.kind == "delete_vs_update" and stays:
                found[f"{conflict.entity_kind}:{conflict.type_name}"].add(conflict.entity_id)
        for key, ids in self.kept_ends.items():
            found[key] |= ids
        return found

    def _nodes_at(self, edge: EdgeType, *columns: str) -> list[MergeTables]:
        """The types of nodes that edges have at some of their ends."""
        return [
            nodes
            for nodes in self.sides.values()
            if isinstance(nodes.type, NodeType)
            if any(stands_at(nodes.type, edge, column) for column in columns)
        ]

    def _at_sources(self, edge: EdgeType, ids: Mapping[str, set[str]]) -> set[str]:
        """Some nodes, by type key, as edges call them at their sources."""
        found: set[str] = set()
        for nodes in self._nodes_at(edge, SRC):
            some = pa.array(sorted(ids.get(nodes.type_key, ())), pa.string())
            if isinstance(nodes.type, NodeType):
                found.update(named_by(edge, SRC, nodes.type, some).to_pylist())
        return found

    def _related(self) -> list[str]:
        """The types whose edges and nodes were changed by different sides."""
        found: set[str] = set()
        for key, edges in self.sides.items():
            if not isinstance(edges.type, EdgeType):
                continue
            for nodes in self._nodes_at(edges.type, SRC, DST):
                crossed = (edges.source_changed and nodes.target_changed) or (
                    edges.target_changed and nodes.source_changed
                )
                if crossed:
                    found |= {key, nodes.type_key}
        return sorted(found)

    def _settle_orphans(self) -> list[MergeConflict]:
        """Settle edges without an end as asked; returns the conflicts that stand.

        Settling one may orphan or save another, so that it goes on until nothing changes.
        """
        told: set[tuple[str, str, str]] = set()
        while True:
            standing: list[MergeConflict] = []
            settled: list[tuple[Orphan, Side]] = []
            for orphan in orphans(self.footprints):
                conflict = orphan.conflict()
                side = self.conflicts.resolution.side(
                    conflict.kind, f"edge:{orphan.edge.name}", orphan.edge_id
                )
                if side is None:
                    standing.append(conflict)
                    continue
                settled.append((orphan, side))
                place = (orphan.edge.name, orphan.edge_id, orphan.column)
                if place not in told:
                    told.add(place)
                    self.conflicts.settled.append((conflict, side))
            if not settled:
                return standing
            self._settle(settled)

    def _settle(self, settled: list[tuple[Orphan, Side]]) -> None:
        """An edge is as the side has it that deleted the end, or the end as the other has it."""
        wanted: dict[tuple[str, Side], set[str]] = defaultdict(set)
        for orphan, side in settled:
            if side == orphan.deleted_by:
                wanted[f"edge:{orphan.edge.name}", side].add(orphan.edge_id)
            else:
                wanted[f"node:{orphan.node_type}", side].add(orphan.node_id)
                self.kept_ends[f"node:{orphan.node_type}"].add(orphan.node_id)
        for (key, side), found in wanted.items():
            ids = pa.array(sorted(found), pa.string())
            rows = self._table(key).settle(side, ids)
            self.footprints[key] = self.footprints[key].settled(side, ids, rows)

    def _table(self, key: str) -> MergedTable:
        return self.tables.setdefault(key, left_alone(self.sides[key], self.limits))


def _checked_property(check: DataCheck, type_: EntityType) -> str | None:
    """The property that a check is about, if it is about one."""
    identity = getattr(check, "property_id", None)
    named = (name for name, found in type_.properties.items() if found.property_id == identity)
    return next(named, None)
