"""Envelopes: which type a line belongs to, what else may stand in it, and what is wrong with it.

Owns putting errors back into the order of the lines. Values of properties are the work of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any

import msgspec
import numpy as np

from omnigraph.errors import Rule, quoted
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.schema.catalog import Catalog, NodeType
from omnigraph.lang.structural import ID
from omnigraph.write.change.change_set import EntityType
from omnigraph.write.load.ndjson.json_text import BadLineError, read_json
from omnigraph.write.load.ndjson.lines import LineIndex, find, find_name
from omnigraph.write.load.ndjson.values import describe
from omnigraph.write.rules.violations import SHOWN, SourceLocation, Violation, Violations

CHUNK = 1024
_NODE_MEMBERS = ("type", "data")
_EDGE_MEMBERS = ("edge", "from", "to", "data")

Name = str | msgspec.UnsetType

_LAST = 1 << 62


class _Head(msgspec.Struct, gc=False):
    type: Name = msgspec.UNSET
    edge: Name = msgspec.UNSET


_HEADS = msgspec.json.Decoder(_Head)
_names = attrgetter("type", "edge")


def group_by_type(
    lines: Sequence[bytes], catalog: Catalog, *, is_utf8: bool, problems: LineErrors
) -> list[tuple[EntityType, np.ndarray]]:
    """The types of lines and the ordinals of each; lines that have none are reported."""
    names = _names_of(lines) if is_utf8 else _names_one_by_one(lines)
    distinct = dict.fromkeys(names)
    types = [None if pair is None else _known_type(pair, catalog) for pair in distinct]
    code_of = {pair: code for code, pair in enumerate(distinct)}
    codes = np.fromiter(map(code_of.__getitem__, names), dtype=np.int64, count=len(names))
    ordinals: dict[tuple[str, str], list[np.ndarray]] = {}
    found: dict[tuple[str, str], EntityType] = {}
    for code, type_ in enumerate(types):
        at = np.flatnonzero(codes == code)
        for one, part in [(type_, at)] if type_ else _resolve(at, lines, catalog, problems):
            key = (one.kind, one.name)
            found[key] = one
            ordinals.setdefault(key, []).append(part)
    return [(found[key], np.sort(np.concatenate(parts))) for key, parts in sorted(ordinals.items())]


def _names_of(lines: Sequence[bytes]) -> list[tuple[Name, Name] | None]:
    """`type` and `edge` of each line; None for a line that is not right."""
    try:
        return list(map(_names, map(_HEADS.decode, lines)))
    except (msgspec.DecodeError, RecursionError):
        if len(lines) <= CHUNK:
            return _names_one_by_one(lines)
    starts = range(0, len(lines), CHUNK)
    return [pair for start in starts for pair in _names_of(lines[start : start + CHUNK])]


def _names_one_by_one(lines: Sequence[bytes]) -> list[tuple[Name, Name] | None]:
    return [_name_of(line) for line in lines]


def _name_of(line: bytes) -> tuple[Name, Name] | None:
    try:
        line.decode()
        head = _HEADS.decode(line)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None
    return head.type, head.edge


def _known_type(names: tuple[Name, Name], catalog: Catalog) -> EntityType | None:
    node, edge = names
    if isinstance(node, str):
        return catalog.nodes.get(node) if edge is msgspec.UNSET else None
    return catalog.find_edge(edge) if isinstance(edge, str) else None


def _resolve(
    ordinals: np.ndarray, lines: Sequence[bytes], catalog: Catalog, problems: LineErrors
) -> list[tuple[EntityType, np.ndarray]]:
    """The types of lines that the quick look found none for; the others are reported."""
    found = []
    for ordinal in ordinals.tolist():
        try:
            type_ = type_of_line(lines[ordinal], catalog)
        except BadLineError as bad:
            problems.add(ordinal, "format", bad.text, column=bad.column)
        else:
            found.append((type_, np.array([ordinal])))
    return found


def type_of_line(line: bytes, catalog: Catalog) -> EntityType:
    """The type one line names; BadLineError if it names none."""
    envelope = read_json(line)
    text = line.decode()
    if type(envelope) is not dict:
        raise BadLineError(f"a line is one JSON object, found {describe(envelope)}", find(text, ()))
    heads = [head for head in ("type", "edge") if head in envelope]
    if len(heads) != 1:
        said = "has both" if heads else "has neither"
        column = find_name(text, ("edge",)) if heads else find(text, ())
        raise BadLineError(f'a line has either "type" (a node) or "edge"; this one {said}', column)
    head = heads[0]
    name = envelope[head]
    column = find(text, (head,))
    if type(name) is not str:
        raise BadLineError(f'"{head}" must be a string, found {describe(name)}', column)
    found = catalog.nodes.get(name) if head == "type" else catalog.find_edge(name)
    if found is None:
        raise BadLineError(_unknown_type(head, name, catalog), column)
    return found


def _unknown_type(head: str, name: str, catalog: Catalog) -> str:
    if head == "type":
        said, known = f"unknown node type '{quoted(name)}'", tuple(catalog.nodes)
        if name in catalog.edges:
            return f'{said}; it is an edge type: write "edge": "{name}"'
    else:
        said, known = f"unknown edge type '{quoted(name)}'", tuple(catalog.edges)
        if name in catalog.nodes:
            return f'{said}; it is a node type: write "type": "{name}"'
    hint = name_hint(name, known)
    return f"{said}; {hint}" if hint else said


def check_envelope(
    type_: EntityType, envelope: dict[str, Any], text: str, *, may_lack_ends: bool = False
) -> list[BadLineError]:
    """What is wrong with the outer members of a line whose type is known, but for its ends."""
    is_node = isinstance(type_, NodeType)
    allowed = _NODE_MEMBERS if is_node else _EDGE_MEMBERS
    found = []
    for name in envelope:
        if name not in allowed:
            kind = "a node" if is_node else "an edge"
            listed = ", ".join(f'"{member}"' for member in allowed)
            said = f"unknown member '{quoted(name)}'; the line of {kind} has {listed}"
            if name in ("id", ID, *type_.properties):
                said += '; properties go into "data"'
            found.append(BadLineError(said, find_name(text, (name,))))
    for end in () if is_node else ("from", "to"):
        if end not in envelope:
            if may_lack_ends:
                continue
            role = "source" if end == "from" else "target"
            said = f"'{end}' is missing: give the id of the {role} node"
            found.append(BadLineError(said, find(text, ())))
    if "data" in envelope and type(envelope["data"]) is not dict:
        said = f"'data' must be an object, found {describe(envelope['data'])}"
        hint = "; leave it out if there is none" if envelope["data"] is None else ""
        found.append(BadLineError(said + hint, find(text, ("data",))))
    return found


class LineErrors:
    """The problems of some lines, reported in their order: the first kept, all counted."""

    def __init__(self, where: LineIndex, shown: int = SHOWN) -> None:
        self._where = where
        self._shown = shown
        self.kept: list[tuple[int, int, Violation]] = []
        self.total = 0

    @property
    def full(self) -> bool:
        """Whether the next ones are only counted, so that nothing need be said about them."""
        return len(self.kept) >= self._shown

    def add(
        self,
        ordinal: int,
        rule: Rule,
        text: str,
        *,
        column: int | None = None,
        type_key: str | None = None,
        property_: str | None = None,
        entity_id: str | None = None,
    ) -> None:
        """Count a problem of a line, and keep it if there is room."""
        self.total += 1
        if self.full:
            return
        source, number = self._where.find(ordinal)
        place = SourceLocation(source.name, number, column)
        violation = Violation(rule, text, type_key, property_, entity_id, place)
        # What has no column, being absent, comes after what has one.
        self.kept.append((ordinal, column or _LAST, violation))


def first_of_each(found: Iterable[LineErrors]) -> dict[int, Violation]:
    """The first problem of every line that has one, by the ordinal of the line."""
    kept = sorted((problem for one in found for problem in one.kept), key=itemgetter(0, 1))
    return {ordinal: violation for ordinal, _, violation in reversed(kept)}


def raise_together(found: Iterable[LineErrors]) -> None:
    """One error for the problems of all types, in the order of the lines."""
    every = list(found)
    kept = sorted((problem for one in every for problem in one.kept), key=itemgetter(0, 1))
    violations = Violations()
    total = sum(one.total for one in every)
    violations.add_all(total, (violation for _, _, violation in kept))
    violations.raise_if_any()
