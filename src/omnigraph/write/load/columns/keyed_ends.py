"""Keyed ends: the ids of nodes that edges name by their keys, in the types that these have.

Owns what may stand for an end besides the id: the value of a key of one property, and for a key of
several an array in the order of the schema or an object; and where nodes may be of several types,
an object with the type and the key. A text is an id, but where the key is a
Date or a DateTime: there, its text is the key. Never looks for the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.references import OPEN, reference
from omnigraph.lang.structural import DST, SRC
from omnigraph.lang.types import Scalar
from omnigraph.rows.references import referring
from omnigraph.write.change.change_set import EntityType, key_ids, row_columns
from omnigraph.write.load.columns import cells
from omnigraph.write.load.columns.frame_columns import convert_column, decoded, texts
from omnigraph.write.load.columns.texts import is_text
from omnigraph.write.load.ndjson.values import ValueTypeError, column_of, convert, describe

TYPE, KEY = "@type", "key"


@dataclass(frozen=True, slots=True)
class SharedEnd:
    """An end where nodes may be of any of some types: those of an interface.

    Where the interface ``has_key`` its nodes need no types: they are found by it.
    """

    interface: str
    nodes: Mapping[str, NodeType]
    has_key: bool

    def find(self, word: str, name: Any) -> NodeType:
        """The type of a name; ValueTypeError if no such nodes may be here."""
        node = self.nodes.get(name) if type(name) is str else None
        if node is None:
            known = ", ".join(self.nodes) or "nothing"
            said = f"'{word}' leads to a {self.interface}, which is {known}; found {describe(name)}"
            raise ValueTypeError(f"{said} {name!r}" if type(name) is str else said)
        return node

    def needs_type(self, word: str, value: Any) -> ValueTypeError:
        """What is said of a value that does not say its type."""
        wanted = f'{{"{TYPE}": …, "{KEY}": …}}'
        kinds = ", ".join(self.nodes)
        return ValueTypeError(
            f"'{word}' may be of several types ({kinds}): write {wanted}; found {describe(value)}"
        )


EndNodes = Mapping[str, NodeType | SharedEnd]
"""The types of the nodes that edges of one type lead from and to, by column."""

_TEMPORAL = (Scalar.DATE, Scalar.DATETIME)


def end_nodes(type_: EntityType, catalog: Catalog, *, needs_types: bool = False) -> EndNodes:
    """Those of an edge type; a node has no ends.

    Where an end ``needs_types``, a key alone is not enough: nobody is going to look for the node.
    """
    if not isinstance(type_, EdgeType):
        return {}
    ends = {column: _end_node(type_, column, catalog) for column in (SRC, DST)}
    return {
        column: replace(end, has_key=False) if needs_types and isinstance(end, SharedEnd) else end
        for column, end in ends.items()
    }


def _end_node(edge: EdgeType, column: str, catalog: Catalog) -> NodeType | SharedEnd:
    if column not in edge.shared:
        return catalog.nodes[edge.end(column)]
    return shared_end(edge, column, catalog)


def shared_end(edge: EdgeType, column: str, catalog: Catalog) -> SharedEnd:
    """The end of an edge that is an interface."""
    interface = catalog.interfaces[edge.end(column)]
    nodes = {node.name: node for node in catalog.nodes_at(edge, column)}
    has_key = bool(interface.key) and all(node.key == interface.key for node in nodes.values())
    return SharedEnd(interface.name, nodes, has_key and bool(nodes))


def has_calendar_key(node: NodeType) -> bool:
    """Whether a text may be the key of a node without being its id."""
    return len(node.key) == 1 and node.properties[node.key[0]].type.scalar in _TEMPORAL


def end_id(word: str, node: NodeType | SharedEnd | None, value: Any) -> str:
    """What an edge calls the node that one JSON value names; ValueTypeError if it names none."""
    if isinstance(node, SharedEnd):
        return _shared_id(word, node, value)
    if type(value) is str and not (node is not None and has_calendar_key(node)):
        return value
    if node is None or not node.key:
        raise ValueTypeError(_not_a_string(word, value))
    try:
        members = _members(node, value)
        return str(_ids(node, {name: [one] for name, one in members.items()})[0].as_py())
    except ValueTypeError as misfit:
        if type(value) is str:
            return value
        if len(node.key) == 1 and node.properties[node.key[0]].type.scalar is Scalar.STRING:
            raise ValueTypeError(_not_a_string(word, value)) from None
        raise ValueTypeError(f"'{word}' must be {wanted(node)}: {misfit.text}") from None


def _shared_id(word: str, end: SharedEnd, value: Any) -> str:
    if type(value) is dict and TYPE in value:
        node = end.find(word, value[TYPE])
        if set(value) != {TYPE, KEY}:
            raise ValueTypeError(f'\'{word}\' has "{TYPE}" and "{KEY}" and nothing else')
        return reference(node.type_id, end_id(word, node, value[KEY]))
    if not end.has_key:
        raise end.needs_type(word, value)
    return reference(OPEN, end_id(word, next(iter(end.nodes.values())), value))


def _not_a_string(word: str, value: Any) -> str:
    return f"'{word}' must be a string, the id of a node; found {describe(value)}"


def wanted(node: NodeType) -> str:
    """What may stand for an end, for a person."""
    kinds = [f"{name}: {node.properties[name].type.without_null}" for name in node.key]
    if len(kinds) == 1:
        return f"the id of a {node.name} or its key ({kinds[0]})"
    names = ", ".join(f'"{name}": …' for name in node.key)
    return (
        f"the id of a {node.name} or its key ({', '.join(kinds)}), as an array in this order"
        f" or as {{{names}}}"
    )


def _members(node: NodeType, value: Any) -> dict[str, Any]:
    """The values of the key in their stored form."""
    if type(value) is dict:
        if set(value) != set(node.key):
            given = ", ".join(map(repr, value)) or "nothing"
            raise ValueTypeError(f"the object has {given}")
        values = [value[name] for name in node.key]
    elif type(value) is list:
        values = value
    else:
        values = [value]
    if len(values) != len(node.key):
        raise ValueTypeError(f"found {describe(value)} of {len(values)}")
    found = {}
    for name, one in zip(node.key, values, strict=True):
        if one is None:
            raise ValueTypeError(f"{node.name}.{name}: found null")
        try:
            found[name] = convert(node.properties[name].type, one)
        except ValueTypeError as misfit:
            raise ValueTypeError(f"{node.name}.{name}: {misfit.text}") from None
    return found


def _ids(node: NodeType, values: Mapping[str, list[Any]]) -> pa.Array:
    stored = row_columns(node)
    return key_ids(
        node,
        pa.table(
            {
                name: column_of(node.properties[name].type, found, stored.field(name).type)
                for name, found in values.items()
            }
        ),
    )


def ids_of_members(node: NodeType, members: Sequence[Sequence[Any]]) -> pa.Array:
    """The ids of many keys, whose plain values are known to be of the right kind."""
    stored = row_columns(node)
    columns = zip(node.key, members, strict=True)
    return key_ids(
        node, pa.table({name: pa.array(some, stored.field(name).type) for name, some in columns})
    )


def ids_of_column(
    name: str, node: NodeType | SharedEnd | None, column: pa.Array, *, pandas: bool
) -> pa.Array:
    """The nodes that a column of a frame names; null where a value is none of its key."""
    column = decoded(column)
    if isinstance(node, SharedEnd):
        return _shared_ids(name, node, column, pandas=pandas)
    is_calendar = node is not None and has_calendar_key(node)
    if node is None or not node.key or pt.is_null(column.type):
        return texts(name, column)
    if is_text(column.type):
        ids = texts(name, column)
        return _calendar_ids(node, ids) if is_calendar else ids
    if pt.is_struct(column.type):
        members = _of_struct(name, node, column)
    elif len(node.key) > 1 and (pt.is_list(column.type) or pt.is_fixed_size_list(column.type)):
        members = _of_lists(name, node, column)
    elif len(node.key) == 1 and node.properties[node.key[0]].type.scalar is not Scalar.STRING:
        members = {node.key[0]: column}
    else:
        return texts(name, column)
    return key_ids(node, pa.table(_stored(node, members, pandas=pandas)))


def _shared_ids(name: str, end: SharedEnd, column: pa.Array, *, pandas: bool) -> pa.Array:
    if not (pt.is_struct(column.type) and {one.name for one in column.type} == {TYPE, KEY}):
        if not end.has_key or pt.is_null(column.type):
            raise end.needs_type(name, f"a column of {column.type}")
        first = next(iter(end.nodes.values()))
        return referring(ids_of_column(name, first, column, pandas=pandas), OPEN)
    types = texts(name, decoded(column.field(TYPE)))
    references = pa.nulls(len(column), pa.string())
    for told in types.unique().drop_null().to_pylist():
        node = end.find(name, told)
        mask = pc.fill_null(pc.equal(types, told), fill_value=False)
        keys = column.field(KEY).filter(mask)
        found = referring(ids_of_column(name, node, keys, pandas=pandas), node.type_id)
        references = pc.replace_with_mask(references, mask, found)
    return references


def _stored(node: NodeType, members: Mapping[str, pa.Array], *, pandas: bool) -> dict[str, Any]:
    schema = row_columns(node)
    found = {}
    for name, column in members.items():
        try:
            values = convert_column(node.properties[name].type, column, pandas=pandas)
        except ValueTypeError as misfit:
            raise ValueTypeError(f"{node.name}.{name}: {misfit.text}") from None
        found[name] = values.cast(schema.field(name).type)
    return found


def _of_struct(name: str, node: NodeType, column: pa.Array) -> dict[str, pa.Array]:
    names = [field.name for field in column.type]
    if set(names) != set(node.key):
        raise ValueTypeError(f"'{name}' must be {wanted(node)}, found {column.type}")
    return dict(zip(names, column.flatten(), strict=True))


def _of_lists(name: str, node: NodeType, column: pa.Array) -> dict[str, pa.Array]:
    sizes = pc.list_value_length(column)
    right = pc.equal(sizes, len(node.key))
    if pc.all(right, min_count=0).as_py() is False:
        raise ValueTypeError(f"'{name}' must be {wanted(node)}: not every array has all of it")
    return {member: pc.list_element(column, at) for at, member in enumerate(node.key)}


def _calendar_ids(node: NodeType, ids: pa.Array) -> pa.Array:
    """Dates and times become ids; what is none of them is one already."""
    name = node.key[0]
    is_date = node.properties[name].type.scalar is Scalar.DATE
    numbers = cells.days_of_texts(ids) if is_date else cells.moments_of_texts(ids)
    stored = numbers.cast(row_columns(node).field(name).type)
    return pc.coalesce(key_ids(node, pa.table({name: stored})), ids)
