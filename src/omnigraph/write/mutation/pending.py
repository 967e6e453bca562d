"""Pending rows: what the statements of a mutation have done to one type so far.

Owns the overlay that later statements read: rows that are written, stored rows that these
replace, stored rows that go. Never looks at what is stored.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.fill import Marks, embedded_properties, fill_vectors
from omnigraph.embed.protocol import Embedder
from omnigraph.lang.structural import ID
from omnigraph.storage.budget import need, took
from omnigraph.write.change.change_set import (
    EntityType,
    TypeChange,
    among,
    no_located,
    row_columns,
    without,
)
from omnigraph.write.mutation.emptied import LeftOut
from omnigraph.write.rules.row_rules import check_required
from omnigraph.write.rules.violations import NoSource, Violations


class Pending:
    """What has happened to one type so far.

    ``existing`` are the stored rows behind some of ``rows``, ``deleted`` those behind none.
    """

    def __init__(self, type_: EntityType) -> None:
        self.type = type_
        self.rows = row_columns(type_).empty_table()
        self.existing = no_located(type_)
        self.deleted = no_located(type_)
        # The ids of the rows whose vectors may be computed. A row that is written for another
        # reason keeps its vector, and its lack of one.
        self._to_embed: dict[str, list[pa.Array]] = {
            name: [] for name in embedded_properties(type_)
        }
        self.left_out = LeftOut()
        self._revived: list[pa.ChunkedArray] = []

    @property
    def touched(self) -> pa.ChunkedArray:
        """The ids that something is known of: whoever has one need not be looked for."""
        return _ids([self.rows.column(ID), self.deleted.column(ID)])

    def untouched(self, stored: pa.Table) -> pa.Table:
        """Of stored rows, those that no statement has changed or deleted."""
        return without(stored, self.touched)

    @property
    def stored(self) -> pa.ChunkedArray:
        """The ids of the stored rows that have been there all the time, in whatever image."""
        return without(self.existing, _ids(self._revived)).column(ID)

    def put(self, rows: pa.Table, located: pa.Table) -> None:
        """Rows that are inserted or replaced, and the stored rows behind them."""
        ids = rows.column(ID)
        revived = among(self.deleted, ids)
        self.deleted = without(self.deleted, ids)
        self.existing = _joined(_joined(self.existing, revived), located)
        if revived.num_rows:
            self._revived.append(revived.column(ID))
        joined = pa.concat_tables([without(self.rows, ids), rows])
        # Joined in one piece, they are there twice for a moment.
        need(joined.nbytes)
        self.rows = took(joined.combine_chunks())

    def delete(self, stored: pa.Table, ids: pa.Array | pa.ChunkedArray) -> None:
        """Stored rows go that were untouched, and of the pending rows those with these ids."""
        self.deleted = _joined(_joined(self.deleted, stored), among(self.existing, ids))
        self.existing = without(self.existing, ids)
        self.rows = without(self.rows, ids)

    def embed_later(self, name: str, ids: pa.Array | pa.ChunkedArray) -> None:
        """Have a vector of these rows computed, should it still be empty in the end."""
        self._to_embed[name].append(ids)

    def check_required(self, violations: Violations) -> None:
        """Before vectors are computed and paid for: is anything else missing?"""
        check_required(self.type, self.rows, violations, NoSource(), before_embedding=True)

    def change(self, embedder: Embedder) -> TypeChange:
        """The final image."""
        marks = {name: self._marked(ids) for name, ids in self._to_embed.items()}
        self.rows = took(fill_vectors(self.rows, self.type, embedder, marks))
        return TypeChange(self.type, self.rows, self.existing, self.deleted)

    def _marked(self, ids: list[pa.Array]) -> Marks:
        marks: Marks = pc.is_in(
            self.rows.column(ID), value_set=_ids(ids).combine_chunks()
        ).to_numpy()
        return marks


def _joined(first: pa.Table, second: pa.Table) -> pa.Table:
    if not second.num_rows:
        return first  # many statements must not leave many empty chunks
    return pa.concat_tables([first, second.select(first.column_names).cast(first.schema)])


def _ids(parts: list[pa.Array | pa.ChunkedArray]) -> pa.ChunkedArray:
    chunks = [
        chunk
        for part in parts
        for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])
    ]
    return pa.chunked_array(chunks, pa.string())
