"""Uniqueness: no two rows of a type share a key or a `@unique` tuple.

Owns the three passes: inside one batch of input, over the final image of the
write, and against the stored rows it does not touch. A row with a null member
is exempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.types import Scalar
from omnigraph.storage.tables.row_lookup import MAX_LISTED, find_rows
from omnigraph.storage.tables.table import Table
from omnigraph.write.change.change_set import TypeChange, without
from omnigraph.write.change.row_ids import canonical_texts
from omnigraph.write.change.type_batch import EntityType, type_key
from omnigraph.write.rules.evaluation import Evaluation
from omnigraph.write.rules.violations import SourceMap, Violation, Violations

# No property can have such a name.
_FIRST, _OTHER, _HOLDER = "@first", "@other", "@holder"
# Lance cannot evaluate an Arrow expression about columns of these types.
_UNPUSHABLE = (pa.uint32(), pa.uint64())


def check_uniqueness(change: TypeChange, trial: Evaluation) -> None:
    """The key first, then each `@unique`."""
    for rule in constraints_of(change.type):
        _check(change, rule, trial)


def constraints_of(type_: EntityType) -> list[Constraint]:
    """The key, if there is one, then each `@unique`."""
    key = type_.key if isinstance(type_, NodeType) else ()
    found = [Constraint(type_, key, is_key=True)] if key else []
    return found + [Constraint(type_, members, is_key=False) for members in type_.uniques]


@dataclass(frozen=True, slots=True)
class Constraint:
    """The members of a type that together are held at most once."""

    type: EntityType
    members: tuple[str, ...]
    is_key: bool

    def tuples(self, rows: pa.Table) -> pa.Table:
        """The tuples of rows by member, as texts that are equal only for equal values."""
        columns = {
            member: canonical_texts(rows.column(member), self._scalar(member))
            for member in self.members
        }
        return pa.table(columns)

    def _scalar(self, member: str) -> Scalar:
        property_ = self.type.properties.get(member)
        return property_.type.scalar if property_ is not None else Scalar.STRING

    def violation(
        self, values: Sequence[str], holders: tuple[str, str], places: SourceMap, row: int
    ) -> Violation:
        """Two ids hold one tuple; ``row`` is the input row of the second."""
        return Violation(
            "unique",
            self.text(values, holders),
            type_key=type_key(self.type),
            property=self.members[0],
            entity_id=holders[1],
            place=places.place(row, _spelled(self.members[0])),
        )

    def text(self, values: Sequence[str], holders: tuple[str, str]) -> str:
        """What is said about two ids that hold one tuple."""
        several = len(self.members) > 1
        named = f"({', '.join(self.members)})" if several else self.members[0]
        shown = f"({', '.join(values)})" if several else values[0]
        first, second = holders
        return (
            f"@unique violation on {self.type.name}.{named}: value '{shown}' held by "
            f"'{first}' and '{second}'"
        )


def _spelled(member: str) -> str:
    """How input rows spell a column."""
    return {"src": "from", "dst": "to"}.get(member, member)


def _check(change: TypeChange, rule: Constraint, trial: Evaluation) -> None:
    violations = trial.violations
    before = violations.total
    for batch in change.batches:
        repeated(rule, batch.rows, batch.places, violations)
    if violations.total == before and len(change.batches) > 1:
        repeated(rule, change.rows, change.places, violations)
    if violations.total == before and not rule.is_key and not change.replaces_all:
        _stored(rule, change, trial)


def repeated(rule: Constraint, rows: pa.Table, places: SourceMap, violations: Violations) -> None:
    """Two of these rows share a tuple."""
    if rows.num_rows < 2:
        return
    tuples = rule.tuples(rows).append_column(_FIRST, _numbers(rows.num_rows))
    tuples = tuples.drop_null()
    grouped = tuples.group_by(list(rule.members), use_threads=False).aggregate(
        [(_FIRST, "min"), (_FIRST, "count")]
    )
    crowded = grouped.filter(pc.greater(grouped.column(f"{_FIRST}_count"), 1))
    if not crowded.num_rows:
        return
    count = pc.sum(crowded.column(f"{_FIRST}_count")).as_py() - crowded.num_rows
    violations.add_all(count, _repetitions(rule, rows, tuples, crowded, places))


def _repetitions(
    rule: Constraint, rows: pa.Table, tuples: pa.Table, crowded: pa.Table, places: SourceMap
) -> Iterator[Violation]:
    """Each row that repeats the tuple of an earlier one, in the order of the rows."""
    members = list(rule.members)
    firsts = crowded.select([*members, f"{_FIRST}_min"])
    joined = tuples.rename_columns([*members, _OTHER]).join(firsts, members, join_type="inner")
    later = joined.filter(pc.greater(joined.column(_OTHER), joined.column(f"{_FIRST}_min")))
    later = later.sort_by(_OTHER)
    ids = rows.column("id")
    for batch in later.to_batches(max_chunksize=128):
        for found in batch.to_pylist():
            row, first = found[_OTHER], found[f"{_FIRST}_min"]
            holders = (ids[first].as_py(), ids[row].as_py())
            yield rule.violation([found[name] for name in members], holders, places, row)


@dataclass(frozen=True, slots=True)
class HoldingTuples:
    """The stored rows that hold one of these tuples: a question of the read set."""

    rule: Constraint
    typed: pa.Table
    """The tuples as stored values."""

    @property
    def columns(self) -> Sequence[str]:
        """The members of the tuple."""
        return ("id", *self.rule.members)

    @property
    def is_small(self) -> bool:
        """A few texts are looked up; anything else is a scan."""
        first = self.typed.column(self.rule.members[0])
        return self._is_text and len(first) <= MAX_LISTED

    @property
    def _is_text(self) -> bool:
        members = self.rule.members
        return len(members) == 1 and pa.types.is_string(self.typed.column(members[0]).type)

    def ask(self, table: Table) -> pa.Table:
        """Scan for any of the values of each member, then compare whole tuples."""
        members = self.rule.members
        if self._is_text:
            return find_rows(table, members[0], self.typed.column(members[0]), ("id", *members))
        where = None
        for member in members:
            values = self.typed.column(member).combine_chunks().unique()
            if values.type in _UNPUSHABLE or len(values) > MAX_LISTED:
                continue
            condition = pc.field(member).isin(values)
            where = condition if where is None else where & condition
        rows = table.scan(("id", *members), where, with_row_id=True, with_row_address=True)
        return self.select(rows)

    def select(self, rows: pa.Table) -> pa.Table:
        """Of some rows, those whose tuple is one of these."""
        members = list(self.rule.members)
        wanted = self.rule.tuples(self.typed).group_by(members).aggregate([])
        numbered = self.rule.tuples(rows).append_column(_FIRST, _numbers(rows.num_rows))
        hits = numbered.drop_null().join(wanted, members, join_type="inner").column(_FIRST)
        return rows.take(hits.combine_chunks().sort())


def _stored(rule: Constraint, change: TypeChange, trial: Evaluation) -> None:
    """A stored row that the write leaves alone has the tuple already."""
    members = list(rule.members)
    typed = change.rows.select(members).drop_null()
    if not typed.num_rows:
        return
    found = trial.ask(change.type_key, HoldingTuples(rule, typed))
    left = without(without(found, change.ids), change.deleted.column("id"))
    if not left.num_rows:
        return
    written = rule.tuples(change.rows).append_column(_OTHER, _numbers(change.rows.num_rows))
    stored = rule.tuples(left).append_column(_HOLDER, left.column("id"))
    clashes = written.drop_null().join(stored, members, join_type="inner").sort_by(_OTHER)
    ids = change.rows.column("id")
    trial.violations.add_all(
        clashes.num_rows,
        (
            rule.violation(
                [clash[name] for name in members],
                (clash[_HOLDER], ids[clash[_OTHER]].as_py()),
                change.places,
                clash[_OTHER],
            )
            for clash in clashes.slice(0, trial.violations.room).to_pylist()
        ),
    )


def _numbers(count: int) -> pa.Array:
    return pa.array(range(count), pa.int64())
