from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph.rows.text_positions as text_index_module
from omnigraph.rows.hashing import Hashes, hash_texts
from omnigraph.rows.text_positions import positions_by_text


@given(st.lists(st.text(max_size=200), unique=True, max_size=60), st.randoms(use_true_random=False))
def test_every_text_is_found_at_its_position(texts: list[str], random: Random) -> None:
    positions = np.arange(len(texts), dtype=np.int64)[::-1] * 3
    asked = [text for text in texts for _ in range(2)]
    random.shuffle(asked)

    found = positions_by_text(pa.array(texts, pa.string()), positions).of(
        pa.array(asked, pa.string())
    )

    known = dict(zip(texts, positions.tolist(), strict=True))
    assert found.tolist() == [known[text] for text in asked]


@pytest.mark.parametrize("pattern", ["person-{}", "{}", "{:012d}", "a{0}b{0}c{0}", "{:x}-é"])
def test_numbered_texts_have_hashes_of_their_own(pattern: str) -> None:
    texts = pa.array([pattern.format(number) for number in range(50_000)])

    hashes = hash_texts(texts)

    assert len(np.unique(hashes)) == len(texts)
    # The low bits choose the slot: of a million slots, chance lets few be wanted twice.
    assert len(np.unique(hashes & np.uint64(0xFFFFF))) > 48_000


def test_texts_that_share_a_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def poor(texts: pa.Array) -> Hashes:
        return hash_texts(texts) & np.uint64(7)

    monkeypatch.setattr(text_index_module, "hash_texts", poor)
    texts = pa.array([f"text {number}" for number in range(100)])
    known = positions_by_text(texts, np.arange(100))

    assert known.slots is None
    assert known.of(pa.array(["text 70", "text 3"])).tolist() == [70, 3]


def test_a_position_beyond_32_bits_is_kept() -> None:
    positions = np.array([5, 1 << 40])

    assert positions_by_text(pa.array(["a", "b"]), positions).of(pa.array(["b"])).tolist() == [
        1 << 40
    ]


@pytest.mark.parametrize("poor", [False, True])
def test_a_text_that_is_not_there_is_a_broken_promise(
    poor: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if poor:
        monkeypatch.setattr(text_index_module, "hash_texts", _all_alike)
    known = positions_by_text(pa.array(["a", "b"]), np.array([0, 1]))

    with pytest.raises(AssertionError, match="not in the column"):
        known.of(pa.array(["c"]))


def test_a_hash_does_not_depend_on_the_neighbours() -> None:
    texts = ["", "a", "abcdefgh", "abcdefghi", "x" * 63, "x" * 64, "x" * 65, "y" * 300]

    alone = [int(hash_texts(pa.array([text]))[0]) for text in texts]

    assert hash_texts(pa.array(texts)).tolist() == alone
    assert hash_texts(pa.array(texts, pa.large_string())).tolist() == alone
    assert hash_texts(pa.array(["zz", *texts]).slice(1)).tolist() == alone


def _all_alike(texts: pa.Array, **_: object) -> Hashes:
    return np.zeros(len(texts), dtype=np.uint64)


def test_a_whole_hash_sees_the_middle_of_a_long_text() -> None:
    texts = pa.array(["a" * 100 + letter + "b" * 100 for letter in "xyz"])

    assert len(np.unique(hash_texts(texts))) == 1
    assert len(np.unique(hash_texts(texts, whole=True))) == 3
    assert not (hash_texts(texts, whole=True) == hash_texts(texts, salt=1, whole=True)).any()
