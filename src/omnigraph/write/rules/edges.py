"""The rules of edges: they lead to nodes that exist, and not to too many or too few of them.

Owns what is wrong with an end and with a number of ends, and what is said of it. Who finds the
keys is up to the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import quoted
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.references import node_of
from omnigraph.lang.structural import DST, ENDPOINTS, ID, SRC, spelling
from omnigraph.rows.references import are_of, nodes_of, referring
from omnigraph.write.change.change_set import TypeChange, type_key, without
from omnigraph.write.rules.evaluation import Evaluation
from omnigraph.write.rules.key_finder import HeldKeys, KeyFinder, KeySet, Mask, StoredKeys
from omnigraph.write.rules.violations import Violation


def ends_of(edge: EdgeType) -> tuple[tuple[str, str], ...]:
    """The columns of an edge's ends, each with the type of the nodes there."""
    return ((SRC, edge.source), (DST, edge.target))


def stands_at(node: NodeType, edge: EdgeType, column: str) -> bool:
    """Whether nodes of a type may be at an end of an edge."""
    end = edge.end(column)
    return end in node.implements if column in edge.shared else node.name == end


def missing_ends(ends: pa.Array, nodes: Sequence[KeySet]) -> Mask:
    """Which ends are found nowhere among the nodes; who comes first is asked first."""
    missing = np.ones(len(ends), dtype=bool)
    for finder in nodes:
        left = np.flatnonzero(missing)
        if not len(left):
            break
        asked = ends if len(left) == len(ends) else ends.take(pa.array(left))
        missing[left] = ~finder.has(asked)
    return missing


def endpoint_text(edge: EdgeType, column: str, text: str, end: str) -> str:
    """What is said about an end that is no node."""
    shown = node_of(text) if column in edge.shared else text
    return f"{spelling(column, edge.properties)} '{quoted(shown)}' not found in {end}"


@dataclass(frozen=True, slots=True)
class ReferredNodes:
    """The nodes of one type, as the ends of edges name them that may be of several types."""

    type_id: int
    nodes: KeySet

    def has(self, keys: pa.Array) -> Mask:
        """Ask about those that are of the type, by their ids."""
        mask = are_of(keys, self.type_id)
        at = np.flatnonzero(mask)
        if len(at):
            mask[at] = self.nodes.has(nodes_of(keys.take(pa.array(at))))
        return mask


def named_by(edge: EdgeType, column: str, node: NodeType, ids: pa.Array) -> pa.Array:
    """What an edge calls nodes of a type at an end."""
    return referring(ids, node.type_id) if column in edge.shared else ids


def check_endpoints(edge: EdgeType, trial: Evaluation) -> None:
    """Both ends of every written edge exist, and no stored edge loses one."""
    change = trial.change(type_key(edge))
    for column, end in ends_of(edge):
        if change is not None and change.rows.num_rows:
            _check_written(edge, change, column, end, trial)
        if change is None or not change.replaces_all:
            _check_orphans(edge, column, trial)


def _check_written(
    edge: EdgeType, change: TypeChange, column: str, end: str, trial: Evaluation
) -> None:
    ends = change.rows.column(column).combine_chunks()
    nodes = list[KeySet]()
    for node in trial.base.catalog.nodes_at(edge, column):
        found = _nodes(f"node:{node.name}", trial)
        shared = column in edge.shared
        nodes += (ReferredNodes(node.type_id, one) if shared else one for one in found)
    rows = np.flatnonzero(missing_ends(ends, nodes))
    trial.violations.add_all(
        len(rows),
        (
            Violation(
                "endpoint",
                endpoint_text(edge, column, ends[row].as_py(), end),
                type_key=change.type_key,
                property=ENDPOINTS[column],
                entity_id=change.rows.column(ID)[row].as_py(),
                place=change.places.place(row, ENDPOINTS[column]),
            )
            for row in rows[: trial.violations.room].tolist()
        ),
    )


def _nodes(node_key: str, trial: Evaluation) -> Iterator[KeyFinder]:
    """Where the nodes of a type are found that exist after the write."""
    nodes = trial.change(node_key)
    if nodes is None:
        yield StoredKeys.of_column(trial, node_key, ID)
        return
    yield HeldKeys(nodes.ids)
    if not nodes.replaces_all:
        yield StoredKeys.of_column(trial, node_key, ID, nodes.deleted.column(ID))


def _check_orphans(edge: EdgeType, column: str, trial: Evaluation) -> None:
    """A node type that is replaced may drop nodes that edges outside the write still need."""
    for node in trial.base.catalog.nodes_at(edge, column):
        nodes = trial.change(f"node:{node.name}")
        if nodes is not None and nodes.replaces_all:
            _check_dropped(edge, column, node, nodes, trial)


