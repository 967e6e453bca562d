"""Fed statements: what a mutation does for each row of its match.

Owns the values that the rows give, that rows which mean one entity say the same of it, and what is
told of what was written. All of it set at a time; the match itself is read by others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import QueryError
from omnigraph.lang.expressions import is_fixed, leaves_of
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.structural import DST, ID, SRC, TYPE
from omnigraph.rows.evaluation import Positions, constant_of, values_of
from omnigraph.rows.filters import RowFilter
from omnigraph.rows.table_rows import TableRows
from omnigraph.storage.budget import name_operator, need
from omnigraph.write.change.change_set import (
    EntityType,
    TypeChange,
    among,
    located_columns,
    row_columns,
    type_key,
)
from omnigraph.write.mutation.given_rows import Assigned
from omnigraph.write.mutation.run import MutationRun, require_values
from omnigraph.write.mutation.values import constants_of, fitting_array, property_array
from omnigraph.write.publish.read_set import FilteredLookup, KeyLookup

Flags = npt.NDArray[np.bool_]


def _named(found: plan.Property) -> str:
    return plan.column_of(found.variable, found.name)


@dataclass(frozen=True, slots=True)
class Written:
    """What a statement has written for each row of the match, under a name."""

    type: EntityType
    ids: pa.Array


@dataclass(slots=True)
class FedStatements:
    """The rows that statements are fed with, and what these have written so far."""

    run: MutationRun
    rows: pa.Table
    written: dict[str, Written] = field(default_factory=dict)

    @classmethod
    def of(cls, run: MutationRun, matched: pa.Table | None) -> FedStatements:
        """Statements fed with a match; without one, with a single row that binds nothing."""
        single = pa.table({plan.MATCHED_ROWS: [True]})
        return cls(run, single if matched is None else matched)

    def execute(self, statement: plan.Statement) -> None:
        """One statement, for all rows."""
        match statement:
            case plan.InsertNode():
                name_operator(f"{statement.verb} {statement.node_type}")
                self._insert(self.run.base.catalog.nodes[statement.node_type], statement, {})
            case plan.InsertEdge():
                name_operator(f"{statement.verb} {statement.edge_type}")
                edge = self.run.base.catalog.edges[statement.edge_type]
                if self.rows.num_rows:
                    ends = {
                        SRC: self.run.ends.of(edge, SRC, self._nodes(statement.source)),
                        DST: self.run.ends.of(edge, DST, self._nodes(statement.target)),
                    }
                    self._insert(edge, statement, ends)
            case plan.UpdateMatched(entity, assignments):
                for type_, rows in self._by_type(entity):
                    name_operator(f"update {type_.name}")
                    self._update(type_, entity.variable, rows, assignments)
            case plan.DeleteMatched(entity):
                for type_, rows in self._by_type(entity):
                    name_operator(f"delete {type_.name}")
                    self._delete(type_, rows.column(plan.column_of(entity.variable, ID)))
            case _:
                raise AssertionError(f"{statement} is fed with nothing")

    # -- values ------------------------------------------------------------------------

    def _seen(self, rows: pa.Table, *expressions: plan.Expression) -> TableRows:
        """Rows with all that expressions look at, also of what was written for them."""
        for expression in expressions:
            for leaf in leaves_of(expression):
                if isinstance(leaf, plan.Property) and leaf.variable in self.written:
                    name = _named(leaf)
                    if name not in rows.column_names:
                        rows = rows.append_column(name, self._of_written(leaf))
        return TableRows(rows, self.run.values.of, _named, need)

    def _of_written(self, leaf: plan.Property) -> pa.Array:
        written = self.written[leaf.variable]
        if leaf.name == ID:
            return written.ids
        pending = self.run.of(written.type).rows
        at = pc.index_in(written.ids, value_set=pending.column(ID).combine_chunks())
        return pending.column(leaf.name).combine_chunks().take(at)

    def _column(self, rows: pa.Table, type_: EntityType, assignment: plan.Assignment) -> pa.Array:
        """What an assignment gives to each of some rows."""
        property_, value = type_.properties[assignment.property], assignment.value
        if is_fixed(value):
            given = {assignment.property: constant_of(value, self.run.values.of)}
            require_values(type_, given)
            one = property_array(tuple(given.values()), property_)
            return one.take(pa.array(np.zeros(rows.num_rows, dtype=np.int64)))
        return fitting_array(values_of(value, self._seen(rows, value)), property_)

    # -- inserting -----------------------------------------------------------------------

    def _insert(
        self,
        type_: EntityType,
        statement: plan.InsertNode | plan.InsertEdge,
        ends: dict[str, pa.Array],
    ) -> None:
        count = self.rows.num_rows
        if not count:
            return
        given = self._given(type_, statement.assignments)
        chosen, place = _distinct(type_, given, ends)
        kept = pa.array(chosen)
        ids = self.run.give(
            type_,
            [(statement.verb, given[row]) for row in chosen.tolist()],
            {column: every.take(kept) for column, every in ends.items()},
        )
        if statement.variable is not None:
            self.written[statement.variable] = Written(type_, ids.take(pa.array(place)))

    def _given(self, type_: EntityType, assignments: Sequence[plan.Assignment]) -> list[Assigned]:
        """The values that a statement gives for each row."""
        count = self.rows.num_rows
        columns: dict[str, list[plan.Constant]] = {}
        for one in assignments:
            if is_fixed(one.value):
                columns[one.property] = [constant_of(one.value, self.run.values.of)] * count
            else:
                seen = self._seen(self.rows, one.value)
                fitting = fitting_array(values_of(one.value, seen), type_.properties[one.property])
                columns[one.property] = constants_of(fitting)
        for name, values in columns.items():
            if any(value is None for value in values):
                require_values(type_, {name: None})
        rows = zip(*columns.values(), strict=True) if columns else ((),) * count
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def _nodes(self, end: plan.End) -> list[plan.NodeByKey]:
        """The node that each row names at an end."""
        if isinstance(end, plan.BoundNode):
            found = plan.Property(end.variable, ID, plan.TEXT)
            ids = constants_of(values_of(found, self._seen(self.rows, found)))
            types = self._types_of(end)
            return [
                plan.NodeByKey(named, (plan.Const(id_, plan.TEXT),), is_id=True)
                for named, id_ in zip(types, ids, strict=True)
            ]
        members = [
            constants_of(values_of(member, self._seen(self.rows, member))) for member in end.members
        ]
        kinds = [member.type for member in end.members]
        return [
            plan.NodeByKey(
                end.node_types,
                tuple(plan.Const(value, kind) for value, kind in zip(row, kinds, strict=True)),
                end.is_id,
            )
            for row in zip(*members, strict=True)
        ]

    def _types_of(self, end: plan.BoundNode) -> Sequence[tuple[str, ...]]:
        if len(end.node_types) == 1 or end.variable in self.written:
            return [end.node_types] * self.rows.num_rows
        names = self.rows.column(plan.column_of(end.variable, TYPE)).to_pylist()
        return [(name,) if name is not None else end.node_types[:1] for name in names]

    # -- what the match has bound --------------------------------------------------------

    def _by_type(self, entity: plan.BoundEntity) -> list[tuple[EntityType, pa.Table]]:
        """The rows that bind an entity, by its type."""
        catalog = self.run.base.catalog
        rows = self.rows.filter(self.rows.column(plan.column_of(entity.variable, ID)).is_valid())
        types: list[EntityType] = [
            catalog.nodes[name] if entity.kind == "node" else catalog.edges[name]
            for name in entity.types
        ]
        if len(types) == 1:
            return [(types[0], rows)]
        named = rows.column(plan.column_of(entity.variable, TYPE))
        return [(type_, rows.filter(pc.equal(named, type_.name))) for type_ in types]

    def _update(
        self,
        type_: EntityType,
        variable: str,
        rows: pa.Table,
        assignments: Sequence[plan.Assignment],
    ) -> None:
        if not rows.num_rows:
            return
        given = {one.property: self._column(rows, type_, one) for one in assignments}
        ids = rows.column(plan.column_of(variable, ID)).combine_chunks()
        chosen = _one_of_each(type_, ids, given)
        wanted = ids.take(chosen)
        pending, columns = self.run.of(type_), row_columns(type_)
        lookup = FilteredLookup(KeyLookup(ID, wanted, (ID,)), RowFilter())
        found = self.run.reads.ask(self.run.base, type_key(type_), lookup)
        stored = pending.untouched(found)
        matched = pa.concat_tables(
            [among(pending.rows, wanted), stored.select(columns.names).cast(columns)]
        )
        if not matched.num_rows:
            return
        at = pc.index_in(matched.column(ID).combine_chunks(), value_set=wanted)
        values = {name: value.take(chosen).take(at) for name, value in given.items()}
        self.run.put_updated(type_, matched, values, stored)

    def _delete(self, type_: EntityType, ids: pa.ChunkedArray) -> None:
        wanted = ids.unique()
        if not len(wanted):
            return
        key = KeyLookup(ID, wanted, (ID,))
        lookup = FilteredLookup(key, RowFilter(), located_columns(type_))
        stored = self.run.reads.ask(self.run.base, type_key(type_), lookup)
        gone = self.run.remove(type_, stored, among(self.run.of(type_).rows, wanted))
        if isinstance(type_, NodeType):
            incident = self.run.base.catalog.incident_edges(type_.name)
            self.run.cascade(type_.name, tuple(edge.name for edge in incident), gone)

    # -- what is told of it --------------------------------------------------------------

    def returned(
        self,
        columns: Sequence[plan.Column],
        shown: Sequence[plan.BoundEntity],
        changes: Mapping[str, TypeChange],
    ) -> pa.Table:
        """Columns about the rows of the match, with the values that entities have in the end."""
        rows = self.rows
        for entity in shown:
            for type_name in entity.types:
                change = changes.get(f"{entity.kind}:{type_name}")
                if change is not None and change.rows.num_rows:
                    rows = _as_written(rows, entity, type_name, change.rows)
        found: dict[str, pa.Array] = {}
        for column in columns:
            if isinstance(column.value, plan.NodeRef | plan.Score):
                raise AssertionError(f"{column.name} is no value")
            found[column.name] = values_of(column.value, self._seen(rows, column.value))
        return pa.table(found)


def _as_written(
    rows: pa.Table, entity: plan.BoundEntity, type_name: str, written: pa.Table
) -> pa.Table:
    """Rows with the values of entities that were changed in the place of those they had."""
    ids = rows.column(plan.column_of(entity.variable, ID)).combine_chunks()
    at = pc.index_in(ids, value_set=written.column(ID).combine_chunks())
    if len(entity.types) > 1:
        is_type = pc.equal(rows.column(plan.column_of(entity.variable, TYPE)), type_name)
        at = pc.if_else(is_type.combine_chunks(), at, pa.scalar(None, pa.int32()))
    is_written = at.is_valid()
    prefix = plan.column_of(entity.variable, "")
    for place, name in enumerate(rows.column_names):
        own = name.removeprefix(prefix)
        if name.startswith(prefix) and own in written.column_names and own not in (ID, TYPE):
            before = rows.column(place).combine_chunks()
            now = written.column(own).combine_chunks().take(at).cast(before.type)
            after = _chosen(is_written, now, before)
            rows = rows.set_column(place, name, after)
    return rows


def _chosen(mask: pa.Array, yes: pa.Array, no: pa.Array) -> pa.Array:
    """For each row a value of the first or of the second array, of whatever type."""
    chosen = np.where(mask.to_numpy(zero_copy_only=False), 0, len(yes)) + np.arange(len(yes))
    return pa.concat_arrays([yes, no]).take(pa.array(chosen))


def _one_of_each(type_: EntityType, ids: pa.Array, given: Mapping[str, pa.Array]) -> pa.Array:
    """A row for each id; all rows of one id have to give the same."""
    codes = ids.dictionary_encode()
    first = np.full(len(codes.dictionary), -1, dtype=np.int64)
    of = codes.indices.to_numpy()
    backwards = np.arange(len(ids) - 1, -1, -1)
    first[of[backwards]] = backwards
    if len(first) < len(ids):
        for name, values in given.items():
            differs = _differ(values, values.take(pa.array(first[of])))
            if differs.any():
                raise _contradiction(type_, name, ids[int(np.flatnonzero(differs)[0])].as_py())
    return pa.array(first)


def _differ(values: pa.Array, others: pa.Array) -> Flags:
    if pa.types.is_nested(values.type):
        pairs = zip(values.to_pylist(), others.to_pylist(), strict=True)
        return np.array([one != other for one, other in pairs])
    both_null = pc.and_(values.is_null(), others.is_null())
    same = pc.or_(pc.fill_null(pc.equal(values, others), False), both_null)  # noqa: FBT003 - pyarrow
    flags: Flags = ~same.to_numpy(zero_copy_only=False)
    return flags


def _distinct(
    type_: EntityType, given: Sequence[Assigned], ends: Mapping[str, pa.Array]
) -> tuple[Positions, Positions]:
    """The rows that are written, and for each row which of them stands for it.

    Of a type with a key, equal rows of one key are one, and different ones contradict each other.
    """
    every = np.arange(len(given))
    if not type_.key:
        return every, every
    named = {column: texts.to_pylist() for column, texts in ends.items()}
    seen: dict[tuple[object, ...], int] = {}
    place = np.empty(len(given), dtype=np.int64)
    for row, values in enumerate(given):
        key = tuple(named[name][row] if name in named else values.get(name) for name in type_.key)
        known = seen.setdefault(key, row)
        place[row] = known
        if known != row and given[known] != values:
            other = next(name for name in values if given[known][name] != values[name])
            raise _contradiction(type_, other, ", ".join(map(str, key)))
    chosen = np.unique(place)
    return chosen, np.searchsorted(chosen, place)


def _contradiction(type_: EntityType, name: str, entity: str) -> QueryError:
    return QueryError(
        f"two rows of the match give {type_.name} '{entity}' different values of `{name}`: "
        "match each entity once, or make one value of them, as in `let $x = max(…) { … }`",
        details={"type_name": type_.name, "id": entity, "property": name},
    )
