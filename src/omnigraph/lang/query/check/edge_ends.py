"""Checking the ends of edges in mutations: nodes by their ids, their keys, or both with their type.

Owns what may be said of an end (T28, T7, T3). Whether there is such a node is for the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omnigraph.lang.query import plan, terms
from omnigraph.lang.query.check.scope import Checker
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import ENDPOINTS
from omnigraph.lang.types import RecordList, ValueType

ValueOf = Callable[[str, terms.Given, ValueType], plan.Fixed | None]
"""A value as one of a type, with what it is for; None after reporting."""


def end_node(
    checker: Checker, edge: EdgeType, column: str, value: terms.Assigned, value_of: ValueOf
) -> plan.NodeByKey | None:
    """The node that a value names at an end of an edge."""
    nodes = checker.catalog.nodes_at(edge, column)
    if isinstance(value, terms.NodeKey):
        return _named_with_type(checker, edge, column, value, value_of)
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
    if not nodes or _is_text(checker, value) or len(nodes[0].key) != 1:
        named = value_of(ENDPOINTS[column], value, plan.TEXT)
        return None if named is None else plan.NodeByKey(types, (named,), is_id=True)
    member = nodes[0].properties[nodes[0].key[0]]
    found = value_of(ENDPOINTS[column], value, member.type)
    return None if found is None else plan.NodeByKey(types, (found,))


def is_node(checker: Checker, value: terms.Assigned) -> bool:
    """Whether a value can only be a node's key, and is no id."""
    if isinstance(value, terms.NodeKey):
        return True
    known = isinstance(value, terms.Literal | terms.Variable | terms.Access)
    return known and not _is_text(checker, value)


def _has_common_key(key: tuple[str, ...], nodes: Sequence[NodeType]) -> bool:
    return bool(key) and all(node.key == key for node in nodes)


def _is_text(checker: Checker, value: terms.Given) -> bool:
    """Whether a value is a text, which is an id whatever the key is made of."""
    if isinstance(value, terms.Literal):
        return value.kind == "string"
    if isinstance(value, terms.Variable):
        type_ = checker.elements.get(value.name) or checker.params.get(value.name)
        return not isinstance(type_, ValueType) or type_.is_text
    if isinstance(value, terms.Access):
        records = checker.elements.get(value.variable.name)
        field = records.field(value.property.text) if isinstance(records, RecordList) else None
        return field is None or field.is_text
    return False


def _named_with_type(
    checker: Checker, edge: EdgeType, column: str, value: terms.NodeKey, value_of: ValueOf
) -> plan.NodeByKey | None:
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
    if not others and (_is_text(checker, first) or not node.key):
        named = value_of(what, first, plan.TEXT)
        return None if named is None else plan.NodeByKey((node.name,), (named,), is_id=True)
    if len(value.members) != len(node.key):
        checker.error(
            value.span,
            f"the key of {node.name} has {len(node.key)} members: {', '.join(node.key)}",
            "T28",
        )
        return None
    members = [
        value_of(f"{what}.{name}", member, node.properties[name].type)
        for name, member in zip(node.key, value.members, strict=True)
    ]
    known = tuple(member for member in members if member is not None)
    return plan.NodeByKey((node.name,), known) if len(known) == len(members) else None
