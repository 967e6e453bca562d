"""Bound rows: what expressions look at while a query runs.

Owns where the values of properties, nodes and searches come from. A property is read for the
rows that are asked about, and no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.errors import ParamError
from omnigraph.lang.query import plan
from omnigraph.lang.types import ValueType
from omnigraph.read.access.entities import NO_NODE, Entities, FoundRows
from omnigraph.read.access.entity_sets import EntitySet, parts_of, translated
from omnigraph.read.access.ways import Ways
from omnigraph.read.execute.bindings import POSITION, Bindings, Mask, Positions
from omnigraph.read.execute.context import ReadContext
from omnigraph.rows import evaluation
from omnigraph.storage.budget import beside, look, need, took
from omnigraph.storage.tables.columns import arrow_field

# A text that is searched takes as long as so many rows, and so does a letter that is searched for.
TEXT = 3
LETTER = 10


@dataclass(frozen=True, slots=True)
class BoundRows:
    """The rows of some bindings."""

    bindings: Bindings
    ctx: ReadContext
    groups: Mapping[plan.Aggregate, pa.Array] = field(default_factory=dict)
    """The aggregates of the groups that the rows stand for."""

    @property
    def count(self) -> int:
        """How many there are."""
        return self.bindings.count

    def column(self, found: plan.Property) -> pa.Array:
        """A property of each."""
        bound = self.ctx.variables[found.variable]
        positions = self.bindings.columns[found.variable]
        values = property_of(bound, found.name, found.type, positions)
        return took(values.combine_chunks()) if isinstance(values, pa.ChunkedArray) else values

    def computed(self, value: plan.Computed) -> pa.Array:
        """A value that was computed for each and given a name."""
        return self.bindings.values[value.name]

    def aggregated(self, value: plan.Aggregate) -> pa.Array:
        """The value of each group, where these rows stand for groups."""
        return self.groups[value]

    def nobody(self, node: plan.NodeRef) -> pa.Array:
        """Where an optional node is missing."""
        return pa.array(self.bindings.columns[node.variable] == NO_NODE)

    def searched(self, match: plan.TextMatch) -> pa.Array:
        """Where a full-text search finds the node; null where there is nothing to search for."""
        found = _found(match, self)
        if found is None:
            return pa.nulls(self.count, pa.bool_())
        return pa.array(found)

    def fixed(self, value: plan.Fixed) -> plan.Constant:
        """What a literal, a parameter or the present moment stands for."""
        return self.ctx.value_of(value)

    def take(self, chosen: Positions) -> BoundRows:
        """Some of them."""
        groups = {found: values.take(pa.array(chosen)) for found, values in self.groups.items()}
        return BoundRows(self.bindings.take(chosen), self.ctx, groups)

    def need(self, size: int) -> None:
        """Say that so many bytes are needed for a while."""
        need(size)

    def look(self) -> None:
        """End what nobody waits for."""
        look()


def property_of(
    bound: Entities | EntitySet | FoundRows | Ways,
    name: str,
    type_: ValueType,
    positions: Positions,
) -> pa.Array:
    """A property; of several types, as far as they have it in the type that is asked for."""
    if isinstance(bound, EntitySet):
        return bound.values_as(name, positions, arrow_field(name, type_).type)
    return bound.values(name, positions)


def passing(conditions: Sequence[plan.Predicate], rows: Bindings, ctx: ReadContext) -> Mask:
    """The rows for which every condition is true."""
    if len(conditions) > 1:
        # Rows are dropped after each condition: what none looks at need not be.
        used = frozenset().union(*map(plan.variables_of, conditions))
        columns = {name: found for name, found in rows.columns.items() if name in used}
        values = {name: found for name, found in rows.values.items() if name in used}
        rows = Bindings(columns, rows.count, values)
    return evaluation.passing(conditions, BoundRows(rows, ctx))


def _found(match: plan.TextMatch, rows: BoundRows) -> Mask | None:
    from omnigraph.read.search.candidates import among
    from omnigraph.read.search.words import Words

    ctx, variable = rows.ctx, match.subject.variable
    query = ctx.value_of(match.query)
    edits = 0 if match.edits is None else ctx.value_of(match.edits)
    if not isinstance(query, str) or not isinstance(edits, int):
        return None  # as with every comparison to null
    if edits < 0:
        name = match.edits.name if isinstance(match.edits, plan.ParamRef) else "?"
        raise ParamError(
            f"param '{name}': the number of edits is 0 or more, found {edits}",
            details={"param": name},
        )
    nodes = ctx.nodes(match.node_type)
    need(2 * POSITION * rows.count)
    positions = rows.bindings.columns[variable]
    bound = ctx.variables[variable]
    if not isinstance(bound, FoundRows | Ways):
        positions = translated(positions, bound, nodes)
    mask = np.zeros(rows.count, dtype=bool)
    for part in parts_of(nodes):
        words = Words(part, match.subject.name)
        weight = TEXT * part.count + LETTER * len(query)
        found = beside(weight, partial(words.matching, match.mode, query, edits))
        mask |= among(translated(positions, nodes, part), found)
    return mask
