"""The columns and the rows that the storage tests write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from omnigraph.lang.structural import ID
from omnigraph.storage.tables.table import Table

SCHEMA = pa.schema(
    [
        pa.field(ID, pa.string(), nullable=False),
        pa.field("n", pa.int64()),
        pa.field("text", pa.string()),
        pa.field("vector", pa.list_(pa.float32(), 4)),
    ]
)
Rows = Callable[..., pa.Table]


def make_rows(numbers: Iterable[int], *, shift: int = 0) -> pa.Table:
    """Rows `k1`, `k2`, … whose values are the numbers plus a shift."""
    numbers = list(numbers)
    values = [number + shift for number in numbers]
    return pa.table(
        {
            ID: [f"k{number}" for number in numbers],
            "n": values,
            "text": [f"word{value} common" for value in values],
            "vector": [[float(value), 0.0, 0.0, 1.0] for value in values],
        },
        schema=SCHEMA,
    )


def validate(table: Table) -> None:
    """Let Lance check a version: its fragments, its row ids, its deletions."""
    dataset: Any = table.dataset()  # the method has no types
    dataset.validate()
