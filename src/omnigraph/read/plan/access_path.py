"""Access: how the rows of a type that pass some predicates are found.

Owns saying it, before a scan runs and while it does; `steps.select` does it. Reads
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import spell_predicate
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.read.access.entities import Entities
from omnigraph.rows.filters import can_filter, row_filter
from omnigraph.rows.key_predicates import anchor


def access_notes(entities: Entities, where: Sequence[plan.Predicate]) -> dict[str, Any]:
    """The way in, and which predicates storage decides and which are decided in memory."""
    notes: dict[str, Any] = {"entities": entities.count}
    key = entities.type.key if isinstance(entities.type, NodeType) else ()
    # Whether there is an anchor does not depend on the values.
    named = anchor(key, where, _unknown)
    if not entities.count:
        return notes | {"access": "nothing", "pushed": [], "in_memory": []}
    if named is not None:
        others = [predicate for predicate in where if predicate is not named.predicate]
        texts = [spell_predicate(predicate) for predicate in others]
        return notes | {"access": f"lookup by {named.column}", "pushed": [], "in_memory": texts}
    filtered = [predicate for predicate in where if can_filter(predicate)]
    if not filtered:
        access = "every row"
    elif entities.are_at_hand(row_filter(filtered, _unknown).columns):
        access = "whole columns"
    else:
        access = "scan"
    pushed = [
        found for found in filtered if access == "scan" and row_filter([found], _unknown).pushed
    ]
    return notes | {
        "access": access,
        "pushed": [spell_predicate(found) for found in pushed],
        "in_memory": [spell_predicate(found) for found in where if found not in pushed],
    }


def expand_notes(step: plan.Expand, edges: Entities) -> dict[str, Any]:
    """How many edges there are, and what is decided about those that were found."""
    texts = [spell_predicate(predicate) for predicate in (*step.where, *step.edge_where)]
    return {"edges": edges.count, "in_memory": texts}


def _unknown(_: plan.Scalarish) -> plan.Constant:
    """Stands for every value: what is asked here does not depend on them."""
    return None
