"""The evaluator: one pass over a change set that says everything that is wrong with it.

Owns the order of the rules: values of every type, then uniqueness of node types,
then of each edge type uniqueness, endpoints and cardinality, types by name; last the
ids that a strict write may not meet. Never changes the change set.
"""

from __future__ import annotations

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.write.change.change_set import ChangeSet, TypeChange
from omnigraph.write.rules.edges import check_cardinality, check_endpoints
from omnigraph.write.rules.evaluation import Evaluation
from omnigraph.write.rules.row_rules import check_required, check_values
from omnigraph.write.rules.uniqueness import check_keys, check_uniqueness


def check_changes(trial: Evaluation, *, before_embedding: bool = False) -> None:
    """Raise one error for everything that breaks a rule of the schema.

    ``before_embedding`` leaves out the vectors that are still to be computed.
    """
    ordered = _by_name(trial.changes)
    for change in ordered:
        if change.rows.num_rows:
            check_required(
                change.type,
                change.rows,
                trial.violations,
                change.places,
                before_embedding=before_embedding,
            )
            check_values(change.type, change.rows, trial.violations, change.places)
    check_together(trial)
    trial.violations.raise_if_any()
    for change in ordered:
        check_keys(change)


def check_together(trial: Evaluation) -> None:
    """Collect what is wrong with rows in view of others: uniqueness and references."""
    changes = trial.changes
    for change in _by_name(changes):
        if isinstance(change.type, NodeType):
            check_uniqueness(change, trial)
    for edge in _affected_edges(changes, trial.base.catalog):
        written = changes.get(f"edge:{edge.name}")
        if written is not None:
            check_uniqueness(written, trial)
        check_endpoints(edge, trial)
        check_cardinality(edge, trial)


def _by_name(changes: ChangeSet) -> list[TypeChange]:
    return sorted(changes.types.values(), key=lambda change: change.type.name)


def _affected_edges(changes: ChangeSet, catalog: Catalog) -> list[EdgeType]:
    """The edge types that are written, or whose nodes are replaced as a whole."""
    replaced = {
        change.type.name
        for change in changes.types.values()
        if change.replaces_all and isinstance(change.type, NodeType)
    }
    incident = {edge.name for name in replaced for edge in catalog.incident_edges(name)}
    return [
        edge
        for _, edge in sorted(catalog.edges.items())
        if f"edge:{edge.name}" in changes.types or edge.name in incident
    ]
