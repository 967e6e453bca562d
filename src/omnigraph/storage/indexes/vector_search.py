"""Vector search in storage: the rows whose vectors are nearest, by cosine distance.

Owns asking Lance, through an index where there is one. Rows that the index does not
cover are found as well; rows without a vector never are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from omnigraph.storage.indexes.table_indexes import vector_index
from omnigraph.storage.indexes.vector_index import REFINE, probes
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import ROW_ID, Table

if TYPE_CHECKING:
    import pyarrow as pa

Hits = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
METRIC = "cosine"
_DISTANCE = "_distance"


@lru_cache(maxsize=1024)
def has_vector_index(table: Table, column: str) -> bool:
    """Whether a pinned version has an index of a column's vectors, by cosine distance."""
    found = vector_index(table, column)
    return found is not None and found.metric == METRIC


@lru_cache(maxsize=1024)
def is_rough(table: Table, column: str) -> bool:
    """Whether the index of a column's vectors keeps a few bits per number of them."""
    found = vector_index(table, column)
    return found is not None and found.kind != "IVF_FLAT"


def nearest_hits(
    table: Table,
    column: str,
    query: npt.NDArray[np.float32],
    count: int,
    *,
    depth: int,
    refined: bool = True,
) -> Hits:
    """The row ids of so many rows, the nearest first, with their distances.

    Hardly one of ``depth`` of the nearest is missed. What a rough index says about distances
    is compared with the vectors themselves unless it need not be ``refined``.
    """
    asked: dict[str, Any] = {
        "column": column,
        "q": query,
        "k": count,
        "metric": METRIC,
    }
    if has_vector_index(table, column):
        asked["nprobes"] = probes(table.pin.row_count, depth)
        if refined and is_rough(table, column):
            asked["refine_factor"] = REFINE
    with storage_errors(f"searching {column!r} of {table.location}"):
        found: pa.Table = (
            table.dataset()
            .scanner(
                columns=[_DISTANCE],
                nearest=asked,
                with_row_id=True,
                disable_scoring_autoprojection=True,
            )
            .to_table()
        )
    row_ids = found.column(ROW_ID).to_numpy().astype(np.int64)
    distances = found.column(_DISTANCE).to_numpy().astype(np.float64)
    order = np.lexsort([row_ids, distances])
    return row_ids[order], distances[order]
