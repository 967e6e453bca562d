"""Checks of stored rows: what a change of the schema forbids, found before it is made.

Owns which rows break a check, counted and the first of them named, and that a verdict stands on
a newer base: rows that others have written since are looked at, and no others where a row can
be judged by itself. Must agree with the rules of writes, whose functions it asks.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.migration.effects import (
    CardinalityWithin,
    Column,
    ColumnIsEmpty,
    DataCheck,
    InEnum,
    InRange,
    MatchesPattern,
    NotNull,
    UniqueEdges,
    UniqueMembers,
)
from omnigraph.lang.schema.migration.steps import MAX_SHOWN_IDS, Violations
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.manifest.entries import TableIdentity
from omnigraph.rows.hashing import hash_texts
from omnigraph.rows.patterns import found_in
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.version_diff import fragment_delta
from omnigraph.write.change.change_set import EntityType, key_texts
from omnigraph.write.publish.base import Base
from omnigraph.write.reshape.rows_after import TypeAfter
from omnigraph.write.rules.row_rules import above_range, below_range, outside_enum

RowCheck = NotNull | InEnum | InRange | MatchesPattern
"""What a row obeys or breaks by itself."""
_ROW_CHECKS = (NotNull, InEnum, InRange, MatchesPattern)

RowsOf = Callable[[Sequence[str]], Iterator[pa.Table]]
"""Gives some columns of rows with their ids, piece by piece; asked twice, the same rows."""


@dataclass
class _Found:
    """Rows that break a check: how many, and the smallest of their ids."""

    count: int = 0
    ids: list[str] = field(default_factory=list)

    def add(self, ids: pa.Array | pa.ChunkedArray) -> None:
        self.count += len(ids)
        self.ids = heapq.nsmallest(MAX_SHOWN_IDS, {*self.ids, *ids.to_pylist()})

    @property
    def violations(self) -> Violations:
        return Violations(self.count, tuple(self.ids))


def find_violations(check: DataCheck, after: TypeAfter, table: Table) -> Violations:
    """The rows of a table that break a check once the change is made."""
    if not table.pin.row_count:
        return _Found().violations
    if isinstance(check, ColumnIsEmpty):
        return _values_of(check, after, table)
    return violations_among(check, after.desired, lambda names: after.rows(table, names))


def violations_among(check: DataCheck, type_: EntityType, rows: RowsOf) -> Violations:
    """Those of some rows that break a check; the rows are as the type has them."""
    found = _Found()
    for ids in _breaking(check, type_, rows):
        found.add(ids)
    return found.violations


def _breaking(check: DataCheck, type_: EntityType, rows: RowsOf) -> Iterator[pa.ChunkedArray]:
    match check:
        case UniqueMembers():
            yield from sharing_rows(type_, rows, [_member(type_, one) for one in check.members])
        case UniqueEdges():
            members = [_member(type_, one) for one in check.members]
            yield from sharing_rows(type_, rows, [SRC, DST, *members])
        case CardinalityWithin():
            yield _miscounted(check, rows)
        case ColumnIsEmpty():
            raise AssertionError("whether a column is empty is asked of a table")
        case _:
            name = _named(type_, check.property_id)
            for some in rows([name]):
                yield _wrong(check, some, name)


def _member(type_: EntityType, member: Column | str) -> str:
    return member if isinstance(member, str) else _named(type_, member.property_id)


def _named(type_: EntityType, property_id: int) -> str:
    properties = type_.properties.items()
    return next(name for name, found in properties if found.property_id == property_id)


# -- rows by themselves ------------------------------------------------------------------


def _values_of(check: ColumnIsEmpty, after: TypeAfter, table: Table) -> Violations:
    """The rows that have a value in a column as it stands."""
    found, name = _Found(), after.former_name(check.property_id)
    for batch in table.batches([ID, name]):
        found.add(batch.column(ID).filter(batch.column(name).is_valid()))
    return found.violations


def _wrong(check: RowCheck, rows: pa.Table, name: str) -> pa.ChunkedArray:
    """The ids of those rows that break a check."""
    broken = pc.fill_null(_mask(check, rows.column(name)), fill_value=False)
    return rows.column(ID).filter(broken)


def _mask(check: RowCheck, values: pa.ChunkedArray) -> pa.ChunkedArray:
    match check:
        case NotNull():
            return values.is_null()
        case InEnum():
            return outside_enum(values, check.values)
        case InRange():
            masks = [pc.is_nan(values)] if pa.types.is_floating(values.type) else []
            masks += [] if check.minimum is None else [below_range(values, check.minimum)]
            masks += [] if check.maximum is None else [above_range(values, check.maximum)]
            return reduce(pc.or_, masks)
        case MatchesPattern():
            return pc.invert(found_in(values, check.pattern))


# -- rows among others -------------------------------------------------------------------


def sharing_rows(
    type_: EntityType, source: RowsOf, members: list[str]
) -> Iterator[pa.ChunkedArray]:
    """The ids of all rows that share their members with another; a null shares nothing."""
    hashes = [np.empty(0, dtype=np.uint64)]
    for _, keys in _keyed(type_, source, members):
        hashes.append(hash_texts(keys.drop_null(), whole=True))
    values, counts = np.unique(np.concatenate(hashes), return_counts=True)
    suspects = values[counts > 1]
    if not len(suspects):
        return
    # Equal hashes are not yet equal members: only these rows are compared.
    parts = []
    for ids, keys in _keyed(type_, source, members):
        maybe = pa.array(np.isin(hash_texts(keys, whole=True), suspects))
        chosen = pc.and_(maybe, keys.is_valid())
        parts.append(pa.table({ID: ids.filter(chosen), "key": keys.filter(chosen)}))
    rows = pa.concat_tables(parts)
    counted = rows.column("key").value_counts()
    several = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
    yield rows.column(ID).filter(pc.is_in(rows.column("key"), value_set=several))


def _keyed(
    type_: EntityType, source: RowsOf, members: list[str]
) -> Iterator[tuple[pa.ChunkedArray, pa.Array]]:
    for rows in source(members):
        yield rows.column(ID), key_texts(type_, members, rows)


def _miscounted(check: CardinalityWithin, source: RowsOf) -> pa.Array:
    """The sources with too few or too many edges; one without edges is exempt."""
    chunks = [chunk for rows in source([SRC]) for chunk in rows.column(SRC).chunks]
    counted = pa.chunked_array(chunks, pa.string()).value_counts()
    wrong = pc.less(counted.field("counts"), check.minimum)
    if check.maximum is not None:
        wrong = pc.or_(wrong, pc.greater(counted.field("counts"), check.maximum))
    return counted.field("values").filter(wrong)


# -- on a newer base ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowsObey:
    """The claim that the rows of a table break no check: part of a read set."""

    type_key: str
    identity: TableIdentity
    after: TypeAfter
    checks: tuple[DataCheck, ...]

    def holds(self, before: Base, after: Base) -> bool:
        """Whether rows that were written since obey, too."""
        old = before.snapshot.by_identity[self.identity].pinned
        new = after.snapshot.by_identity[self.identity].pinned
        if old.pin.version == new.pin.version:
            return True
        delta = fragment_delta(old, new)
        for check in self.checks:
            if isinstance(check, _ROW_CHECKS):
                name = self.after.name(check.property_id)
                rows = self.after.shown(delta.rows(self.after.reading([name])), [name])
                if len(_wrong(check, rows, name)):
                    return False
            elif find_violations(check, self.after, new).count:
                return False
        return True


@dataclass(frozen=True, slots=True)
class StillEmpty:
    """The claim that a table has no rows."""

    type_key: str
    identity: TableIdentity

    def holds(self, before: Base, after: Base) -> bool:  # noqa: ARG002 - of any older base
        """Whether nobody has written any."""
        return not after.snapshot.by_identity[self.identity].pin.row_count
