"""Text ends: lines of edges whose ends are keys, with the ids of the nodes in their place.

Owns the fast way for lines that name ends by keys: every distinct end is looked at once, all of one
spelling together. Refuses without a reason what is unusual or wrong; the exact path finds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.schema.references import OPEN, reference
from omnigraph.lang.structural import DST, SRC
from omnigraph.lang.types import INTEGERS, Scalar
from omnigraph.write.load.columns.keyed_ends import (
    KEY,
    TYPE,
    EndNodes,
    SharedEnd,
    end_id,
    has_calendar_key,
    ids_of_members,
)
from omnigraph.write.load.ndjson.json_text import BadLineError, read_json
from omnigraph.write.load.ndjson.values import ValueTypeError

_ABSENT = msgspec.Raw(b"")
_MEMBERS = (b'"edge"', b'"from"', b'"to"', b'"data"')
_INTEGER = re.compile(rb"-?(?:0|[1-9][0-9]{0,8})")
_PLAIN: dict[Scalar, Any] = {
    Scalar.STRING: str,
    Scalar.BOOL: bool,
    **dict.fromkeys(INTEGERS, int),
}


class _Edge(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    edge: msgspec.Raw
    start: msgspec.Raw = msgspec.field(default=_ABSENT, name="from")
    end: msgspec.Raw = msgspec.field(default=_ABSENT, name="to")
    data: msgspec.Raw = _ABSENT


_EDGES = msgspec.json.Decoder(_Edge)


def are_spelled_out(nodes: EndNodes) -> bool:
    """Whether texts alone do not tell: a date is a key, and no id."""
    return any(isinstance(node, SharedEnd) or has_calendar_key(node) for node in nodes.values())


def with_text_ends(lines: Sequence[bytes], nodes: EndNodes) -> list[bytes] | None:
    """The same edges with ids for ends, the lines themselves if they have them; None if refused."""
    try:
        edges = list(map(_EDGES.decode, lines))
    except (msgspec.DecodeError, RecursionError):
        return None
    # A member that is given twice would be lost.
    if not all(all(line.count(name) <= 1 for name in _MEMBERS) for line in lines):
        return None
    starts = _ids([bytes(edge.start) for edge in edges], nodes.get(SRC))
    ends = _ids([bytes(edge.end) for edge in edges], nodes.get(DST))
    if starts is None or ends is None:
        return None
    if all(raw == edge.start for raw, edge in zip(starts, edges, strict=True)) and all(
        raw == edge.end for raw, edge in zip(ends, edges, strict=True)
    ):
        return list(lines)
    return [
        _line(bytes(edge.edge), start, end, bytes(edge.data))
        for edge, start, end in zip(edges, starts, ends, strict=True)
    ]


def _line(edge: bytes, start: bytes, end: bytes, data: bytes) -> bytes:
    values = zip(_MEMBERS, (edge, start, end, data), strict=True)
    return b"{" + b",".join(name + b":" + value for name, value in values if value) + b"}"


class _Typed(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: str = msgspec.field(name=TYPE)
    key: msgspec.Raw


_TYPED = msgspec.json.Decoder(_Typed)


def _shared(raws: list[bytes], end: SharedEnd) -> list[bytes] | None:
    """The JSON texts of what edges call nodes that may be of several types."""
    groups: dict[str, dict[bytes, bytes]] = {}
    try:
        for raw in set(raws):
            if raw[:1] == b"{" and raw.count(b'"') >= 2 * len((TYPE, KEY)):
                found = _TYPED.decode(raw)
                if found.type not in end.nodes:
                    return None
                groups.setdefault(found.type, {})[raw] = bytes(found.key)
            elif raw and end.has_key:
                groups.setdefault("", {})[raw] = raw
            elif raw:
                return None
    except msgspec.DecodeError:
        return None
    named = {b"": b""}
    for name, keys in groups.items():
        node = end.nodes[name] if name else next(iter(end.nodes.values()))
        ids = _ids(list(keys.values()), node)
        if ids is None:
            return None
        mark = reference(node.type_id if name else OPEN, "").encode()
        named |= {raw: b'"' + mark + id_[1:] for raw, id_ in zip(keys, ids, strict=True)}
    return [named[raw] for raw in raws]


def _ids(raws: list[bytes], node: NodeType | SharedEnd | None) -> list[bytes] | None:
    """The JSON texts of the ids that raw values name."""
    if isinstance(node, SharedEnd):
        return _shared(raws, node)
    distinct = set(raws)
    known: dict[bytes, bytes] = {b"": b""}
    if node is None or not has_calendar_key(node):
        known |= {raw: raw for raw in distinct if raw[:1] == b'"'}
    left = [raw for raw in distinct if raw not in known]
    for look in (_integers, _arrays, _objects):
        if left and node is not None and (found := look(left, node)) is not None:
            known |= zip(left, found, strict=True)
            left = []
    try:
        for raw in left:
            known[raw] = msgspec.json.encode(end_id("", node, read_json(raw)))
    except (ValueTypeError, BadLineError):
        return None
    return [known[raw] for raw in raws]


def _integers(raws: Sequence[bytes], node: NodeType) -> list[bytes] | None:
    """Integers that fit any type but an unsigned one, which has no negative ones, and no `-0`."""
    if len(node.key) != 1 or node.properties[node.key[0]].type.scalar not in INTEGERS:
        return None
    if not all(map(_INTEGER.fullmatch, raws)) or any(raw[:1] == b"-" for raw in raws):
        return None
    return [b'"' + raw + b'"' for raw in raws]


def _arrays(raws: Sequence[bytes], node: NodeType) -> list[bytes] | None:
    kinds = _plain_kinds(node)
    if kinds is None or not all(raw[:1] == b"[" for raw in raws):
        return None
    return _together(raws, node, tuple[kinds], lambda values: values)  # type: ignore[valid-type]


def _objects(raws: Sequence[bytes], node: NodeType) -> list[bytes] | None:
    kinds = _plain_kinds(node)
    if kinds is None or not all(raw[:1] == b"{" for raw in raws):
        return None
    if any(raw.count(b":") != len(kinds) for raw in raws):
        return None  # a member given twice, or a colon in a text
    shape = msgspec.defstruct(
        "Key",
        [(f"m{at}", kind) for at, kind in enumerate(kinds)],
        rename={f"m{at}": name for at, name in enumerate(node.key)},
        forbid_unknown_fields=True,
    )
    return _together(raws, node, shape, lambda values: map(msgspec.structs.astuple, values))


def _plain_kinds(node: NodeType) -> tuple[Any, ...] | None:
    kinds = tuple(_PLAIN.get(node.properties[name].type.scalar) for name in node.key)
    return kinds if kinds and None not in kinds else None


def _together(
    raws: Sequence[bytes],
    node: NodeType,
    shape: Any,
    rows: Callable[[list[Any]], Iterable[tuple[Any, ...]]],
) -> list[bytes] | None:
    try:
        decoded = msgspec.json.decode(b"[" + b",".join(raws) + b"]", type=list[shape])
        ids = ids_of_members(node, list(zip(*rows(decoded), strict=True)))
    except (msgspec.DecodeError, pa.ArrowInvalid, OverflowError):
        return None
    return list(map(msgspec.json.encode, ids.to_pylist()))
