"""Index choice: which indexes a schema asks for, and what is to be done for each of them.

Owns the rule from declarations to purposes, the choice on the rows that are there, how much of
every table its indexes cover, and what is missing and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType, PropertyDef
from omnigraph.lang.structural import DST, ID, SRC, spelling
from omnigraph.maintain.reports import Coverage, IndexState, IndexStatus
from omnigraph.manifest.snapshot import Snapshot, catalog_of
from omnigraph.storage.indexes.build import EXACT_BELOW, VECTOR_KINDS, IndexKind, vector_kind
from omnigraph.storage.indexes.table_indexes import TableIndex, fragment_rows, indexes_of
from omnigraph.storage.tables.fragments import layout_of, stream_parts
from omnigraph.storage.tables.table import Table

Purpose = Literal["lookup", "match", "words", "nearest"]
"""What an index is for.

`lookup` is equality, ranges and prefixes; `match` is that for free text, or `contains` where
texts are long; `words` is full-text search, `nearest` is vector search.
"""

Action = Literal["build", "rebuild", "extend"]

LONG_TEXT = 64
"""From so many bytes on average, a text is one to look into rather than one to compare."""
SAMPLE = 10_000
MAX_SEGMENTS = 8
"""An index in more parts than these is slower than it need be: it is built again."""

_KINDS: dict[Purpose, tuple[IndexKind, ...]] = {
    "lookup": ("BTREE",),
    "match": ("BTREE", "NGRAM"),
    "words": ("INVERTED",),
    "nearest": VECTOR_KINDS,
}

NOT_BUILT = "not built yet"
NOT_ASKED = "the schema asks for it no longer"


@dataclass(frozen=True, slots=True)
class IndexIntent:
    """One wanted index: of a column of the table, which people know as a property."""

    type_key: str
    column: str
    property: str
    purpose: Purpose
    why: str
    may_be_null: bool = False


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """A declaration that asks for no index, and the reason; for several properties, with commas."""

    type_key: str
    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class TypeIntent:
    """What one type asks for."""

    type_key: str
    wanted: tuple[IndexIntent, ...]
    unbuilt: tuple[Unbuilt, ...] = ()


def intents_of(catalog: Catalog) -> Mapping[str, TypeIntent]:
    """What every type asks for, by type key."""
    found = [_of_node(type_) for type_ in catalog.nodes.values()]
    found += [_of_edge(type_) for type_ in catalog.edges.values()]
    return {intent.type_key: intent for intent in sorted(found, key=lambda one: one.type_key)}


def _of_node(type_: NodeType) -> TypeIntent:
    key = f"node:{type_.name}"
    wanted = [_of_structure(type_, ID, "every id is looked up")]
    unbuilt: list[Unbuilt] = []
    declared = dict.fromkeys(type_.indexes, "@index")
    if type_.key:
        declared |= {type_.key: "@key"}
    for members, word in declared.items():
        if len(members) > 1:
            reason = f"{word} of several properties builds nothing"
            unbuilt.append(Unbuilt(key, ", ".join(members), reason))
            continue
        property_ = type_.properties[members[0]]
        intents = list(_of_property(key, property_, word))
        wanted += intents
        if not intents:
            reason = f"{word} on {property_.type} builds nothing: it has no order to search by"
            unbuilt.append(Unbuilt(key, property_.name, reason))
    return TypeIntent(key, tuple(wanted), tuple(unbuilt))


def _of_structure(type_: NodeType | EdgeType, column: str, why: str) -> IndexIntent:
    label = spelling(column, type_.properties)
    return IndexIntent(f"{type_.kind}:{type_.name}", column, label, "lookup", why)


def _of_property(type_key: str, property_: PropertyDef, word: str) -> Iterator[IndexIntent]:
    name, kind = property_.name, property_.type
    if kind.is_vector:
        may_be_null = kind.nullable or property_.embedding is not None
        yield IndexIntent(type_key, name, name, "nearest", f"{word} on a vector", may_be_null)
    elif not kind.is_plain:
        return
    elif kind.is_text and kind.enum_values is None:
        purpose: Purpose = "lookup" if word == "@key" else "match"
        yield IndexIntent(type_key, name, name, purpose, f"{word} on a text")
        yield IndexIntent(type_key, name, name, "words", f"{word} on a text")
    else:
        yield IndexIntent(type_key, name, name, "lookup", f"{word} on {kind.without_null}")


def _of_edge(type_: EdgeType) -> TypeIntent:
    key = f"edge:{type_.name}"
    wanted = [
        _of_structure(type_, ID, "every id is looked up"),
        _of_structure(type_, SRC, "edges are followed"),
        _of_structure(type_, DST, "edges are followed backwards"),
    ]
    unbuilt = [
        Unbuilt(
            key,
            ", ".join(spelling(member, type_.properties) for member in members),
            "@index of several properties builds nothing"
            if len(members) > 1
            else "@index on a property of an edge builds nothing",
        )
        for members in type_.indexes
        if len(members) > 1 or members[0] not in {SRC, DST}
    ]
    if type_.key:
        members = ", ".join(spelling(member, type_.properties) for member in type_.key)
        reason = "@key of an edge builds nothing: its id is made of it"
        unbuilt.append(Unbuilt(key, members, reason))
    return TypeIntent(key, tuple(wanted), tuple(unbuilt))


@dataclass(frozen=True, slots=True)
class IndexDecision:
    """What there is for an intent, and what is to be done, if anything.

    ``reason`` says why nothing can be done, or why it is fine as it is.
    """

    intent: IndexIntent
    kind: IndexKind | None
    index: TableIndex | None = None
    action: Action | None = None
    fragments: frozenset[int] = frozenset()
    """What the new segment is to cover."""
    rows: int = 0
    """How many rows, or vectors, that is."""
    is_pending: bool = False
    reason: str | None = None
    instead_of: tuple[str, ...] = ()
    """Indexes that the new one makes useless."""


def choose(table: Table, intent: IndexIntent) -> IndexDecision:
    """Decide on one intent."""
    known = [one for one in indexes_of(table) if one.column == intent.column]
    fitting = [one for one in known if one.kind in _KINDS[intent.purpose]]
    index = fitting[0] if fitting else None
    if not table.pin.row_count:
        kind = None if index is None else _kind(index)
        return IndexDecision(
            intent, kind, index, is_pending=index is None, reason="the table is empty"
        )
    if index is None or not index.covered:
        return _rebuilt(table, intent, index, "build" if index is None else "rebuild")
    if not index.uncovered:
        return IndexDecision(intent, _kind(index), index)
    covered = fragment_rows(table, index.covered)
    uncovered = fragment_rows(table, index.uncovered)
    if intent.purpose == "words" or index.segments >= MAX_SEGMENTS or uncovered > covered:
        return _rebuilt(table, intent, index, "rebuild")
    if intent.purpose == "nearest":
        uncovered = _vectors(table, intent, index.uncovered)
        if not uncovered:
            reason = "the rows that are not covered have no vector"
            return IndexDecision(intent, _kind(index), index, reason=reason)
    return IndexDecision(intent, _kind(index), index, "extend", index.uncovered, uncovered)


def _rebuilt(
    table: Table, intent: IndexIntent, index: TableIndex | None, action: Action
) -> IndexDecision:
    """An index of all rows."""
    fragments = frozenset(part.number for part in layout_of(table).parts)
    rows = table.pin.row_count
    kind = _KINDS[intent.purpose][0]
    if intent.purpose == "match":
        # What is there stays: a text that grows a little must not turn everything over.
        kind = _kind(index) if index is not None else _text_kind(table, intent)
    if intent.purpose == "nearest":
        rows = _vectors(table, intent, fragments) if rows >= EXACT_BELOW else rows
        wanted = vector_kind(rows, table.schema.field(intent.column).type.list_size)
        if wanted is None:
            return _exact(table, intent, index, rows)
        kind = wanted
    others = [
        one.name
        for one in indexes_of(table)
        if one.column == intent.column and one.kind in _replaced_by(kind)
    ]
    return IndexDecision(
        intent,
        kind,
        index,
        action,
        fragments,
        rows,
        is_pending=index is None,
        instead_of=tuple(others),
    )


def _exact(table: Table, intent: IndexIntent, index: TableIndex | None, rows: int) -> IndexDecision:
    """Too few vectors for an index; one that is there does no harm."""
    if rows == 0 or (table.pin.row_count < EXACT_BELOW and not _has_vector(table, intent)):
        reason = "no row has a vector"
    else:
        reason = f"{rows:,} rows are compared exactly: an index is built from {EXACT_BELOW:,} on"
    kind = None if index is None else _kind(index)
    return IndexDecision(intent, kind, index, is_pending=index is None, reason=reason)


def _kind(index: TableIndex) -> IndexKind:
    for kinds in _KINDS.values():
        for kind in kinds:
            if kind == index.kind:
                return kind
    raise AssertionError(f"{index.name} is of no kind that is built here")


def _replaced_by(kind: IndexKind) -> tuple[IndexKind, ...]:
    """The kinds that are of no use beside one of this kind.

    Of the indexes that could answer a filter, Lance asks only the first.
    """
    for rivals in (_KINDS["match"], _KINDS["nearest"]):
        if kind in rivals:
            return tuple(rival for rival in rivals if rival != kind)
    return ()


def _text_kind(table: Table, intent: IndexIntent) -> IndexKind:
    """Short texts are compared, long ones are looked into."""
    texts = table.scan([intent.column], limit=SAMPLE).column(0)
    mean = pc.mean(pc.binary_length(texts)).as_py() or 0
    return "NGRAM" if mean >= LONG_TEXT else "BTREE"


def _vectors(table: Table, intent: IndexIntent, fragments: frozenset[int]) -> int:
    """How many rows of some fragments have a vector."""
    if not intent.may_be_null:
        return fragment_rows(table, fragments)
    parts = [part for part in layout_of(table).parts if part.number in fragments]
    batches = stream_parts(table, (intent.column,), parts)
    return sum(len(batch) - batch.column(0).null_count for batch in batches)


def _has_vector(table: Table, intent: IndexIntent) -> bool:
    if not intent.may_be_null:
        return True
    batches = table.batches([intent.column])
    return any(batch.column(0).null_count < len(batch) for batch in batches)


def index_status(shown: Snapshot) -> IndexStatus:
    """The indexes of a snapshot."""
    states: list[IndexState] = []
    for key, intent in intents_of(catalog_of(shown.schema)).items():
        states += index_states(shown.tables[key].pinned, intent)
    return IndexStatus(shown.branch, shown.commit_id, tuple(states))


def index_states(table: Table, intent: TypeIntent) -> Iterator[IndexState]:
    """The indexes of one table."""
    for wanted in intent.wanted:
        yield _state(table, choose(table, wanted))
    yield from _unasked(table, intent)
    for unbuilt in intent.unbuilt:
        rows = table.pin.row_count
        yield IndexState(
            intent.type_key, unbuilt.property, None, "none", 0, rows, reason=unbuilt.reason
        )


def _unasked(table: Table, intent: TypeIntent) -> Iterator[IndexState]:
    """Indexes that stand from another schema; of a column that no property has, by its name."""
    for index in unasked_indexes(table, intent):
        yield IndexState(
            intent.type_key,
            index.column or index.stored,
            index.kind,
            "unasked",
            fragment_rows(table, index.covered),
            table.pin.row_count,
            len(index.uncovered),
            index.segments,
            index.size,
            reason=NOT_ASKED,
        )


def unasked_indexes(table: Table, intent: TypeIntent) -> list[TableIndex]:
    """The indexes of a table that its type does not ask for."""
    asked = {(one.column, kind) for one in intent.wanted for kind in _KINDS[one.purpose]}
    return [index for index in indexes_of(table) if (index.column, index.kind) not in asked]


def _state(table: Table, choice: IndexDecision) -> IndexState:
    intent, index = choice.intent, choice.index
    rows = table.pin.row_count
    if index is None:
        return IndexState(
            intent.type_key,
            intent.property,
            choice.kind,
            "pending",
            0,
            rows,
            why=intent.why,
            reason=choice.reason or NOT_BUILT,
        )
    is_settled = choice.action is None and bool(index.covered)
    state: Coverage = "complete" if not index.uncovered or is_settled else "partial"
    return IndexState(
        intent.type_key,
        intent.property,
        index.kind,
        state,
        fragment_rows(table, index.covered),
        rows,
        len(index.uncovered),
        index.segments,
        index.size,
        intent.why,
        choice.reason,
    )
