"""Bare rows: lines of JSON that are the data of one type, without an envelope.

Owns putting the envelope around them, for readers who know nothing else. Ends of an edge stand
beside its properties there. Never decides whether a line is right: a line that cannot be taken
apart is handed on as it is, to be refused like any other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from omnigraph.lang.structural import ENDPOINTS
from omnigraph.write.change.change_set import EntityType

_ROWS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _opening(type_: EntityType) -> bytes:
    """What stands before the data of an envelope without ends."""
    head = {type_.kind if type_.kind == "edge" else "type": type_.name}
    return json.dumps(head, ensure_ascii=False).encode()[:-1] + b', "data": '


def enveloped(lines: Sequence[bytes], type_: EntityType) -> list[bytes]:
    """The same lines in the envelopes of a type."""
    head = _opening(type_)
    if type_.kind == "node":
        return [head + line + b"}" for line in lines]
    spelled = {
        name: word.encode()
        for column, word in ENDPOINTS.items()
        for name in (word, column.removeprefix("@"), column)
        if name not in type_.properties
    }
    edge = head.removesuffix(b'"data": ')
    return [_edge(line, head, edge, spelled) for line in lines]


def _edge(line: bytes, head: bytes, edge: bytes, spelled: dict[str, bytes]) -> bytes:
    try:
        row = _ROWS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return head + line + b"}"
    names = [spelled.get(name, name) for name, _ in json.loads(line, object_pairs_hook=list)]
    if len(set(names)) != len(names):
        return head + line + b"}"  # a member that is given twice
    ends = [(spelled[name], bytes(row.pop(name))) for name in spelled if name in row]
    data = _without(line, row, len(ends))
    members = b", ".join(b'"' + word + b'": ' + value for word, value in ends)
    return edge + members + (b", " if members else b"") + b'"data": ' + data + b"}"


def _without(line: bytes, row: dict[str, msgspec.Raw], ends: int) -> bytes:
    """The data without its ends; the line itself if there were none."""
    if not ends:
        return line
    return (
        b"{" + b", ".join(msgspec.json.encode(k) + b": " + bytes(v) for k, v in row.items()) + b"}"
    )
