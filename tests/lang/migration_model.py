"""Rows in memory, and plans carried out on them.

Says by itself what a schema asks of rows, so that a plan can be held against it: what passes the
checks of a plan must obey the desired schema, and what fails them must not.
"""

from __future__ import annotations

import re
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, assert_never

from omnigraph.lang.literals import parse_date
from omnigraph.lang.schema.ir.ir import (
    CheckConstraint,
    IREdge,
    IRNode,
    PropertyField,
    RangeConstraint,
    SchemaIR,
)
from omnigraph.lang.schema.keys import canonical_scalar, keyed_id
from omnigraph.lang.schema.migration import effects as fx
from omnigraph.lang.schema.migration.facts import KnownFacts
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.types import INTEGER_RANGE, INTEGERS, Scalar, ValueType

Table = IRNode | IREdge


@dataclass
class Row:
    """One row: structural columns and, by property id, the rest."""

    id: str
    ends: tuple[str, str] | None = None
    values: dict[int, Any] = field(default_factory=dict)


Graph = dict[int, list[Row]]
"""The rows of every table, by type id."""


def facts_of(graph: Graph, ir: SchemaIR) -> KnownFacts:
    return KnownFacts(
        {type_id: len(rows) for type_id, rows in graph.items()},
        {
            (table.type_id, p.property_id): all(
                row.values[p.property_id] is None for row in graph[table.type_id]
            )
            for table in ir.tables()
            for p in table.properties
        },
    )


# -- what a schema asks ----------------------------------------------------------------


def broken_rules(graph: Graph, ir: SchemaIR) -> set[str]:
    """Every rule of a schema that some row breaks."""
    found: set[str] = set()
    ids = {node.type_id: {row.id for row in graph[node.type_id]} for node in ir.nodes}
    for table in ir.tables():
        rows = graph[table.type_id]
        if len({row.id for row in rows}) < len(rows):
            found.add(f"{table.name} has an id twice")
        for p in table.properties:
            for row in rows:
                if not _fits(row.values[p.property_id], p.type):
                    found.add(f"{table.name}.{p.name} is not {p.type}")
        found |= set(_broken_constraints(table, rows))
        if isinstance(table, IREdge):
            found |= set(_broken_ends(table, rows, ids))
        key = key_columns(table)
        if key is not None and any(row.id != key_id(row, key) for row in rows):
            found.add(f"{table.name} has an id that is not made of its key")
    return found


def _fits(value: Any, type_: ValueType) -> bool:
    if value is None:
        return type_.nullable
    if type_.is_list or type_.is_vector:
        return isinstance(value, tuple) and type_.dimension in (None, len(value))
    if type_.enum_values is not None:
        return value in type_.enum_values
    if type_.scalar in INTEGERS:
        low, high = INTEGER_RANGE[type_.scalar]
        return type(value) is int and low <= value <= high
    if type_.scalar is Scalar.F32:
        return type(value) is float and value == as_f32(value)
    kinds = {Scalar.F64: float, Scalar.BOOL: bool, Scalar.STRING: str, Scalar.BLOB: bytes}
    kind = kinds.get(type_.scalar)
    return type(value) is kind if kind else type_.scalar is Scalar.DATE and hasattr(value, "year")


def as_f32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _broken_constraints(table: Table, rows: list[Row]) -> Iterable[str]:
    types = {p.property_id: p.type for p in table.properties}
    for constraint in table.constraints:
        if isinstance(constraint, RangeConstraint | CheckConstraint):
            assert isinstance(constraint.field, PropertyField)
            id_ = constraint.field.property_id
            if isinstance(constraint, CheckConstraint):
                holds = _pattern_holds(constraint.pattern)
            else:
                bounds = (constraint.minimum, constraint.maximum)
                holds = _range_holds(*(None if end is None else end.value for end in bounds))
            if not all(holds(row.values[id_]) for row in rows):
                yield f"{table.name}: {constraint.kind} on {constraint.field.name}"
        elif constraint.kind == "unique":
            members: list[fx.Column | fx.End] = [
                fx.Column(f.property_id, types[f.property_id])
                if isinstance(f, PropertyField)
                else ("@src" if f.role == "src" else "@dst")
                for f in constraint.fields
            ]
            if repeated(rows, members):
                yield f"{table.name}: unique on {[f.name for f in constraint.fields]}"


