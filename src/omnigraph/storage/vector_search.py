"""Vector search in storage: the rows whose vectors are nearest, by cosine distance.

Owns asking Lance, through an index where there is one. Rows that the index does not
cover are found as well; rows without a vector never are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from omnigraph.storage.failures import storage_errors
from omnigraph.storage.indexes import indexes_of
from omnigraph.storage.table import ROW_ID, Table

if TYPE_CHECKING:
    import pyarrow as pa

Hits = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
_DISTANCE = "_distance"


@lru_cache(maxsize=1024)
def has_vector_index(table: Table, column: str) -> bool:
    """Whether a pinned version has an index of a column's vectors."""
    return any(
        found.column == column and found.kind.upper().startswith("IVF")
        for found in indexes_of(table)
    )


def nearest_hits(
    table: Table, column: str, query: npt.NDArray[np.float32], count: int, *, use_index: bool = True
) -> Hits:
    """The row ids of so many rows, the nearest first, with their distances."""
    with storage_errors(f"searching {column!r} of {table.location}"):
        found: pa.Table = (
            table.dataset()
            .scanner(
                columns=[_DISTANCE],
                nearest={
                    "column": column,
                    "q": query,
                    "k": count,
                    "metric": "cosine",
                    "use_index": use_index,
                },
                with_row_id=True,
                disable_scoring_autoprojection=True,
            )
            .to_table()
        )
    row_ids = found.column(ROW_ID).to_numpy().astype(np.int64)
    distances = found.column(_DISTANCE).to_numpy().astype(np.float64)
    order = np.lexsort([row_ids, distances])
    return row_ids[order], distances[order]
