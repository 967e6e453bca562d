"""Folding: small fragments that earlier writes have left become one, in passing.

Owns which fragments are folded and when, so that their number grows with the logarithm of the
number of writes and each row is written again only a few times in its life; and how much of it
one write is burdened with. Only fragments that the base has are folded, so that a write which
lost a race can bring its fold along; and only those that no index covers, which would not know
their rows again. A fold that cannot be done is left to the next write: it must never make one
fail, and never changes what is read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from threading import Lock

import numpy as np

from omnigraph.errors import StorageError
from omnigraph.rows.hashing import hash_texts
from omnigraph.storage.blobs.sizes import blob_bytes
from omnigraph.storage.cache_budget import budget
from omnigraph.storage.indexes.table_indexes import covered_fragments
from omnigraph.storage.tables.fragments import FragmentPart, derive_layout, layout_of
from omnigraph.storage.tables.rewrite import Rewritten, commit_rewritten, fold_rows
from omnigraph.storage.tables.row_lookup import fragment_maps
from omnigraph.storage.tables.table import Stamp, Table, TablePin

TIER = 8
"""So many fragments of about one size become one; sizes are told apart by powers of it."""
FOLDED_ROWS = TIER**4
"""A fragment with so many live rows is large enough: merging those is left to maintenance."""
FOLDED_BYTES = 16 * 2**20
"""What one write reads and writes again at most."""
TABLES_KNOWN = 1_024
"""Of so many tables it is remembered what indexes cover."""


def fold(base: Table, touched: Collection[int]) -> tuple[Rewritten, ...]:
    """Write small fragments of a version into one, if there are too many of them.

    Those that are ``touched`` have just lost rows, and stay for another time.
    """
    try:
        parts = [part for part in layout_of(base).parts if part.number not in touched]
        parts = [part for part in parts if part not in _covered.of(base)]
        if too_many(parts):
            parts = _covered.without(base, parts)
        chosen = too_many(parts)
        if chosen and (extra := blob_bytes(base, chosen)):
            chosen = too_many(parts, extra)
        if not chosen:
            return ()
        return (_write(base, chosen),)
    except StorageError:
        return ()


def too_many(
    parts: Sequence[FragmentPart], extra: Sequence[tuple[FragmentPart, int]] = ()
) -> list[FragmentPart]:
    """The fragments that are to become one; none while there are few of each size.

    ``extra`` says how many bytes of a fragment lie elsewhere than in its files.
    """
    beside = dict(extra)
    live = {part: _live_bytes(part) + beside.get(part, 0) for part in parts}
    small = sorted(
        (
            part
            for part in parts
            if part.rows < FOLDED_ROWS
            and part.size <= FOLDED_BYTES
            and live[part] * TIER <= FOLDED_BYTES
        ),
        key=lambda part: part.rows,
    )
    chosen: list[FragmentPart] = []
    rows = 0
    for tier in range(_tier(FOLDED_ROWS) + 1):
        same = [part for part in small if _tier(part.rows) == tier]
        # What was chosen so far will be one fragment, perhaps the one that is too many here.
        if len(same) + bool(chosen and _tier(rows) == tier) >= TIER:
            chosen += same
            rows = sum(part.rows for part in chosen)
    return _within(chosen, live)


def _within(parts: Sequence[FragmentPart], live: dict[FragmentPart, int]) -> list[FragmentPart]:
    """The first of some fragments, so far as one write may be burdened with them."""
    read = np.cumsum([part.size for part in parts])
    written = np.cumsum([live[part] for part in parts])
    rows = np.cumsum([part.rows for part in parts])
    fits = (read <= 2 * FOLDED_BYTES) & (written <= FOLDED_BYTES) & (rows <= TIER * FOLDED_ROWS)
    found = list(parts[: int(fits.sum())])
    return found if len(found) > 1 else []


def _live_bytes(part: FragmentPart) -> int:
    return part.size * part.rows // max(part.physical, 1)


def _tier(rows: int) -> int:
    tier = 0
    while rows >= TIER:
        rows //= TIER
        tier += 1
    return tier


def _write(base: Table, parts: Sequence[FragmentPart]) -> Rewritten:
    """Write them, and note what the maps of texts want to know of every new file."""
    written, rows = fold_rows(base, parts)
    mapped = [name for name in fragment_maps.mapped(base) if name in rows.column_names]
    hashes = {name: hash_texts(rows.column(name)) for name in mapped}
    fragment_maps.note_hashes(base, written.sizes, hashes)
    return written


class _CoveredFragments:
    """Small fragments that indexes were seen to cover: nobody asks storage twice about them."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, frozenset[FragmentPart]] = OrderedDict()
        self._lock = Lock()

    def of(self, table: Table) -> frozenset[FragmentPart]:
        """Those of a table that are known."""
        with self._lock:
            return self._known.get(table.location.uri, frozenset())

    def without(self, table: Table, parts: Sequence[FragmentPart]) -> list[FragmentPart]:
        """The fragments that no index of a version covers; the others are remembered."""
        numbers = covered_fragments(table)
        found = {part for part in parts if part.number in numbers}
        if found:
            there = frozenset(layout_of(table).parts)
            with self._lock:
                known = self._known.pop(table.location.uri, frozenset())
                self._known[table.location.uri] = (known & there) | found
                while len(self._known) > TABLES_KNOWN:
                    self._known.popitem(last=False)
        return [part for part in parts if part not in found]


_covered = _CoveredFragments()


def commit_folded(
    table: Table, folded: Sequence[Rewritten], stamp: Stamp, newer: Table | None = None
) -> TablePin:
    """Commit a fold on top of the rows of a write, as part of it.

    It says of itself what the write does, which is no maintenance: whoever has to know whether
    rows have changed since then must not take both for a mere rearrangement. On a ``newer`` base
    than it was made for, somebody may have built an index on what it folds: then it is dropped.
    """
    if not folded:
        return table.pin
    try:
        if newer is not None:
            numbers = covered_fragments(newer)
            folded = [one for one in folded if one.numbers.isdisjoint(numbers)]
        pin = commit_rewritten(table, folded, Stamp(properties=stamp.properties))
        derive_layout(table, table.at(pin))
    except StorageError:
        return table.pin
    # The version in between is never shown, so no head will be seen to leave it behind.
    budget.supersede([(table.location.uri, table.pin.version)])
    return pin
