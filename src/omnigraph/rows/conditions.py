"""Conditions over whole columns: true, false, or null where they are unknown.

Owns membership, tests of texts, and how truths are joined. Never looks at more than columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.arrow_types import SCALARS
from omnigraph.rows.comparisons import compare
from omnigraph.rows.constants import equal_values

Operand: TypeAlias = pa.Array | pa.Scalar
Mask = npt.NDArray[np.bool_]
# So many pairs of texts are compared between two looks.
PAIRS_AT_ONCE = 65_536
_SCALARS_OF = {type_: scalar for scalar, type_ in SCALARS.items()}
UNKNOWN = pa.scalar(None, pa.bool_())


def mask_of(found: Operand, count: int) -> Mask:
    """A mask in which unknown is false."""
    if isinstance(found, pa.Scalar):
        return np.full(count, found.as_py() is True)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    mask: Mask = found.fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - pyarrow's own signature
    return mask


def all_of(truths: Sequence[Operand]) -> Operand:
    """False where one is, else unknown where one is."""
    return reduce(pc.and_kleene, truths)


def any_of(truths: Sequence[Operand]) -> Operand:
    """True where one is, else unknown where one is."""
    return reduce(pc.or_kleene, truths)


def repeated(value: pa.Scalar, count: int) -> pa.Array:
    """A scalar for every row."""
    # Arrow cannot repeat a list no times.
    return pa.repeat(value, count) if value.is_valid and count else pa.nulls(count, value.type)


def in_constants(values: Operand, listed: Any) -> Operand:
    """Whether each value equals one of some constants; a list that is null is unknown."""
    if not isinstance(listed, tuple):
        return UNKNOWN
    scalar = _SCALARS_OF[values.type]
    wanted = equal_values([one for one in listed if one is not None], scalar)
    if isinstance(values, pa.Scalar):
        values = repeated(values, 1)
        return pc.if_else(pc.is_valid(values), pc.is_in(values, value_set=wanted), UNKNOWN)[0]
    found = pc.is_in(values, value_set=wanted)
    return pc.if_else(pc.is_valid(values), found, UNKNOWN) if values.null_count else found


def in_lists(wanted: Operand, lists: pa.Array) -> pa.Array:
    """Whether each list has a value; null where either is."""
    parents = pc.list_parent_indices(lists)
    sought = wanted.take(parents) if isinstance(wanted, pa.Array) else wanted
    hits = mask_of(compare(pc.list_flatten(lists), "=", sought), len(parents))
    mask = np.zeros(len(lists), dtype=bool)
    mask[parents.to_numpy()[hits]] = True
    known = pc.and_(pc.is_valid(lists), pc.is_valid(wanted))
    return pc.if_else(known, pa.array(mask), UNKNOWN)


_TESTS: dict[str, tuple[Callable[..., Operand], Callable[[str, str], bool]]] = {
    "contains": (pc.match_substring, str.__contains__),
    "starts": (pc.starts_with, str.startswith),
    "ends": (pc.ends_with, str.endswith),
}


def text_test(test: str, texts: Operand, wanted: Operand, look: Callable[[], None]) -> Operand:
    """Whether each text contains, starts or ends with another."""
    at_once, one_by_one = _TESTS[test]
    if isinstance(wanted, pa.Scalar):
        if not wanted.is_valid:
            return UNKNOWN
        return at_once(texts, wanted.as_py())
    # A pattern for each row: Arrow has no such function, so pair by pair.
    count = len(wanted)
    if isinstance(texts, pa.Scalar):
        texts = repeated(texts, count)
    known = pc.and_(pc.is_valid(texts), pc.is_valid(wanted))
    valid: Mask = known.to_numpy(zero_copy_only=False)
    found = np.zeros(count, dtype=bool)
    for start in range(0, count, PAIRS_AT_ONCE):
        look()
        some = known.slice(start, PAIRS_AT_ONCE)
        pairs = (
            each.slice(start, PAIRS_AT_ONCE).filter(some).to_pylist() for each in (texts, wanted)
        )
        hits = np.fromiter(map(one_by_one, *pairs), dtype=bool)
        found[start + np.flatnonzero(valid[start : start + PAIRS_AT_ONCE])[hits]] = True
    return pa.array(found, mask=~valid)
