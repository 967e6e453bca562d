"""Selections: the question that a mutation's where clause asks of a table.

Owns choosing between looking rows up and searching for them.
"""

from __future__ import annotations

from omnigraph.lang.query import plan
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.rows.filters import RowFilter
from omnigraph.rows.key_predicates import anchor
from omnigraph.write.change.type_batch import EntityType
from omnigraph.write.publish.read_set import FilteredLookup, FilterScan, KeyLookup


def selection(
    type_: EntityType,
    where: tuple[plan.Predicate, ...],
    filter_: RowFilter,
    values: Values,
    wanted: tuple[str, ...] | None = None,
) -> FilteredLookup | FilterScan:
    """The rows of a type that a where clause chooses; ``wanted`` columns of them, or all."""
    key = type_.key if isinstance(type_, NodeType) else ()
    named = anchor(key, where, values.of)
    if named is None:
        return FilterScan(filter_, wanted)
    return FilteredLookup(KeyLookup(named.column, named.texts, (named.column,)), filter_, wanted)