def _check_dropped(
    edge: EdgeType, column: str, node: NodeType, nodes: TypeChange, trial: Evaluation
) -> None:
    stored = trial.scan(nodes.type_key, ID).column(ID).combine_chunks()
    dropped = stored.filter(pa.array(missing_ends(stored, [HeldKeys(nodes.ids)])))
    key = type_key(edge)
    trial.reads.depend_on(key)
    if not len(dropped):
        return
    orphans = trial.hold(key, column, named_by(edge, column, node, dropped), ID, column)
    change = trial.change(key)
    if change is not None:
        orphans = without(without(orphans, change.ids), change.deleted.column(ID))
    ordered = orphans.sort_by(ID).slice(0, trial.violations.room)
    trial.violations.add_all(
        orphans.num_rows,
        (
            Violation(
                "endpoint",
                endpoint_text(edge, column, orphan[column], edge.end(column)),
                type_key=key,
                property=ENDPOINTS[column],
                entity_id=orphan[ID],
            )
            for orphan in ordered.to_pylist()
        ),
    )


def miscounted(edge: EdgeType, sources: pa.Array, edges: Sequence[KeyFinder]) -> pa.Table:
    """The sources whose edges break the bounds of a type: ``@src``, and how many ``edges``."""
    counts = sum(finder.count(sources) for finder in edges)
    counted = pa.table({SRC: sources, "edges": counts})
    wrong = pc.less(counted.column("edges"), edge.min_out)
    if edge.max_out is not None:
        wrong = pc.or_(wrong, pc.greater(counted.column("edges"), edge.max_out))
    return counted.filter(wrong)


def cardinality_text(edge: EdgeType, source: str, count: int) -> str:
    """What is said about a source with a wrong number of edges."""
    bound = f"min {edge.min_out}" if count < edge.min_out else f"max {edge.max_out}"
    shown = node_of(source) if SRC in edge.shared else source
    said = f"source '{quoted(shown)}' has {count} edges ({bound})"
    return f"@card violation on edge {edge.name}: {said}"


def check_cardinality(edge: EdgeType, trial: Evaluation) -> None:
    """Every source that the write gives or takes an edge has a number of them that is allowed."""
    change = trial.change(type_key(edge))
    if change is None or not edge.is_bounded:
        return
    edges: list[KeyFinder] = [HeldKeys(change.rows.column(SRC).combine_chunks())]
    if not change.replaces_all:
        gone = (change.ids, change.deleted.column(ID))
        edges.append(StoredKeys.of_column(trial, change.type_key, SRC, *gone))
    found = miscounted(edge, _affected(change, trial), edges)
    found = found.filter(pc.invert(_going(edge, found.column(SRC), trial))).sort_by(SRC)
    trial.violations.add_all(
        found.num_rows,
        (
            _violation(edge, change, source[SRC], source["edges"])
            for source in found.slice(0, trial.violations.room).to_pylist()
        ),
    )


def _violation(edge: EdgeType, change: TypeChange, source: str, count: int) -> Violation:
    row = pc.index(change.rows.column(SRC), source).as_py()
    return Violation(
        "cardinality",
        cardinality_text(edge, source, count),
        type_key=type_key(edge),
        property="from",
        entity_id=node_of(source) if SRC in edge.shared else source,
        place=change.places.place(row, "from") if row >= 0 else None,
    )


def _affected(change: TypeChange, trial: Evaluation) -> pa.Array:
    """The sources that the write gives or takes an edge."""
    parts = [change.rows, change.existing, change.deleted]
    if change.replaces_all:
        parts.append(trial.scan(change.type_key, SRC))
    chunks = [chunk for part in parts for chunk in part.column(SRC).chunks]
    return pa.chunked_array(chunks, pa.string()).unique()


def _going(edge: EdgeType, sources: pa.ChunkedArray, trial: Evaluation) -> pa.ChunkedArray:
    """Which of the sources are themselves deleted by the write."""
    going = pc.is_null(sources)
    for node in trial.base.catalog.nodes_at(edge, SRC):
        nodes = trial.change(f"node:{node.name}")
        if nodes is None:
            continue
        ids = nodes.ids if nodes.replaces_all else nodes.deleted.column(ID).combine_chunks()
        known = pc.is_in(sources, value_set=named_by(edge, SRC, node, ids))
        if nodes.replaces_all:
            of_type = sources.is_valid()
            if SRC in edge.shared:
                of_type = pa.array(are_of(sources.combine_chunks(), node.type_id))
            known = pc.and_(of_type, pc.invert(known))
        going = pc.or_(going, known)
    return going
