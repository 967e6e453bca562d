"""Search in storage: the rows that a text index finds, and those whose vectors are nearest.

Owns asking Lance, through an index where there is one. Rows that the index does not cover are
found as well; rows without a vector never are. A text query is words, never a language: nothing
in it is an operator.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from omnigraph.rows.sql_conditions import Condition, SqlCondition
from omnigraph.storage.indexes.build import REFINE, probes
from omnigraph.storage.indexes.table_indexes import text_index, vector_index
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import ROW_ID, Table

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

Hits = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
METRIC = "cosine"
_SCORE = "_score"
_DISTANCE = "_distance"


@lru_cache(maxsize=1024)
def has_text_index(table: Table, column: str) -> bool:
    """Whether a pinned version has an index of a column's words."""
    found = text_index(table, column)
    # A phrase needs to know where words stand.
    return found is not None and found.with_position


@lru_cache(maxsize=1024)
def has_vector_index(table: Table, column: str) -> bool:
    """Whether a pinned version has an index of a column's vectors, by cosine distance."""
    found = vector_index(table, column)
    return found is not None and found.metric == METRIC


@lru_cache(maxsize=1024)
def covers_every_row(table: Table, column: str) -> bool:
    """Whether no row was written since the index of a column's words was built.

    A row that was is scored by what the rows beside it say: other scores among other rows.
    """
    found = text_index(table, column)
    return found is not None and not found.uncovered


@lru_cache(maxsize=1024)
def is_rough(table: Table, column: str) -> bool:
    """Whether the index of a column's vectors keeps a few bits per number of them."""
    found = vector_index(table, column)
    return found is not None and found.kind != "IVF_FLAT"


def text_hits(
    table: Table,
    column: str,
    query: str,
    *,
    is_phrase: bool = False,
    limit: int | None = None,
    among: npt.NDArray[np.int64] | Condition | None = None,
) -> Hits:
    """The row ids of the rows that have any of the words, or all of them as a phrase.

    With their scores, the best first; a ``limit`` cuts anywhere among equal scores.
    ``among`` are the row ids of a few rows, or a condition, when no others matter.
    """
    from lance.query import MatchQuery, PhraseQuery

    stored = table.columns.of(column)
    asked = PhraseQuery(query, stored) if is_phrase else MatchQuery(query, stored)
    where: pc.Expression | str | None
    if isinstance(among, np.ndarray):
        # Numbers of our own.
        where = f"{ROW_ID} in ({', '.join(map(str, among.tolist()))})"
    elif isinstance(among, SqlCondition):
        where = among.text
    else:
        where = among
    row_ids, scores = _scanned(
        table,
        column,
        _SCORE,
        full_text_query=asked,
        filter=where,
        prefilter=True,
        limit=table.pin.row_count if limit is None else limit,
    )
    order = np.lexsort([row_ids, -scores])
    return row_ids[order], scores[order]


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
    stored = table.columns.of(column)
    asked: dict[str, Any] = {"column": stored, "q": query, "k": count, "metric": METRIC}
    if has_vector_index(table, column):
        asked["nprobes"] = probes(table.pin.row_count, depth)
        if refined and is_rough(table, column):
            asked["refine_factor"] = REFINE
    row_ids, distances = _scanned(table, column, _DISTANCE, nearest=asked)
    order = np.lexsort([row_ids, distances])
    return row_ids[order], distances[order]


def _scanned(table: Table, column: str, score: str, **asked: Any) -> Hits:
    """The row ids that a scan finds, with what it says of each."""
    with storage_errors(f"searching {column!r} of {table.location}"):
        scanner = table.dataset().scanner(
            columns=[score], with_row_id=True, disable_scoring_autoprojection=True, **asked
        )
        found: pa.Table = scanner.to_table()
    row_ids = found.column(ROW_ID).to_numpy().astype(np.int64)
    return row_ids, found.column(score).to_numpy().astype(np.float64)
