"""Where keys are read: the columns of some fragments of a table, without the rows left out.

Owns the groups of fragments that tasks take, and lists of rows in files: however many rows are
left out or replaced, who hands them on has a few names. Never says why a row is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.tables.fragments import FragmentPart, stream_parts
from omnigraph.storage.tables.row_address import (
    Addresses,
    distinct_addresses,
    fragments_of,
    rows_of,
)
from omnigraph.storage.tables.table import ROW_ADDRESS, Table

Rows = npt.NDArray[np.int64]

# A task takes fragments of so many rows, or bytes, together: more tasks would make more files,
# larger ones need more memory.
GROUP_ROWS = 1_000_000
GROUP_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class RowList:
    """Rows by address: one slice of a sliced file, or of many whose names are kept in one."""

    area: StagingArea
    file: str
    schema: pa.Schema
    number: int = 0
    of_many: bool = False

    def read(self) -> pa.Table:
        """All columns of the rows, in the order of the files."""
        names = self.area.kept(self.file) if self.of_many else (self.file,)
        slices = self.area.read_slices(names, self.number, self.schema)
        return pa.Table.from_batches([one for one in slices if one is not None], self.schema)

    def addresses(self) -> Addresses:
        """The rows alone, in their order."""
        return distinct_addresses(self.read().column(ROW_ADDRESS).to_numpy())


def addresses_in(lists: Sequence[RowList]) -> Addresses:
    """The rows of several lists, each once and in their order."""
    found = [one.addresses() for one in lists]
    if len(found) < 2:
        return found[0] if found else np.empty(0, dtype=np.uint64)
    return distinct_addresses(np.concatenate(found))


@dataclass(frozen=True, slots=True)
class KeySource:
    """Some fragments of a table, without the rows of some lists."""

    table: Table
    parts: tuple[FragmentPart, ...]
    left_out: tuple[RowList, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are, those left out included."""
        return sum(part.rows for part in self.parts)

    def without(self, lists: Sequence[RowList]) -> KeySource:
        """The same without the rows of more lists."""
        return replace(self, left_out=(*self.left_out, *lists))

    def read(self, columns: Sequence[str], *, with_left_out: bool = False) -> Iterator[pa.Table]:
        """Columns, batch by batch, with the address of every row."""
        gone = np.empty(0, np.uint64) if with_left_out else addresses_in(self.left_out)
        for batch in stream_parts(self.table, (*columns, ROW_ADDRESS), self.parts):
            table = pa.Table.from_batches([batch])
            if len(gone):
                table = table.filter(pa.array(~among(gone, table.column(ROW_ADDRESS))))
            yield table


def among(ordered: Addresses, wanted: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Which addresses are among others that are in their order."""
    asked = wanted.to_numpy().astype(np.uint64, copy=False)
    if not len(ordered):
        return np.zeros(len(asked), dtype=bool)
    places = np.searchsorted(ordered, asked).clip(max=len(ordered) - 1)
    marks: npt.NDArray[np.bool_] = ordered[places] == asked
    return marks


def grouped(table: Table, parts: Sequence[FragmentPart], share: int = 1) -> tuple[KeySource, ...]:
    """Neighbouring fragments together: what one task takes, or the share of several."""
    groups: list[list[FragmentPart]] = []
    rows = size = 0
    for part in parts:
        rows, size = rows + part.rows, size + part.size
        if not groups or rows > GROUP_ROWS // share or size > GROUP_BYTES // share:
            groups.append([])
            rows, size = part.rows, part.size
        groups[-1].append(part)
    return tuple(KeySource(table, tuple(group)) for group in groups)


def rows_in(addresses: Addresses, fragment: int) -> Rows:
    """The rows of one fragment among addresses."""
    return rows_of(addresses[fragments_of(addresses) == fragment])


def rows_at(source: KeySource, addresses: Addresses, columns: Sequence[str]) -> pa.Table:
    """Columns of the rows of a source at these addresses, in the order of the addresses."""
    wanted = set(np.unique(fragments_of(addresses)).tolist())
    parts = tuple(part for part in source.parts if part.number in wanted)
    if not parts:
        return source.table.schema.empty_table().select(list(columns))
    ordered = np.sort(addresses)
    table = pa.concat_tables(
        rows.filter(pa.array(among(ordered, rows.column(ROW_ADDRESS))))
        for rows in KeySource(source.table, parts).read(columns)
    )
    own = table.column(ROW_ADDRESS).to_numpy()
    order = np.argsort(own)
    return table.take(pa.array(order[np.searchsorted(own[order], addresses)]))
