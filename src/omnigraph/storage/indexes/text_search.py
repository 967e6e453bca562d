"""Text search in storage: the rows that a text index finds, with their scores.

Owns asking Lance. Rows that the index does not cover are found as well. A query is
words, never a language: nothing in it is an operator.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from omnigraph.rows.sql_conditions import Condition, SqlCondition
from omnigraph.storage.indexes.table_indexes import text_index
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import ROW_ID, Table

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

Hits = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
_SCORE = "_score"


@lru_cache(maxsize=1024)
def has_text_index(table: Table, column: str) -> bool:
    """Whether a pinned version has an index of a column's words."""
    found = text_index(table, column)
    # A phrase needs to know where words stand.
    return found is not None and found.with_position


@lru_cache(maxsize=1024)
def covers_every_row(table: Table, column: str) -> bool:
    """Whether no row was written since the index of a column's words was built.

    A row that was is scored by what the rows beside it say: other scores among other rows.
    """
    found = text_index(table, column)
    return found is not None and not found.uncovered


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

    asked = PhraseQuery(query, column) if is_phrase else MatchQuery(query, column)
    where: pc.Expression | str | None
    if isinstance(among, np.ndarray):
        # Numbers of our own.
        where = f"{ROW_ID} in ({', '.join(map(str, among.tolist()))})"
    elif isinstance(among, SqlCondition):
        where = among.text
    else:
        where = among
    with storage_errors(f"searching {column!r} of {table.location}"):
        found: pa.Table = (
            table.dataset()
            .scanner(
                columns=[_SCORE],
                full_text_query=asked,
                filter=where,
                prefilter=True,
                with_row_id=True,
                limit=table.pin.row_count if limit is None else limit,
                disable_scoring_autoprojection=True,
            )
            .to_table()
        )
    row_ids = found.column(ROW_ID).to_numpy().astype(np.int64)
    scores = found.column(_SCORE).to_numpy().astype(np.float64)
    order = np.lexsort([row_ids, -scores])
    return row_ids[order], scores[order]
