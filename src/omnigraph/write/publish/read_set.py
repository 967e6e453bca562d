"""The read set: every question a write has asked its base, with the answer.

Owns deciding whether a newer base would have answered the same. That is what a
verdict depends on, no more: rows that other writers added, changed or compacted
elsewhere leave it standing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.manifest.entries import TableIdentity, TableVersion
from omnigraph.rows.filters import RowFilter
from omnigraph.storage.budget import keep_all
from omnigraph.storage.tables.columns import is_blob
from omnigraph.storage.tables.row_lookup import MAX_LISTED, find_rows
from omnigraph.storage.tables.table import (
    ROW_ADDRESS,
    ROW_ID,
    Table,
    TablePin,
    made_by,
    transaction_of,
)
from omnigraph.storage.tables.version_diff import fragment_delta
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.staging import is_built_from, is_maintenance

# Beyond so many new rows, asking again costs less than looking at what was added.
MAX_DELTA = 100_000
# So many steps of maintenance are followed from one published version to the one before.
MAX_STEPS = 64


class BaseQuery(Protocol):
    """Something asked of one table."""

    @property
    def columns(self) -> Sequence[str]:
        """What must be known of a row to tell whether it belongs to the answer."""

    @property
    def is_small(self) -> bool:
        """Whether asking it again costs less than comparing two versions of the table."""

    def ask(self, table: Table) -> pa.Table:
        """The rows that answer it, with their row ids and addresses."""

    def select(self, rows: pa.Table) -> pa.Table:
        """Of some rows, those that belong to the answer."""


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """The rows that hold one of these texts in a text column."""

    column: str
    texts: pa.Array
    wanted: tuple[str, ...]

    @property
    def columns(self) -> Sequence[str]:
        """The text column."""
        return (self.column,)

    @property
    def is_small(self) -> bool:
        """Few texts are looked up at once."""
        return len(self.texts) <= MAX_LISTED

    def ask(self, table: Table) -> pa.Table:
        """The rows, found through the maps of texts."""
        return find_rows(table, self.column, self.texts, self.wanted)

    def select(self, rows: pa.Table) -> pa.Table:
        """Compare the texts."""
        return rows.filter(pc.is_in(rows.column(self.column), value_set=self.texts))


@dataclass(frozen=True, slots=True)
class FilterScan:
    """The rows that pass a filter; ``wanted`` columns of them, or all."""

    filter: RowFilter
    wanted: tuple[str, ...] | None = None

    @property
    def columns(self) -> Sequence[str]:
        """What the filter looks at."""
        return self.filter.columns or (ID,)

    @property
    def is_small(self) -> bool:
        """It is a scan."""
        return False

    def ask(self, table: Table) -> pa.Table:
        """Scan; what storage cannot decide is decided on the columns it needs, first."""
        kept = self.filter.kept_columns
        with_blobs = self.wanted is None and has_blobs(table.schema)
        if not kept:
            return table.scan(
                self.wanted,
                self.filter.condition,
                with_row_id=True,
                with_row_address=True,
                with_blobs=with_blobs,
            )
        columns = list(dict.fromkeys([ID, *kept]))
        narrow = self.filter.narrow(table.scan(columns, self.filter.condition))
        wanted = self.wanted or tuple(table.schema.names)
        return find_rows(table, ID, narrow.column(ID), wanted, with_blobs=with_blobs)

    def select(self, rows: pa.Table) -> pa.Table:
        """Filter in memory."""
        return self.filter.select(rows)


@dataclass(frozen=True, slots=True)
class FilteredLookup:
    """The rows that pass a filter, all of which hold one of these texts in a text column."""

    anchor: KeyLookup
    filter: RowFilter
    wanted: tuple[str, ...] | None = None

    @property
    def columns(self) -> Sequence[str]:
        """What the filter and the anchor look at."""
        return tuple(dict.fromkeys([self.anchor.column, *self.filter.columns]))

    @property
    def is_small(self) -> bool:
        """As its anchor."""
        return self.anchor.is_small

    def ask(self, table: Table) -> pa.Table:
        """Find the rows through the maps of texts, then filter them in memory."""
        wanted = self.wanted or tuple(table.schema.names)
        read = tuple(dict.fromkeys([*wanted, *self.columns]))
        with_blobs = self.wanted is None and has_blobs(table.schema)
        rows = find_rows(table, self.anchor.column, self.anchor.texts, read, with_blobs=with_blobs)
        return self.filter.select(rows).select([*wanted, ROW_ID, ROW_ADDRESS])

    def select(self, rows: pa.Table) -> pa.Table:
        """Compare the texts, then filter."""
        return self.filter.select(self.anchor.select(rows))


def has_blobs(schema: pa.Schema) -> bool:
    """Whether a table has a column of blobs."""
    return any(is_blob(column) for column in schema)


@dataclass(frozen=True, slots=True)
class WholeTable:
    """All rows of a table: any change of them matters, and nothing is read for it."""


class Dependency(Protocol):
    """Something about a base that a write depends on."""

    @property
    def type_key(self) -> str:
        """What it is about, as a person is told."""

    def holds(self, before: Base, after: Base) -> bool:
        """Whether it is so of the newer base, given that it was of the older."""


@dataclass(frozen=True, slots=True)
class RecordedRead:
    """A question, and what the base answered."""

    type_key: str
    question: BaseQuery | WholeTable
    answer: pa.Table | None = None

    def holds(self, before: Base, after: Base) -> bool:
        """Whether the newer base answers the same."""
        old, new = before.table(self.type_key), after.table(self.type_key)
        if old.identity != new.identity:
            return False
        if old.table.pin.version == new.table.pin.version:
            return True
        if self.answer is None or isinstance(self.question, WholeTable):
            return only_maintained(before, after, old.identity)
        if self.question.is_small:
            return _same(self.answer, self.question.ask(new.table))
        delta = fragment_delta(old.table, new.table)
        if delta.added_rows <= MAX_DELTA and delta.keeps(self.answer.column(ROW_ADDRESS)):
            added = self.question.select(delta.rows(self.question.columns))
            if not added.num_rows:
                return True
        return _same(self.answer, self.question.ask(new.table))


def _same(first: pa.Table, second: pa.Table) -> bool:
    """Equal but for where the rows lie."""
    if first.num_rows != second.num_rows:
        return False
    if not first.num_rows:
        return True
    ordered = [
        answer.drop_columns([ROW_ADDRESS]).sort_by(ROW_ID).combine_chunks()
        for answer in (first, second)
    ]
    return bool(ordered[0].equals(ordered[1]))


def only_maintained(before: Base, after: Base, identity: TableIdentity) -> bool:
    """Whether everything published for a table since then only rearranged its rows.

    Each version has to be built on the one before: a merge may have taken over a version of
    another branch, whatever that one was made for.
    """
    old = before.snapshot.by_identity[identity]
    new = after.snapshot.by_identity.get(identity)
    if new is None:
        return False
    pins = {
        entry.version: entry.pin
        for entry in (*after.view.state.recent, *after.view.state.versions.values())
        if isinstance(entry, TableVersion) and entry.identity == identity
    }
    built_on = old.pin
    for version in range(old.version + 1, new.version + 1):
        pin = pins.get(version)
        if pin is None or not _is_rearranged(new.pinned.at(pin), built_on):
            return False
        built_on = pin
    return True


def _is_rearranged(table: Table, base: TablePin) -> bool:
    """Whether a version was made from another by maintenance alone, in one step or several."""
    for _ in range(MAX_STEPS):
        try:
            made = transaction_of(table)
        except StorageError as error:
            if error.kind == "not_found":
                return False  # cleaned up since then, so that nobody knows
            raise
        if made is None or not is_maintenance(made_by(made)):
            return False
        # Steps in between may be collected: a commit of several says where they began.
        if made.read_version == base.version or is_built_from(made_by(made), base):
            return True
        # A step in between, which nobody has published.
        table = table.at(TablePin(made.read_version, None, table.pin.row_count))
    return False


@dataclass(slots=True)
class ReadSet:
    """The questions of one write."""

    reads: list[Dependency] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def ask(self, base: Base, type_key: str, question: BaseQuery) -> pa.Table:
        """Ask the base, and remember the question with its answer."""
        answer = question.ask(base.table(type_key).table)
        keep_all(answer)
        with self._lock:
            self.reads.append(RecordedRead(type_key, question, answer))
        return answer

    def hold(
        self, base: Base, type_key: str, column: str, texts: pa.Array, *wanted: str
    ) -> pa.Table:
        """The rows that hold one of these texts."""
        return self.ask(base, type_key, KeyLookup(column, texts, tuple(wanted) or (column,)))

    def depend_on(self, type_key: str) -> None:
        """Remember that every row of a table matters."""
        with self._lock:
            self.reads.append(RecordedRead(type_key, WholeTable()))

    def claim(self, claim: Dependency) -> None:
        """Remember anything else that must still be so."""
        with self._lock:
            self.reads.append(claim)

    def broken(self, before: Base, after: Base) -> Dependency | None:
        """The first question that a newer base would answer otherwise."""
        return next((read for read in self.reads if not read.holds(before, after)), None)
