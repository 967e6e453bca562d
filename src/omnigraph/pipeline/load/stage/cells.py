"""Cells: the rows of a block with values of the types they are stored as.

Owns turning the text of CSV into values, and leaving out the rows where that fails. Parquet
has values already.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.pipeline.input.table_blocks import TableBlock
from omnigraph.write.change.type_batch import EntityType, type_key
from omnigraph.write.load.columns.csv_cells import misfit_text, parse_texts
from omnigraph.write.rules.violations import SourceLocation, Violation


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Rows with typed values, the number of each in its block, and what became of the others."""

    table: pa.Table
    numbers: npt.NDArray[np.int64]
    violations: list[Violation] = field(default_factory=list)


def typed_rows(name: str, type_: EntityType, block: TableBlock) -> TypedRows:
    """The rows of a block that have values at all."""
    numbers = block.row_numbers() - block.first_row
    if block.records is None:
        return TypedRows(block.table, numbers)
    violations = [
        Violation(
            "format",
            found.message,
            type_key(type_),
            place=SourceLocation(name, found.row - block.first_row + 1),
        )
        for found in block.malformed
    ]
    table = block.table
    bad: dict[int, Violation] = {}
    for at, column in enumerate(table.column_names):
        if column not in type_.properties:
            continue
        kind = type_.properties[column].type
        texts = table.column(at).combine_chunks()
        values, wrong = parse_texts(kind, texts)
        for row in np.flatnonzero(wrong).tolist():
            said = f"{type_.name}.{column}: {misfit_text(kind, texts[row].as_py())}"
            place = SourceLocation(name, int(numbers[row]) + 1)
            bad.setdefault(row, Violation("type", said, type_key(type_), column, place=place))
        table = table.set_column(at, column, values)
    if bad:
        kept = np.delete(np.arange(table.num_rows), list(bad))
        table, numbers = table.take(pa.array(kept)), numbers[kept]
    return TypedRows(table, numbers, [*violations, *bad.values()])
