"""References by the column: the ends of edges that may be of several types.

Owns making them of ids, and ids of them. What they mean is said where their text is.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.references import COLON

_TYPE = "^[0-9]*:"


def referring(ids: pa.Array | pa.ChunkedArray, type_id: int) -> pa.Array:
    """What edges call the nodes of a type."""
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    return pc.binary_join_element_wise(pa.scalar(str(type_id)), ids, COLON)


def nodes_of(references: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The ids of the nodes; null stays null."""
    return pc.replace_substring_regex(references, pattern=_TYPE, replacement="", max_replacements=1)


def are_of(references: pa.Array, type_id: int) -> npt.NDArray[np.bool_]:
    """Which of them are nodes of a type; a null is none."""
    marks = pc.starts_with(references, f"{type_id}{COLON}")
    mask: npt.NDArray[np.bool_] = pc.fill_null(marks, fill_value=False).to_numpy(
        zero_copy_only=False
    )
    return mask


def types_of(
    references: pa.Array | pa.ChunkedArray, names: Iterable[tuple[int, str]]
) -> pa.Array | pa.ChunkedArray:
    """The names of their types; null for one that is not among them."""
    known = list(names)
    ids = pc.list_element(pc.split_pattern(references, COLON, max_splits=1), 0)
    at = pc.index_in(ids, value_set=pa.array([str(type_id) for type_id, _ in known], pa.string()))
    return pa.array([name for _, name in known], pa.string()).take(at)
