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
from omnigraph.storage.indexes.vector_index import search_parameters
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


def nearest_hits(
    table: Table,
    column: str,
    query: npt.NDArray[np.float32],
    count: int,
    *,
    depth: int | None = None,
) -> Hits:
    """The row ids of so many rows, the nearest first, with their distances.

    With ``depth`` hardly one of so many of the nearest is missed, but of a large table the
    distances are rough.
    """
    asked: dict[str, Any] = {
        "column": column,
        "q": query,
        "k": count,
        "metric": METRIC,
    }
    if has_vector_index(table, column):
        parameters = search_parameters(table.pin.row_count, depth or count)
        asked["nprobes"] = parameters.nprobes
        if parameters.refine_factor is not None and depth is None:
            asked["refine_factor"] = parameters.refine_factor
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
