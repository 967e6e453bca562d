"""The difference between two versions of a table, by fragments.

Owns telling cheaply which rows one version has that the other lacks: fragments are
immutable, so only those that came, went or lost rows need to be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.fragments import FragmentPart, layout_of, stream_parts
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table
from omnigraph.storage.tables.write_rows import Addresses


@dataclass(frozen=True, slots=True)
class FragmentDelta:
    """What happened to the fragments of ``before`` on the way to ``after``."""

    before: Table
    after: Table
    added: tuple[int, ...]
    added_rows: int
    touched: frozenset[int]
    """Fragments of before that are gone, or have lost rows."""
    gone: frozenset[int]
    """Fragments of before that are not there any more."""

    def rows(self, columns: Sequence[str], *, with_row_id: bool = False) -> pa.Table:
        """The rows of the added fragments."""
        dataset = self.after.dataset()
        found = (dataset.get_fragment(number) for number in self.added)
        fragments = [fragment for fragment in found if fragment is not None]
        if not fragments:
            # Lance would take no fragments for all of them.
            fields = [self.after.schema.field(name) for name in columns]
            fields += [pa.field(ROW_ID, pa.uint64())] if with_row_id else []
            return pa.schema(fields).empty_table()
        with storage_errors(f"scanning {self.after.location}"):
            scanner = dataset.scanner(
                columns=list(columns),
                fragments=fragments,
                with_row_id=with_row_id,
                with_row_address=True,
            )
            return scanner.to_table()

    def lost(self, columns: Sequence[str]) -> pa.Table:
        """The rows of before that are not where they were: deleted, replaced or moved."""
        parts = [part for part in layout_of(self.before).parts if part.number in self.touched]
        if not parts:
            return pa.schema([self.before.schema.field(name) for name in columns]).empty_table()
        batches = stream_parts(self.before, (*columns, ROW_ADDRESS), parts)
        rows = pa.Table.from_batches(list(batches))
        kept = [part for part in layout_of(self.after).parts if part.number in self.touched]
        live = [np.empty(0, dtype=np.uint64)]
        if kept:
            live += [
                batch.column(ROW_ADDRESS).to_numpy()
                for batch in stream_parts(self.after, (ROW_ADDRESS,), kept)
                if batch.num_rows
            ]
        known = np.isin(rows.column(ROW_ADDRESS).to_numpy(), np.concatenate(live))
        return rows.filter(pa.array(~known)).select(list(columns))

    def keeps(self, addresses: Addresses) -> bool:
        """Whether the rows that before had at these addresses are untouched in after."""
        wanted = np.asarray(addresses, dtype=np.uint64)
        owners = (wanted >> np.uint64(32)).astype(np.int64)
        if np.isin(owners, list(self.gone)).any():
            return False
        suspects = np.unique(owners[np.isin(owners, list(self.touched))])
        if not len(suspects):
            return True
        dataset = self.after.dataset()
        found = (dataset.get_fragment(int(number)) for number in suspects)
        fragments = [fragment for fragment in found if fragment is not None]
        with storage_errors(f"scanning {self.after.location}"):
            scanner = dataset.scanner(columns=[], fragments=fragments, with_row_address=True)
            live = scanner.to_table().column(ROW_ADDRESS).to_numpy()
        return bool(np.isin(wanted[np.isin(owners, suspects)], live).all())


def fragment_delta(before: Table, after: Table) -> FragmentDelta:
    """Compare two versions of one table."""
    old, new = _fragments(before), _fragments(after)
    same = {number for number in old.keys() & new.keys() if old[number].file == new[number].file}
    added = tuple(sorted(new.keys() - same))
    touched = {number for number in same if old[number] != new[number]}
    gone = old.keys() - same
    return FragmentDelta(
        before,
        after,
        added,
        sum(new[number].rows for number in added),
        frozenset(touched | gone),
        frozenset(gone),
    )


def _fragments(table: Table) -> Mapping[int, FragmentPart]:
    return {part.number: part for part in layout_of(table).parts}