def _range_holds(low: float | None, high: float | None) -> Callable[[Any], bool]:
    return lambda value: (
        value is None or ((low is None or low <= value) and (high is None or value <= high))
    )


def _pattern_holds(pattern: str) -> Callable[[Any], bool]:
    return lambda value: value is None or re.search(pattern, value) is not None


def _broken_ends(edge: IREdge, rows: list[Row], ids: Mapping[int, set[str]]) -> Iterable[str]:
    for row in rows:
        assert row.ends is not None
        if row.ends[0] not in ids[edge.from_type.type_id]:
            yield f"{edge.name} has no source"
        if row.ends[1] not in ids[edge.to_type.type_id]:
            yield f"{edge.name} has no destination"
    if miscounted(rows, edge.cardinality.minimum, edge.cardinality.maximum):
        yield f"{edge.name}: cardinality"


def miscounted(rows: list[Row], minimum: int, maximum: int | None) -> set[str]:
    counts = Counter(row.ends[0] for row in rows if row.ends is not None)
    return {
        source
        for source, count in counts.items()
        if count < minimum or (maximum is not None and count > maximum)
    }


def repeated(rows: list[Row], members: Iterable[fx.Column | fx.End]) -> set[str]:
    """The ids of rows that share all members with another row."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in rows:
        texts = [_member_text(row, member) for member in members]
        if all(text is not None for text in texts):
            groups[tuple(map(str, texts))].append(row.id)
    return {f"{id_}#{n}" for ids in groups.values() if len(ids) > 1 for n, id_ in enumerate(ids)}


def _member_text(row: Row, member: fx.Column | fx.End) -> str | None:
    if isinstance(member, str):
        assert row.ends is not None
        return row.ends[member == "@dst"]
    value = row.values[member.property_id]
    return None if value is None else canonical_scalar(value, member.type.scalar)


def key_columns(table: Table) -> list[fx.Column] | None:
    """The properties of a key by stable id, None if there is no key."""
    for constraint in table.constraints:
        if constraint.kind == "key":
            types = {p.property_id: p.type for p in table.properties}
            ids = (f.property_id for f in constraint.fields if isinstance(f, PropertyField))
            return [fx.Column(id_, types[id_]) for id_ in sorted(ids)]
    return None


def key_id(row: Row, members: Iterable[fx.Column]) -> str:
    parts = [canonical_scalar(row.values[m.property_id], m.type.scalar) for m in members]
    return keyed_id([*(row.ends or ()), *parts])


# -- carrying a plan out ---------------------------------------------------------------


def carried_out(plan: MigrationPlan, graph: Graph) -> Graph:
    """The rows after the effects of a plan; the effects alone say what becomes of them."""
    after = {
        type_id: [Row(row.id, row.ends, dict(row.values)) for row in rows]
        for type_id, rows in graph.items()
    }
    # Ids are made of columns, so these are changed first.
    for effect in sorted(plan.effects, key=lambda effect: isinstance(effect, fx.KeyEdges)):
        rows = after.get(effect.type_id, [])
        match effect:
            case fx.CreateTable():
                after[effect.type_id] = []
            case fx.DropTable():
                del after[effect.type_id]
            case fx.KeyEdges():
                for row in rows:
                    row.id = key_id(row, effect.members)
            case fx.DropColumn():
                for row in rows:
                    del row.values[effect.property_id]
            case fx.AddColumn():
                for row in rows:
                    assert effect.property_id not in row.values
                    row.values[effect.property_id] = stored(effect.fill, effect.type)
            case fx.ReplaceColumn():
                for row in rows:
                    row.values[effect.property_id] = stored(effect.fill, effect.type)
            case fx.WidenColumn():
                for row in rows:
                    value = row.values[effect.property_id]
                    value = effect.fill if value is None else value
                    row.values[effect.property_id] = stored(value, effect.type)
            case fx.FillNulls():
                for row in rows:
                    if row.values[effect.property_id] is None:
                        row.values[effect.property_id] = stored(effect.fill, effect.type)
            case fx.RenameTable() | fx.SetNullable():
                pass
            case _:
                assert_never(effect)
    return after


def stored(value: Any, type_: ValueType) -> Any:
    if value is None:
        return None
    if type_.scalar is Scalar.F32:
        return as_f32(value)
    if type_.scalar is Scalar.F64:
        return float(value)
    return parse_date(value) if type_.scalar is Scalar.DATE else value


def violations(plan: MigrationPlan, before: Graph, after: Graph) -> dict[int, set[str]]:
    """What breaks the checks of a plan, by the place of the step."""
    found: dict[int, set[str]] = defaultdict(set)
    for check in plan.checks:
        found[check.step] |= _violations(check, before, after)
    return {step: ids for step, ids in found.items() if ids}


def _violations(check: fx.DataCheck, before: Graph, after: Graph) -> set[str]:
    rows = after[check.type_id]
    match check:
        case fx.NotNull():
            return {row.id for row in rows if row.values[check.property_id] is None}
        case fx.ColumnIsEmpty():
            old = before[check.type_id]
            return {row.id for row in old if row.values[check.property_id] is not None}
        case fx.InEnum():
            allowed = (None, *check.values)
            return {row.id for row in rows if row.values[check.property_id] not in allowed}
        case fx.InRange():
            holds = _range_holds(check.minimum, check.maximum)
        case fx.MatchesPattern():
            holds = _pattern_holds(check.pattern)
        case fx.UniqueMembers():
            return repeated(rows, check.members)
        case fx.UniqueEdges():
            return repeated(rows, ("@src", "@dst", *check.members))
        case fx.CardinalityWithin():
            return miscounted(rows, check.minimum, check.maximum)
        case _:
            assert_never(check)
    return {row.id for row in rows if not holds(row.values[check.property_id])}


# -- random rows -----------------------------------------------------------------------

_VALUES: dict[Scalar, tuple[Any, ...]] = {
    Scalar.STRING: ("x", "y", "z"),
    Scalar.BLOB: (b"x",),
    Scalar.BOOL: (True, False),
    Scalar.F32: (0.0, 1.0, 2.0, as_f32(0.1)),
    Scalar.F64: (0.0, 1.0, 2.0, 0.1),
    Scalar.DATE: (parse_date("2024-01-01"), parse_date("2024-01-02")),
    Scalar.VECTOR: ((0.0, 1.0),),
}


def drawn_rows(random: Random, ir: SchemaIR) -> Graph:
    """A few rows that obey a schema."""
    graph: Graph = {table.type_id: [] for table in ir.tables()}
    for table in ir.tables():
        rows = graph[table.type_id]
        for number in range(random.choice((0, 4, 8))):
            row = _drawn_row(random, table, graph, number)
            if row is None:
                break
            rows.append(row)
            short = {f"{table.name}: cardinality"} if isinstance(table, IREdge) else set()
            if broken_rules(graph, ir) - short:
                rows.pop()
        while rows and broken_rules(graph, ir):
            rows.pop()
    return graph


def _drawn_row(random: Random, table: Table, graph: Graph, number: int) -> Row | None:
    row = Row(f"{table.name}{number}")
    if isinstance(table, IREdge):
        ends = [graph[end.type_id] for end in (table.from_type, table.to_type)]
        if not all(ends):
            return None
        row.ends = (random.choice(ends[0]).id, random.choice(ends[1]).id)
    row.values = {p.property_id: _drawn_value(random, p.type) for p in table.properties}
    key = key_columns(table)
    if key is not None:
        row.id = key_id(row, key)
    return row


def _drawn_value(random: Random, type_: ValueType) -> Any:
    if type_.nullable and random.random() < 0.5:
        return None
    if type_.is_list:
        return (1, 2)
    return random.choice(type_.enum_values or _VALUES.get(type_.scalar, (0, 1, 2)))
