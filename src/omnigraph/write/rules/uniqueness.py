"""Uniqueness: no two rows of a type share a key or a `@unique` tuple.

Owns the rows that repeat a tuple and those that meet one somebody else holds, and the check of
a change set: inside one batch of input, over the final image of the write, and against the
stored rows it does not touch. A row with a null member is exempt. Owns also the refusal of ids
that a strict write may not meet, stored ones and those that the input repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import KeyConflict, quoted
from omnigraph.lang.structural import ENDPOINTS, ID, spelling
from omnigraph.storage.tables.row_lookup import MAX_LISTED, find_rows
from omnigraph.storage.tables.table import Table
from omnigraph.write.change.change_set import (
    EntityType,
    Rows,
    TypeChange,
    key_texts,
    member_texts,
    repeated_rows,
    shown_ends,
    type_key,
)
from omnigraph.write.publish.read_set import BaseQuery
from omnigraph.write.rules.evaluation import Evaluation
from omnigraph.write.rules.key_finder import AT, HOLDER, KeyFinder, StoredKeys
from omnigraph.write.rules.violations import SHOWN, SourceMap, Violation, Violations, report

# Lance cannot evaluate an Arrow expression about columns of these types.
_UNPUSHABLE = (pa.uint32(), pa.uint64())

TWICE, EXISTS = "is there twice in the input for", "exists already in"


def constraints_of(type_: EntityType) -> list[Constraint]:
    """The key, if there is one, then each `@unique`."""
    found = [Constraint(type_, type_.key, is_key=True)] if type_.key else []
    return found + [Constraint(type_, members, is_key=False) for members in type_.uniques]


@dataclass(frozen=True, slots=True)
class Constraint:
    """The members of a type that together are held at most once."""

    type: EntityType
    members: tuple[str, ...]
    is_key: bool

    @property
    def labels(self) -> tuple[str, ...]:
        """What people call the members."""
        return tuple(spelling(name, self.type.properties) for name in self.members)

    def keys(self, rows: pa.Table) -> pa.Array:
        """The tuples of rows, each as one text; null where a member is."""
        return key_texts(self.type, self.members, rows)

    def texts(self, rows: pa.Table, holders: Sequence[str]) -> list[str]:
        """What is said about rows whose tuples these others hold."""
        if not rows.num_rows:
            return []
        values = [
            shown_ends(self.type, name, member_texts(self.type, name, rows)).to_pylist()
            for name in self.members
        ]
        ids = rows.column(ID).to_pylist()
        return list(map(self._text, zip(*values, strict=True), holders, ids))

    def _text(self, values: Sequence[str], first: str, second: str) -> str:
        several, labels = len(self.members) > 1, self.labels
        named = f"({', '.join(labels)})" if several else labels[0]
        shown = f"({', '.join(values)})" if several else values[0]
        return (
            f"@unique violation on {self.type.name}.{named}: value '{quoted(shown)}' held by "
            f"'{quoted(first)}' and '{quoted(second)}'"
        )


def repeated(rule: Constraint, rows: pa.Table, places: SourceMap, violations: Violations) -> None:
    """Two of these rows share a tuple."""
    if rows.num_rows < 2:
        return
    again, firsts = repeated_rows(rule.keys(rows))
    holders = rows.column(ID).take(pa.array(firsts[: violations.room]))
    _report(rule, rows, again, holders, places=places, violations=violations)


def held_by_others(
    rule: Constraint, rows: pa.Table, others: KeyFinder, places: SourceMap, violations: Violations
) -> None:
    """One of these rows has a tuple that somebody else holds."""
    clashes = others.find(rule.keys(rows))
    at, holders = clashes.column(AT).to_numpy(), clashes.column(HOLDER)
    _report(rule, rows, at, holders, places=places, violations=violations)


def _report(
    rule: Constraint,
    rows: pa.Table,
    wrong: Rows,
    holders: pa.ChunkedArray,
    *,
    places: SourceMap,
    violations: Violations,
) -> None:
    if not len(wrong):
        return
    shown = wrong[: violations.room]
    some = rows.select(list(dict.fromkeys((ID, *rule.members)))).take(pa.array(shown))
    texts = rule.texts(some, holders.slice(0, len(shown)).to_pylist())
    key, label = type_key(rule.type), rule.labels[0]
    member = ENDPOINTS.get(rule.members[0], label)
    ids = some.column(ID).to_pylist()
    violations.add_all(
        len(wrong),
        (
            Violation("unique", text, key, label, id_, places.place(row, member))
            for row, text, id_ in zip(shown.tolist(), texts, ids, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class HoldingTuples:
    """The stored rows that hold one of these tuples: a question of the read set."""

    rule: Constraint
    typed: pa.Table
    """The tuples as stored values."""

    @property
    def columns(self) -> Sequence[str]:
        """The members of the tuple."""
        return (ID, *self.rule.members)

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
            return find_rows(table, members[0], self.typed.column(members[0]), (ID, *members))
        where = None
        for member in members:
            values = self.typed.column(member).combine_chunks().unique()
            if values.type in _UNPUSHABLE or len(values) > MAX_LISTED:
                continue
            condition = pc.field(table.columns.of(member)).isin(values)
            where = condition if where is None else where & condition
        rows = table.scan((ID, *members), where, with_row_id=True, with_row_address=True)
        return self.select(rows)

    def select(self, rows: pa.Table) -> pa.Table:
        """Of some rows, those whose tuple is one of these."""
        wanted = self.rule.keys(self.typed)
        return rows.filter(pc.is_in(self.rule.keys(rows), value_set=wanted, skip_nulls=True))


def stored_tuples(
    rule: Constraint,
    rows: pa.Table,
    ask: Callable[[BaseQuery], pa.Table],
    *gone: pa.Array | pa.ChunkedArray,
) -> StoredKeys | None:
    """The stored rows that may have a tuple of these rows; None if these have none."""
    typed = rows.select(list(rule.members)).drop_null()
    if not typed.num_rows:
        return None
    return StoredKeys(ask, lambda _: HoldingTuples(rule, typed), rule.keys, gone)


def check_uniqueness(change: TypeChange, trial: Evaluation) -> None:
    """The key first, then each `@unique`."""
    for rule in constraints_of(change.type):
        _check(change, rule, trial)


def _check(change: TypeChange, rule: Constraint, trial: Evaluation) -> None:
    violations = trial.violations
    before = violations.total
    for batch in change.batches:
        repeated(rule, batch.rows, batch.places, violations)
    if violations.total == before and len(change.batches) != 1:
        repeated(rule, change.rows, change.places, violations)
    if violations.total == before and not rule.is_key and not change.replaces_all:
        # A stored row that the write leaves alone may have the tuple already.
        stored = stored_tuples(
            rule,
            change.rows,
            lambda question: trial.ask(change.type_key, question),
            change.ids,
            change.deleted.column(ID),
        )
        if stored is not None:
            held_by_others(rule, change.rows, stored, change.places, violations)


def key_text(entity_id: str, problem: str, type_name: str) -> str:
    """What is said about an id that a strict write may not meet."""
    return f"'{quoted(entity_id)}' {problem} {type_name}"


@dataclass(frozen=True, slots=True)
class KeyClash:
    """Rows whose ids a strict write may not meet; ``rows`` are among ``ids`` and ``places``."""

    type: EntityType
    ids: pa.Array
    rows: Rows
    places: SourceMap
    problem: str

    def violations(self) -> Iterator[Violation]:
        """What is said about each of the rows."""
        label = spelling(ID, self.type.properties)
        for row in self.rows.tolist():
            id_ = self.ids[row].as_py()
            text = key_text(id_, self.problem, self.type.name)
            place = self.places.place(row, label)
            yield Violation("key_conflict", text, type_key(self.type), label, id_, place)


def check_keys(change: TypeChange) -> None:
    """Refuse what a strict write may not meet."""
    for clash in key_clashes(change):
        refuse(clash)


def key_clashes(change: TypeChange) -> Iterator[KeyClash]:
    """What a strict write may not meet: repeated ids, then stored ones."""
    if change.refuses_repeats:
        for batch in change.batches:
            ids = batch.rows.column(ID).combine_chunks()
            rows, _ = repeated_rows(ids)
            if len(rows):
                yield KeyClash(change.type, ids, rows, batch.places, TWICE)
    if change.refuses_existing and change.existing.num_rows:
        stored = pc.is_in(change.ids, value_set=change.existing.column(ID).combine_chunks())
        rows = pc.indices_nonzero(stored).to_numpy()
        if len(rows):
            yield KeyClash(change.type, change.ids, rows, change.places, EXISTS)


def refuse(clash: KeyClash) -> None:
    """One error for all of these rows."""
    total = len(clash.rows)
    found = list(islice(clash.violations(), SHOWN))
    summary = f"{total} ids conflict" if total > 1 else None
    members = ("entity_id", "source", "line", "column")
    raise KeyConflict(
        report(found, total, summary),
        details={
            "type_key": type_key(clash.type),
            "entity_id": found[0].entity_id,
            "total": total,
            "conflicts": [{name: one.body()[name] for name in members} for one in found],
        },
    )
