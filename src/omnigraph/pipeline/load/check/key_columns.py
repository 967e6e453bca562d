"""Key columns: what rules compare, read from fragments of a table.

Owns reading them batch by batch with the address of every row. Rows that have been left out
are no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.storage.tables.fragments import FragmentPart, stream_parts
from omnigraph.storage.tables.row_address import fragments_of
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table

Rows = npt.NDArray[np.int64]
Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where keys are read: some fragments of a table, without the rows left out of them.

    ``left_out`` has the addresses of those rows in order. Rows without weight are found and not
    counted.
    """

    table: Table
    parts: tuple[FragmentPart, ...]
    left_out: Addresses = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    weight: int = 1

    @property
    def rows(self) -> int:
        """How many rows there are, those left out included."""
        return sum(part.rows for part in self.parts)

    def each(self) -> Iterator[KeySource]:
        """The same source, fragment by fragment."""
        for part in self.parts:
            own = fragments_of(self.left_out) == part.number
            yield KeySource(self.table, (part,), self.left_out[own])

    def read(self, columns: tuple[str, ...], *, with_row_id: bool = False) -> Iterator[pa.Table]:
        """Columns, batch by batch, with the address of every row."""
        extra = (ROW_ADDRESS, ROW_ID) if with_row_id else (ROW_ADDRESS,)
        for batch in stream_parts(self.table, (*columns, *extra), self.parts):
            table = pa.Table.from_batches([batch])
            if len(self.left_out):
                table = table.filter(pa.array(~self.leaves_out(table.column(ROW_ADDRESS))))
            yield table

    def leaves_out(self, addresses: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Which rows are none of the source's any more."""
        wanted = addresses.to_numpy().astype(np.uint64)
        if not len(self.left_out):
            return np.zeros(len(wanted), dtype=bool)
        places = np.searchsorted(self.left_out, wanted).clip(max=len(self.left_out) - 1)
        marks: npt.NDArray[np.bool_] = self.left_out[places] == wanted
        return marks
