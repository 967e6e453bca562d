"""Cutting keys: equal ones together and in their own order, whatever their hashes are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.pipeline.load.check import cuts
from omnigraph.rows.hashing import Hashes, hash_texts

HASHES: dict[str, Callable[[pa.Array], Hashes]] = {
    "own": lambda keys: hash_texts(keys, whole=True),
    "equal": lambda keys: np.zeros(len(keys), dtype=np.uint64),
    "few": lambda keys: (hash_texts(keys, whole=True) % np.uint64(3)) << np.uint64(62),
    "alike but for the end": lambda keys: hash_texts(keys, whole=True) % np.uint64(5),
}
KEYS = st.lists(
    st.sampled_from(["", "a", "b", "ab", "ba", "\u00e9", "x" * 40, "y" * 40]), min_size=1
)


@pytest.mark.parametrize("hashes", HASHES)
@pytest.mark.parametrize("ranges", [1, 3, 40])
@given(keys=KEYS)
def test_equal_keys_come_together(hashes: str, ranges: int, keys: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuts, "hash_keys", HASHES[hashes])
        order, starts, numbers = cuts.ordered(pa.array(keys), ranges)
        own = cuts.range_of(HASHES[hashes](pa.array(keys)), ranges)
    assert sorted(order.tolist()) == list(range(len(keys)))
    groups = [part.tolist() for part in np.split(order, starts[1:])]
    assert sorted(groups) == sorted(
        [at for at, key in enumerate(keys) if key == one] for one in set(keys)
    )
    assert numbers.tolist() == sorted(numbers.tolist()) == own[order].tolist()
    assert set(numbers.tolist()) <= set(range(ranges))
