"""The rules of the schema on a merged result, judged by what the two sides changed.

Both sides obey the rules, so only what one changed together with what the other changed
can break them: an edge of one side whose end the other deleted, two rows that took one
unique value, a source whose edges both changed. Nothing else is read, whatever the size
of the tables; the verdict is that of checking the whole result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import MergeConflict
from omnigraph.history.merge.conflicts import Side, rule_conflict
from omnigraph.history.merge.delta import MergeDelta
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.references import node_of
from omnigraph.lang.structural import ENDPOINTS, ID, SRC
from omnigraph.storage.tables.row_lookup import find_rows
from omnigraph.storage.tables.table import Table
from omnigraph.write.change.change_set import without
from omnigraph.write.rules.edges import (
    cardinality_text,
    endpoint_text,
    ends_of,
    miscounted,
    missing_ends,
    named_by,
    stands_at,
)
from omnigraph.write.rules.key_finder import AT, HOLDER, Counts, HeldKeys, Mask
from omnigraph.write.rules.uniqueness import (
    constraints_of,
    held_by_others,
    repeated,
    stored_tuples,
)
from omnigraph.write.rules.violations import NoSource, Violations

Footprints = Mapping[str, MergeDelta]
_EVERY = 2**62
TARGET: Side = "target"
SOURCE: Side = "source"


@dataclass(frozen=True, slots=True)
class Orphan:
    """An edge that one side has, and the node at one of its ends, which the other deleted."""

    edge: EdgeType
    edge_id: str
    end: str
    """What the edge calls the node."""
    column: str
    node_type: str
    deleted_by: Side

    @property
    def node_id(self) -> str:
        """The id of the node."""
        return node_of(self.end) if self.column in self.edge.shared else self.end

    def conflict(self) -> MergeConflict:
        """What is told about it."""
        holds = {"source": self.node_id, "target": self.node_id, self.deleted_by: None}
        return MergeConflict(
            "orphan_edge",
            "edge",
            self.edge.name,
            self.edge_id,
            f"{endpoint_text(self.edge, self.column, self.end, self.node_type)}: "
            f"the {self.deleted_by} deleted it",
            ENDPOINTS[self.column],
            # What was deleted was there.
            self.node_id,
            holds["source"],
            holds["target"],
        )


def orphans(footprints: Footprints) -> Iterator[Orphan]:
    """The edges without an end, by type and id."""
    for _, found in sorted(footprints.items()):
        edge = found.type
        if not isinstance(edge, EdgeType):
            continue
        for column, node, nodes in _nodes_at_ends(edge, footprints):
            # A row that mixes both sides may lack an end that either of them deleted.
            rows = pa.concat_tables([found.written, found.kept])
            for gone, side in ((nodes.lost, TARGET), (nodes.deleted, SOURCE)):
                left = NodesBut(named_by(edge, column, node, gone))
                for orphan in _lost_ends(rows, column, left):
                    yield Orphan(edge, *orphan, column, node.name, side)


def _nodes_at_ends(
    edge: EdgeType, footprints: Footprints
) -> Iterator[tuple[str, NodeType, MergeDelta]]:
    """The types of nodes at the ends of an edge that a merge changes, column by column."""
    for column, _ in ends_of(edge):
        for _, nodes in sorted(footprints.items()):
            if isinstance(nodes.type, NodeType) and stands_at(nodes.type, edge, column):
                yield column, nodes.type, nodes


@dataclass(frozen=True, slots=True)
class NodesBut:
    """Every node that an edge of either side leads to, but for those that one side deleted.

    Each side has both ends of its own edges, so that no other node can be missing.
    """

    deleted: pa.Array

    def has(self, keys: pa.Array) -> Mask:
        """Whether it was not deleted."""
        return ~HeldKeys(self.deleted).has(keys)

    def find(self, keys: pa.Array) -> pa.Table:
        """A node is found by its id."""
        at = pa.array(self.has(keys).nonzero()[0])
        return pa.table({AT: at, HOLDER: keys.take(at)})

    def count(self, keys: pa.Array) -> Counts:
        """Ids are distinct."""
        return self.has(keys).astype("int64")


def _lost_ends(rows: pa.Table, column: str, nodes: NodesBut) -> Iterator[tuple[str, str]]:
    """The edges that have none of these nodes at an end, by id, each with that end."""
    if not rows.num_rows or not len(nodes.deleted):
        return
    lost = missing_ends(rows.column(column).combine_chunks(), [nodes])
    hit = rows.filter(pa.array(lost)).sort_by(ID)
    yield from zip(hit.column(ID).to_pylist(), hit.column(column).to_pylist(), strict=True)


def broken_uniques(found: MergeDelta, table: Table) -> list[MergeConflict]:
    """Rows of the merged type that share a unique value."""
    violations = Violations(shown=_EVERY)
    together = pa.concat_tables([found.written, found.kept])
    for rule in constraints_of(found.type):
        if rule.is_key:
            continue  # the id says the same, and ids are distinct
        repeated(rule, together, NoSource(), violations)
        # A tuple that mixes both sides may be one that a row neither side touched has.
        if len(rule.members) > 1 and len(found.combined):
            mixed = found.written.filter(
                pc.is_in(found.written.column(ID), value_set=found.combined)
            )
            untouched = stored_tuples(
                rule,
                mixed,
                lambda question: question.ask(table),
                _ids(together),
                found.deleted,
                found.lost,
            )
            if untouched is not None:
                held_by_others(rule, mixed, untouched, NoSource(), violations)
    return [
        rule_conflict(
            "unique_violation",
            found.type,
            violation.entity_id or "",
            violation.text,
            violation.property,
        )
        for violation in violations.kept
    ]


def broken_cardinalities(
    found: MergeDelta,
    table: Table,
    footprints: Footprints,
    *,
    revived: pa.Array,
    every_source: bool,
) -> list[MergeConflict]:
    """Sources whose edges both sides changed, and that now have too many or too few.

    With ``every_source`` one side is enough: where conflicts were resolved, a source may have
    only some of what that side did. ``table`` is the version that the rows are applied to. A
    source whose edges are those the target has is none of the merge's business, unless it is
    ``revived``: one side had deleted it.
    """
    edge = found.type
    if not isinstance(edge, EdgeType) or not edge.is_bounded:
        return []
    sources, ours = found.source_ends.unique(), found.target_ends.unique()
    if every_source:
        sources = pa.concat_arrays([sources, ours]).unique()
    else:
        sources = sources.filter(pc.is_in(sources, value_set=ours))
    for column, node, nodes in _nodes_at_ends(edge, footprints):
        if column != SRC:
            continue
        gone = named_by(edge, SRC, node, pa.concat_arrays([nodes.deleted, nodes.lost]))
        sources = sources.filter(pc.invert(pc.is_in(sources, value_set=gone)))
    if not len(sources):
        return []
    stored = find_rows(table, SRC, sources, (ID, SRC))
    changed = pa.concat_tables([found.written, found.kept])
    left = stored
    for ids in (_ids(changed), found.deleted, found.lost):
        left = without(left, ids)
    added = changed.filter(pc.is_in(changed.column(SRC), value_set=sources))
    edges = pa.concat_tables([left.select([ID, SRC]), added.select([ID, SRC])])
    if len(ours):
        concerned = pa.concat_arrays([_moved(stored, edges), revived])
        sources = sources.filter(pc.is_in(sources, value_set=concerned))
        edges = edges.filter(pc.is_in(edges.column(SRC), value_set=sources))
    wrong = miscounted(edge, sources, [HeldKeys(edges.column(SRC).combine_chunks())])
    return [
        rule_conflict(
            "cardinality_violation",
            edge,
            node_of(source) if SRC in edge.shared else source,
            cardinality_text(edge, source, count),
            "from",
        )
        for source, count in sorted(zip(*wrong.to_pydict().values(), strict=True))
    ]


def _moved(before: pa.Table, after: pa.Table) -> pa.Array:
    """The sources that have other edges than before."""
    both = pa.concat_tables([before.select([ID, SRC]), after.select([ID, SRC])])
    seen = both.group_by([ID, SRC]).aggregate([([], "count_all")])
    single = seen.filter(pc.equal(seen.column("count_all"), 1))
    return single.column(SRC).combine_chunks().unique()


def _ids(rows: pa.Table) -> pa.Array:
    return rows.column(ID).combine_chunks()
