"""Key columns: the texts that rules compare, read from fragments of a table.

Owns which columns make a key and how it is written as one text. Rows that have been left out
are no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.types import Scalar
from omnigraph.storage.tables.fragments import FragmentPart, stream_parts
from omnigraph.storage.tables.row_address import fragments_of, rows_of
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table
from omnigraph.write.change.row_ids import canonical_texts, joined_texts
from omnigraph.write.change.type_batch import EntityType

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class KeyPositions:
    """Rows of a table by address: the number of the fragment, and the row in it."""

    fragments: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where keys are read: some fragments of a table, without the rows left out of them.

    ``left_out`` has the rows by the number of their fragment. Rows without weight are found
    and not counted.
    """

    table: Table
    parts: tuple[FragmentPart, ...]
    left_out: Mapping[int, Rows] = field(default_factory=dict)
    weight: int = 1

    @property
    def rows(self) -> int:
        """How many rows there are, those left out included."""
        return sum(part.rows for part in self.parts)

    def each(self) -> Iterator[KeySource]:
        """The same source, fragment by fragment."""
        for part in self.parts:
            kept = {n: rows for n, rows in self.left_out.items() if n == part.number}
            yield KeySource(self.table, (part,), kept)

    def read(self, columns: tuple[str, ...], *, with_row_id: bool = False) -> Iterator[pa.Table]:
        """Columns, batch by batch, with the address of every row."""
        extra = (ROW_ADDRESS, ROW_ID) if with_row_id else (ROW_ADDRESS,)
        for batch in stream_parts(self.table, (*columns, *extra), self.parts):
            table = pa.Table.from_batches([batch])
            yield table.filter(self._kept(table)) if self.left_out else table

    def _kept(self, table: pa.Table) -> pa.Array:
        places = places_of(table.column(ROW_ADDRESS))
        kept = np.ones(table.num_rows, dtype=bool)
        for fragment, rows in self.left_out.items():
            kept &= ~((places.fragments == fragment) & np.isin(places.rows, rows))
        return pa.array(kept)


def places_of(addresses: pa.ChunkedArray) -> KeyPositions:
    """The fragment and the row that addresses mean."""
    numbers = addresses.to_numpy().astype(np.uint64)
    return KeyPositions(fragments_of(numbers).astype(np.int32), rows_of(numbers).astype(np.int32))


def key_texts(type_: EntityType, members: tuple[str, ...], rows: pa.Table) -> pa.Array:
    """The keys of rows as texts, equal only for equal keys; null where a member is null."""
    return joined_texts([member_texts(type_, member, rows) for member in members])


def member_texts(type_: EntityType, member: str, rows: pa.Table) -> pa.Array:
    """The values of one member as texts."""
    property_ = type_.properties.get(member)
    scalar = property_.type.scalar if property_ is not None else Scalar.STRING
    return _combined(canonical_texts(rows.column(member), scalar))


def _combined(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pc.cast(column, pa.string()).combine_chunks()
