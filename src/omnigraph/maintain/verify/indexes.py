"""Indexes: whether those of the newest rows of every branch answer as a scan does.

Owns which are asked and what is said of those that are wrong. An index is derived: whatever is
wrong with it, no row is lost.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.maintain.verify.lineage import Lineage
from omnigraph.maintain.verify.report import SHOWN, Finding
from omnigraph.manifest.snapshot import SnapshotTable
from omnigraph.read.search.analysis import analyze, terms_of
from omnigraph.storage.indexes.agreement import (
    DEEP_SAMPLE,
    SAMPLE,
    Asked,
    sampled,
    scalar_agreement,
)
from omnigraph.storage.indexes.search import text_hits
from omnigraph.storage.indexes.table_indexes import TableIndex, indexes_of
from omnigraph.storage.tables.table import ROW_ID, Table

_WORD = re.compile(r"[^\W_]+")


@dataclass(slots=True)
class IndexCheck:
    """The indexes of all newest states."""

    lineage: Lineage
    deep: bool
    readable: set[tuple[str, int]]
    values: int = 0

    def run(self) -> None:
        """Ask every index once; tables that branches share have the same."""
        heads: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        tables: dict[tuple[str, int], SnapshotTable] = {}
        for branch in self.lineage.branches:
            if branch.view is not None:
                for found in branch.view.snapshot.tables.values():
                    at = found.table.path, found.pin.version
                    heads[at].append(branch.view.state.head_commit_id)
                    tables[at] = found
        told = {one.path for one in self.lineage.findings if one.kind.startswith("index_")}
        for at in sorted(tables):
            if at in self.readable:
                self._table(tables[at], heads[at], told)

    def _table(self, shown: SnapshotTable, commits: Sequence[str], told: set[str | None]) -> None:
        path = shown.table.path
        if any(one is not None and one.startswith(f"{path}/") for one in told):
            return  # files are missing: who asks gets an error at best
        for index in indexes_of(shown.pinned):
            if index.column is not None and index.covered:
                self._index(shown, index, commits)

    def _index(self, shown: SnapshotTable, index: TableIndex, commits: Sequence[str]) -> None:
        key, what = shown.table.type_key, f"index {index.name} of {index.column}"
        wrong: list[int] = []
        try:
            for asked in _asked(shown.pinned, index, deep=self.deep):
                self.values += asked.values
                wrong += asked.wrong.tolist()
        except StorageError as error:
            text = f"{key}: {what} cannot be asked: {error.message}"
            finding = Finding("index_unreadable", text, shown.table.path, key, index.column)
            self.lineage.report(finding, commits)
            return
        if wrong:
            text = f"{key}: {what} finds other rows than a scan"
            self.lineage.report(
                Finding(
                    "index_disagrees",
                    text,
                    shown.table.path,
                    key,
                    index.column,
                    entities=_ids(shown.pinned, wrong),
                    entity_count=len(set(wrong)),
                ),
                commits,
            )


def _asked(table: Table, index: TableIndex, *, deep: bool) -> Iterator[Asked]:
    if index.kind == "INVERTED":
        return _words(table, index, DEEP_SAMPLE if deep else SAMPLE)
    return scalar_agreement(table, index, deep=deep)


def _words(table: Table, index: TableIndex, count: int) -> Iterator[Asked]:
    """Words of some texts: the rows that the index finds, and those whose texts have them."""
    column = index.column or ""
    words: dict[str, str] = {}
    for text in sampled(table, column, count).to_pylist():
        for word in _WORD.findall(text):
            (term,) = terms_of([word])
            if term and term not in words:
                words[term] = word
                break
    having: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    wanted = pa.array(list(words), pa.string())
    for batch in table.batches([column], with_row_id=True):
        terms = analyze(batch.column(column))
        row_ids = batch.column(ROW_ID).to_numpy().astype(np.int64)
        owners, vocabulary = terms.owners(), terms.vocabulary
        is_wanted = pc.is_in(vocabulary, value_set=wanted)
        for code in pc.indices_nonzero(is_wanted).to_pylist():
            rows = np.unique(owners[terms.codes == code])
            having[vocabulary[code].as_py()].append(row_ids[rows])
    for term, word in words.items():
        hits, _ = text_hits(table, column, word)
        expected = np.concatenate([np.empty(0, np.int64), *having[term]])
        yield Asked(1, np.setxor1d(hits, expected))


def _ids(table: Table, row_ids: Sequence[int]) -> tuple[str, ...]:
    """The ids of some rows that are there."""
    known = sorted({one for one in row_ids if one >= 0})[:SHOWN]
    if not known:
        return ()
    listed = ", ".join(map(str, known))
    rows = table.scanner([ID], f"{ROW_ID} in ({listed})").to_table()
    return tuple(sorted(rows.column(ID).to_pylist()))
