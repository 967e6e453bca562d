"""Endpoints: both ends of every edge are nodes that exist.

Owns which ends are missing, whoever knows the nodes, and the check of a change set: the edges
it writes, and the stored ones that lose an end where nodes are replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema.catalog import ENDPOINTS, EdgeType
from omnigraph.write.change.change_set import TypeChange, without
from omnigraph.write.change.type_batch import type_key
from omnigraph.write.rules.evaluation import Evaluation
from omnigraph.write.rules.key_finder import HeldKeys, KeyFinder, Mask, StoredKeys
from omnigraph.write.rules.violations import Violation


def ends_of(edge: EdgeType) -> tuple[tuple[str, str], ...]:
    """The columns of an edge's ends, each with the type of the nodes there."""
    return (("src", edge.source), ("dst", edge.target))


def missing_ends(ends: pa.Array, nodes: Sequence[KeyFinder]) -> Mask:
    """Which ends are found nowhere among the nodes; who comes first is asked first."""
    missing = np.ones(len(ends), dtype=bool)
    for finder in nodes:
        left = np.flatnonzero(missing)
        if not len(left):
            break
        asked = ends if len(left) == len(ends) else ends.take(pa.array(left))
        missing[left] = ~finder.has(asked)
    return missing


def endpoint_text(column: str, text: str, end: str) -> str:
    """What is said about an end that is no node."""
    return f"{column} '{text}' not found in {end}"


def check_endpoints(edge: EdgeType, trial: Evaluation) -> None:
    """Both ends of every written edge exist, and no stored edge loses one."""
    change = trial.change(type_key(edge))
    for column, end in ends_of(edge):
        if change is not None and change.rows.num_rows:
            _check_written(change, column, end, trial)
        if change is None or not change.replaces_all:
            _check_orphans(edge, column, end, trial)


def _check_written(change: TypeChange, column: str, end: str, trial: Evaluation) -> None:
    ends = change.rows.column(column).combine_chunks()
    rows = np.flatnonzero(missing_ends(ends, list(_nodes(f"node:{end}", trial))))
    trial.violations.add_all(
        len(rows),
        (
            Violation(
                "endpoint",
                endpoint_text(column, ends[row].as_py(), end),
                type_key=change.type_key,
                property=ENDPOINTS[column],
                entity_id=change.rows.column("id")[row].as_py(),
                place=change.places.place(row, ENDPOINTS[column]),
            )
            for row in rows[: trial.violations.room].tolist()
        ),
    )


def _nodes(node_key: str, trial: Evaluation) -> Iterator[KeyFinder]:
    """Where the nodes of a type are found that exist after the write."""
    nodes = trial.change(node_key)
    if nodes is None:
        yield StoredKeys.of_column(trial, node_key, "id")
        return
    yield HeldKeys(nodes.ids)
    if not nodes.replaces_all:
        yield StoredKeys.of_column(trial, node_key, "id", nodes.deleted.column("id"))


def _check_orphans(edge: EdgeType, column: str, end: str, trial: Evaluation) -> None:
    """A node type that is replaced may drop nodes that edges outside the write still need."""
    nodes = trial.change(f"node:{end}")
    if nodes is None or not nodes.replaces_all:
        return
    stored = trial.scan(f"node:{end}", "id").column("id").combine_chunks()
    dropped = stored.filter(pa.array(missing_ends(stored, [HeldKeys(nodes.ids)])))
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
                property=ENDPOINTS[column],
                entity_id=orphan["id"],
            )
            for orphan in ordered.to_pylist()
        ),
    )
