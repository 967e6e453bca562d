"""References: edges lead to nodes that exist, and not to too many or too few of them.

Owns endpoints and cardinality over the final image of a write. Only what the write
affects is checked: nodes that no edge change touches are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.write.change.change_set import TypeChange, without
from omnigraph.write.change.type_batch import type_key
from omnigraph.write.rules.evaluation import Evaluation
from omnigraph.write.rules.violations import Violation

_SPELLED: Mapping[str, str] = {"src": "from", "dst": "to"}


def check_endpoints(edge: EdgeType, trial: Evaluation) -> None:
    """Both ends of every written edge exist, and no stored edge loses one."""
    change = trial.change(type_key(edge))
    for column, end in (("src", edge.source), ("dst", edge.target)):
        if change is not None and change.rows.num_rows:
            _check_written(change, column, end, trial)
        if change is None or not change.replaces_all:
            _check_orphans(edge, column, end, trial)


def _check_written(change: TypeChange, column: str, end: str, trial: Evaluation) -> None:
    ends = change.rows.column(column).combine_chunks()
    missing = _missing(ends.unique(), f"node:{end}", trial)
    if not len(missing):
        return
    lost = pc.is_in(ends, value_set=missing)
    rows = pc.indices_nonzero(lost)
    trial.violations.add_all(
        len(rows),
        (
            Violation(
                "endpoint",
                endpoint_text(column, ends[row].as_py(), end),
                type_key=change.type_key,
                property=_SPELLED[column],
                entity_id=change.rows.column("id")[row].as_py(),
                place=change.places.place(row, _SPELLED[column]),
            )
            for row in rows.slice(0, trial.violations.room).to_pylist()
        ),
    )


def endpoint_text(column: str, text: str, end: str) -> str:
    """What is said about an end that is no node."""
    return f"{column} '{text}' not found in {end}"


def cardinality_text(edge: EdgeType, source: str, count: int) -> str:
    """What is said about a source with a wrong number of edges."""
    bound = f"min {edge.min_out}" if count < edge.min_out else f"max {edge.max_out}"
    return f"@card violation on edge {edge.name}: source '{source}' has {count} edges ({bound})"


def _missing(ids: pa.Array, node_key: str, trial: Evaluation) -> pa.Array:
    """Those of some node ids that will not exist after the write."""
    nodes = trial.change(node_key)
    if nodes is not None and nodes.rows.num_rows:
        ids = ids.filter(pc.invert(pc.is_in(ids, value_set=nodes.ids)))
    if nodes is not None and nodes.replaces_all:
        return ids
    if not len(ids):
        return ids
    stored = trial.hold(node_key, "id", ids)
    if nodes is not None:
        stored = without(stored, nodes.deleted.column("id"))
    return ids.filter(pc.invert(pc.is_in(ids, value_set=stored.column("id").combine_chunks())))


def _check_orphans(edge: EdgeType, column: str, end: str, trial: Evaluation) -> None:
    """A node type that is replaced may drop nodes that edges outside the write still need."""
    nodes = trial.change(f"node:{end}")
    if nodes is None or not nodes.replaces_all:
        return
    stored = trial.scan(f"node:{end}", "id")
    dropped = without(stored, nodes.ids).column("id").combine_chunks()
    key = type_key(edge)
    trial.reads.depend_on(key)
    if not len(dropped):
        return
    orphans = trial.hold(key, column, dropped, "id", column)
    change = trial.change(key)
    if change is not None:
        orphans = without(without(orphans, change.ids), change.deleted.column("id"))
    ordered = orphans.sort_by("id").slice(0, trial.violations.room)
    trial.violations.add_all(
        orphans.num_rows,
        (
            Violation(
                "endpoint",
                endpoint_text(column, orphan[column], end),
                type_key=key,
                property=_SPELLED[column],
                entity_id=orphan["id"],
            )
            for orphan in ordered.to_pylist()
        ),
    )


def check_cardinality(edge: EdgeType, trial: Evaluation) -> None:
    """Every source that the write gives or takes an edge has a number of them that is allowed."""
    change = trial.change(type_key(edge))
    if change is None or (edge.min_out == 0 and edge.max_out is None):
        return
    counts = _out_degrees(change, trial)
    counts = counts.filter(pc.invert(_going(edge, counts.column("src"), trial)))
    edges = counts.column("edges")
    wrong = pc.less(edges, edge.min_out)
    if edge.max_out is not None:
        wrong = pc.or_(wrong, pc.greater(edges, edge.max_out))
    found = counts.filter(wrong).sort_by("src")
    trial.violations.add_all(
        found.num_rows,
        (
            _miscounted(edge, change, source["src"], source["edges"])
            for source in found.slice(0, trial.violations.room).to_pylist()
        ),
    )


def _miscounted(edge: EdgeType, change: TypeChange, source: str, count: int) -> Violation:
    row = pc.index(change.rows.column("src"), source).as_py()
    return Violation(
        "cardinality",
        cardinality_text(edge, source, count),
        type_key=type_key(edge),
        property="from",
        entity_id=source,
        place=change.places.place(row, "from") if row >= 0 else None,
    )


def _out_degrees(change: TypeChange, trial: Evaluation) -> pa.Table:
    """How many edges every affected source has after the write."""
    written = change.rows.select(["src"])
    parts = [written, change.existing.select(["src"]), change.deleted.select(["src"])]
    if change.replaces_all:
        parts.append(trial.scan(change.type_key, "src"))
    affected = pa.concat_tables(part.cast(written.schema) for part in parts)
    sources = affected.column("src").combine_chunks().unique()
    after = [written]
    if not change.replaces_all and len(sources):
        stored = trial.hold(change.type_key, "src", sources, "id", "src")
        left = without(without(stored, change.ids), change.deleted.column("id"))
        after.append(left.select(["src"]).cast(written.schema))
    counted = pa.concat_tables(after).group_by("src").aggregate([([], "count_all")])
    every = pa.table({"src": sources}).join(counted, "src", join_type="left outer")
    return pa.table({"src": every.column("src"), "edges": every.column("count_all").fill_null(0)})


def _going(edge: EdgeType, sources: pa.ChunkedArray, trial: Evaluation) -> pa.ChunkedArray:
    """Which of the sources are themselves deleted by the write."""
    nodes = trial.change(f"node:{edge.source}")
    if nodes is None:
        return pc.is_null(sources)
    if nodes.replaces_all:
        return pc.invert(pc.is_in(sources, value_set=nodes.ids))
    return pc.is_in(sources, value_set=nodes.deleted.column("id").combine_chunks())
