"""Cardinality: no node has more or fewer edges of a type than its bounds allow.

Owns which sources have a wrong number of edges, whoever counts them, and the check of a change
set. Only sources that a write gives or takes an edge are counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.write.change.change_set import TypeChange
from omnigraph.write.change.type_batch import type_key
from omnigraph.write.rules.evaluation import Evaluation
from omnigraph.write.rules.key_finder import HeldKeys, KeyFinder, StoredKeys
from omnigraph.write.rules.violations import Violation


def miscounted(edge: EdgeType, sources: pa.Array, edges: Sequence[KeyFinder]) -> pa.Table:
    """The sources whose edges break the bounds of a type: ``src``, and how many ``edges``."""
    counts = sum(finder.count(sources) for finder in edges)
    counted = pa.table({"src": sources, "edges": counts})
    wrong = pc.less(counted.column("edges"), edge.min_out)
    if edge.max_out is not None:
        wrong = pc.or_(wrong, pc.greater(counted.column("edges"), edge.max_out))
    return counted.filter(wrong)


def cardinality_text(edge: EdgeType, source: str, count: int) -> str:
    """What is said about a source with a wrong number of edges."""
    bound = f"min {edge.min_out}" if count < edge.min_out else f"max {edge.max_out}"
    return f"@card violation on edge {edge.name}: source '{source}' has {count} edges ({bound})"


def check_cardinality(edge: EdgeType, trial: Evaluation) -> None:
    """Every source that the write gives or takes an edge has a number of them that is allowed."""
    change = trial.change(type_key(edge))
    if change is None or not edge.is_bounded:
        return
    edges: list[KeyFinder] = [HeldKeys(change.rows.column("src").combine_chunks())]
    if not change.replaces_all:
        gone = (change.ids, change.deleted.column("id"))
        edges.append(StoredKeys.of_column(trial, change.type_key, "src", *gone))
    found = miscounted(edge, _affected(change, trial), edges)
    found = found.filter(pc.invert(_going(edge, found.column("src"), trial))).sort_by("src")
    trial.violations.add_all(
        found.num_rows,
        (
            _violation(edge, change, source["src"], source["edges"])
            for source in found.slice(0, trial.violations.room).to_pylist()
        ),
    )


def _violation(edge: EdgeType, change: TypeChange, source: str, count: int) -> Violation:
    row = pc.index(change.rows.column("src"), source).as_py()
    return Violation(
        "cardinality",
        cardinality_text(edge, source, count),
        type_key=type_key(edge),
        property="from",
        entity_id=source,
        place=change.places.place(row, "from") if row >= 0 else None,
    )


def _affected(change: TypeChange, trial: Evaluation) -> pa.Array:
    """The sources that the write gives or takes an edge."""
    parts = [change.rows, change.existing, change.deleted]
    if change.replaces_all:
        parts.append(trial.scan(change.type_key, "src"))
    chunks = [chunk for part in parts for chunk in part.column("src").chunks]
    return pa.chunked_array(chunks, pa.string()).unique()


def _going(edge: EdgeType, sources: pa.ChunkedArray, trial: Evaluation) -> pa.ChunkedArray:
    """Which of the sources are themselves deleted by the write."""
    nodes = trial.change(f"node:{edge.source}")
    if nodes is None:
        return pc.is_null(sources)
    if nodes.replaces_all:
        return pc.invert(pc.is_in(sources, value_set=nodes.ids))
    return pc.is_in(sources, value_set=nodes.deleted.column("id").combine_chunks())
