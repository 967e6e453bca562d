"""The plan of a merge: every type, the conflicts, and the changes for the writer.

Owns the order: rows of all types first, then the rules of the schema on what came out,
so that everything that is wrong is told at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.errors import MergeConflict
from omnigraph.history.merge.conflicts import Conflicts, MergedRowCounts, Side
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
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.rows.external_sort import SortLimits


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
    kept_ends: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Nodes that stay because an edge needs them, by type key."""

    @property
    def is_fast_forward(self) -> bool:
        """Whether the target has changed nothing: then the source's rows obey the rules already."""
        return not any(sides.target_changed for sides in self.sides.values())

    def build(self) -> None:
        """Merge the rows of every type, and judge what comes out."""
        for key, sides in self.sides.items():
            if not sides.source_changed:
                continue
            if sides.target_changed:
                self.tables[key], self.footprints[key] = merged_table(
                    sides, self.conflicts, self.limits, is_exact=self.is_exact
                )
            else:
                self.tables[key] = adopt_source(sides, self.limits)
        if not self.is_fast_forward:
            self._judge()

    def counts(self) -> dict[str, MergedRowCounts]:
        """What happens to each type, by type key; reads the rows of those taken over."""
        found = {key: table.counts() for key, table in sorted(self.tables.items())}
        return {key: counts for key, counts in found.items() if counts != MergedRowCounts()}

    # -- rules -----------------------------------------------------------------------

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
                back = revived.get(f"node:{sides.type.source}", set())
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

    def _related(self) -> list[str]:
        """The types whose edges and nodes were changed by different sides."""
        found: set[str] = set()
        for key, edges in self.sides.items():
            if not isinstance(edges.type, EdgeType):
                continue
            for end in {edges.type.source, edges.type.target}:
                nodes = self.sides[f"node:{end}"]
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
