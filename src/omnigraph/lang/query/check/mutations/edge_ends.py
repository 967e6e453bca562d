"""Checking the ends of edges in mutations: nodes by ids, keys, both with their type, or by names.

Owns what may be said of an end (T28, T7, T3). Whether there is such a node is for the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.lang.query import plan, terms
from omnigraph.lang.query.check.expressions import resolve_value
from omnigraph.lang.query.check.mutations.assigned import assigned_value, is_bound
from omnigraph.lang.query.check.mutations.names import Names
from omnigraph.lang.query.check.scope import Checker, EdgeBinding, NodeBinding, Scope
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_sets import members_of
from omnigraph.lang.structural import ENDPOINTS
from omnigraph.lang.types import RecordList, ValueType


def matched_end(
    names: Names, edge: EdgeType, column: str, variable: terms.Variable
) -> plan.BoundNode | None:
    """A node at an end that the match or an earlier statement has bound (T28, T30)."""
    checker, found = names.checker, names.matched.find(variable.name)
    if not isinstance(found, NodeBinding):
        what = "an edge" if isinstance(found, EdgeBinding) else "no node"
        checker.error(
            variable.span,
            f"`{ENDPOINTS[column]}` is a node, and ${variable.name} is {what}",
            "T30",
        )
        return None
    if found.type is None:
        return None
    possible = {node.name for node in checker.catalog.nodes_at(edge, column)}
    wrong = [name for name in members_of(found.type) if name not in possible]
    if wrong:
        checker.error(
            variable.span,
            f"`{ENDPOINTS[column]}` of {edge.name} is a {edge.end(column)}, and "
            f"${variable.name} may be a {wrong[0]}",
            "T28",
        )
        return None
    entity = names.entity(found)
    return None if entity is None else plan.BoundNode(variable.name, entity.types)


def end_node(scope: Scope, edge: EdgeType, column: str, value: terms.Expr) -> plan.NodeByKey | None:
    """The node that a value names at an end of an edge."""
    checker = scope.checker
    nodes = checker.catalog.nodes_at(edge, column)
    if isinstance(value, terms.NodeKey):
        return _named_with_type(scope, edge, column, value)
    interface = checker.catalog.interfaces.get(edge.end(column)) if column in edge.shared else None
    if interface is not None and not _has_common_key(interface.key, nodes):
        example = nodes[0].name if nodes else "Type"
        checker.error(
            value.span,
            f"`{ENDPOINTS[column]}` may be of several types: "
            f"{', '.join(node.name for node in nodes) or 'none yet'}",
            "T28",
            hint=f"say which: `{example}(…)`",
        )
        return None
    types = tuple(node.name for node in nodes)
    if not nodes or _is_text(scope, value) or len(nodes[0].key) != 1:
        named = assigned_value(scope, ENDPOINTS[column], value, plan.TEXT)
        return None if named is None else plan.NodeByKey(types, (named,), is_id=True)
    member = nodes[0].properties[nodes[0].key[0]]
    found = assigned_value(scope, ENDPOINTS[column], value, member.type)
    return None if found is None else plan.NodeByKey(types, (found,))


def is_node(checker: Checker, value: terms.Expr) -> bool:
    """Whether a value can only be a node's key, and is no id."""
    if isinstance(value, terms.NodeKey):
        return True
    known = isinstance(value, terms.Literal | terms.Variable | terms.Access)
    return known and not _is_text(Scope(checker), value)


def _has_common_key(key: tuple[str, ...], nodes: Sequence[NodeType]) -> bool:
    return bool(key) and all(node.key == key for node in nodes)


def _is_text(scope: Scope, value: terms.Expr) -> bool:
    """Whether a value is a text, which is an id whatever the key is made of."""
    checker = scope.checker
    if isinstance(value, terms.Literal):
        return value.kind == "string"
    if isinstance(value, terms.Variable | terms.Access) and not is_bound(scope, value):
        if isinstance(value, terms.Variable):
            type_ = checker.elements.get(value.name) or checker.params.get(value.name)
            return not isinstance(type_, ValueType) or type_.is_text
        records = checker.elements.get(value.variable.name)
        field = records.field(value.property.text) if isinstance(records, RecordList) else None
        return field is None or field.is_text
    if isinstance(value, terms.ListLiteral | terms.Now):
        return False
    found = resolve_value(scope, value)
    return found is None or found.type.is_text


def _named_with_type(
    scope: Scope, edge: EdgeType, column: str, value: terms.NodeKey
) -> plan.NodeByKey | None:
    checker = scope.checker
    nodes = {node.name: node for node in checker.catalog.nodes_at(edge, column)}
    node = nodes.get(value.type_name.text)
    if node is None:
        checker.error(
            value.type_name.span,
            f"`{ENDPOINTS[column]}` of {edge.name} is a {edge.end(column)}, "
            f"and {value.type_name.text} is none",
            "T28",
            hint=f"it may be a {' or a '.join(nodes)}" if nodes else None,
        )
        return None
    what = f"{node.name}(…)"
    (first, *others) = value.members
    if not others and (_is_text(scope, first) or not node.key):
        named = assigned_value(scope, what, first, plan.TEXT)
        return None if named is None else plan.NodeByKey((node.name,), (named,), is_id=True)
    if len(value.members) != len(node.key):
        checker.error(
            value.span,
            f"the key of {node.name} has {len(node.key)} members: {', '.join(node.key)}",
            "T28",
        )
        return None
    members = [
        assigned_value(scope, f"{what}.{name}", member, node.properties[name].type)
        for name, member in zip(node.key, value.members, strict=True)
    ]
    known = tuple(member for member in members if member is not None)
    return plan.NodeByKey((node.name,), known) if len(known) == len(members) else None
