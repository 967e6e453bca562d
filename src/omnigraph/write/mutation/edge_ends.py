"""Edge ends: the nodes that the statements of a mutation name, as edges call them.

Owns making ids of keys, and finding which type a node of an interface is of, among what the
statements before have written and what is stored. Never looks whether a node is there at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValidationError
from omnigraph.lang.query import plan
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.references import OPEN
from omnigraph.lang.structural import ENDPOINTS, ID
from omnigraph.rows.evaluation import constant_of
from omnigraph.rows.references import referring
from omnigraph.write.change.change_set import key_ids, type_key, without
from omnigraph.write.change.shared_ends import closed, stored
from omnigraph.write.mutation.pending import Pending
from omnigraph.write.mutation.values import property_array
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import ReadSet
from omnigraph.write.rules.edges import named_by
from omnigraph.write.rules.key_finder import HeldKeys, Mask


@dataclass(frozen=True, slots=True)
class EdgeEnds:
    """What statements of one mutation can name."""

    base: Base
    reads: ReadSet
    values: Values
    pending: Mapping[str, Pending]

    def of(self, edge: EdgeType, column: str, named: Sequence[plan.NodeByKey]) -> pa.Array:
        """What the edges of statements call the nodes at an end."""
        found = [pa.array([], pa.string())]
        for types, some in groupby(named, lambda node: (node.node_types, node.is_id)):
            found.append(self._together(edge, column, types[0], list(some)))
        ends = pa.concat_arrays(found)
        if ends.null_count:
            raise ValidationError(f"endpoint '{ENDPOINTS[column]}' is null", rule="required")
        return closed(ends, edge, column, self.base.catalog, self._holds)

    def condition(self, edge: EdgeType, end: plan.AtEnd) -> plan.Predicate:
        """That an edge has a node at an end, by what it may call it there."""
        nodes = [self.base.catalog.nodes[name] for name in end.node.node_types]
        ids = self._ids(nodes, [end.node]) if nodes else pa.array([], pa.string())
        known = [named_by(edge, end.column, node, ids) for node in nodes]
        texts = pa.concat_arrays([pa.array([], pa.string()), *known]).drop_null().unique()
        choices = plan.Const(tuple(texts.to_pylist()), plan.TEXTS)
        return plan.InList(plan.Property(plan.ROW, end.column, plan.TEXT), choices)

    def _together(
        self, edge: EdgeType, column: str, types: tuple[str, ...], named: list[plan.NodeByKey]
    ) -> pa.Array:
        nodes = [self.base.catalog.nodes[name] for name in types]
        if not nodes:
            raise ValidationError(f"no type of nodes has {edge.end(column)}", rule="endpoint")
        ids = self._ids(nodes, named)
        if column not in edge.shared:
            return ids
        return referring(ids, nodes[0].type_id if len(nodes) == 1 else OPEN)

    def _ids(self, nodes: Sequence[NodeType], named: Sequence[plan.NodeByKey]) -> pa.Array:
        """The ids of nodes that are named alike."""
        node = nodes[0]
        if named[0].is_id:
            return pa.array([self._value(one.members[0]) for one in named], pa.string())
        members = {
            name: property_array(
                [self._value(one.members[at]) for one in named], node.properties[name]
            )
            for at, name in enumerate(node.key)
        }
        return key_ids(node, pa.table(members))

    def _value(self, member: plan.Expression) -> plan.Constant:
        return constant_of(member, self.values.of)

    def _holds(self, node: NodeType, ids: pa.Array) -> Mask:
        known = stored(node, ids, self.base, self.reads)
        pending = self.pending.get(type_key(node))
        if pending is None:
            return known
        gone = without(pa.table({ID: ids}), pending.touched).column(ID)
        known &= pc.is_in(ids, value_set=gone.combine_chunks()).to_numpy(zero_copy_only=False)
        return known | HeldKeys(pending.rows.column(ID).combine_chunks()).has(ids)
