"""Hashes of texts: equal texts hash alike, whatever array they stand in, and others do not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.rows.hashing import hash_texts

TEXTS = st.lists(st.one_of(st.text(), st.text(alphabet="ab\0", min_size=60, max_size=200)))


@given(TEXTS)
def test_a_text_hashes_alike_wherever_it_stands(texts: list[str]) -> None:
    alone = [int(hash_texts(pa.array([text]))[0]) for text in texts]
    assert hash_texts(pa.array(texts, pa.string())).tolist() == alone
    assert hash_texts(pa.array(texts, pa.large_string())).tolist() == alone
    padded = pa.array(["x", *texts, "yy"], pa.string()).slice(1, len(texts))
    assert hash_texts(padded).tolist() == alone
    chunked = pa.chunked_array([pa.array([text]) for text in texts], pa.string())
    assert hash_texts(chunked).tolist() == alone


@given(st.lists(st.text(max_size=40), unique=True))
def test_short_texts_that_differ_hash_differently(texts: list[str]) -> None:
    assert len(set(hash_texts(pa.array(texts, pa.string())).tolist())) == len(texts)


def test_a_null_counts_as_the_empty_text() -> None:
    hashes = hash_texts(pa.array([None, "", "a", None], pa.string()))
    assert hashes[0] == hashes[1] == hashes[3] != hashes[2]


def test_nothing_has_no_hashes() -> None:
    assert hash_texts(pa.array([], pa.string())).dtype == np.uint64
    assert len(hash_texts(pa.chunked_array([], pa.string()))) == 0
    assert len(hash_texts(pa.array([""], pa.string()).slice(1))) == 0


def test_zero_bytes_at_the_end_count() -> None:
    texts = ["a", "a\0", "a\0\0", "\0", "\0\0", "a" * 8, "a" * 8 + "\0"]
    assert len(set(hash_texts(pa.array(texts)).tolist())) == len(texts)


def test_texts_of_one_prefix_or_suffix_differ() -> None:
    """Ids are often made of a long common part and a number."""
    count = 50_000
    for pattern in ("https://example.org/a/long/common/prefix/{}", "{}" + "x" * 300, "id-{:026}"):
        texts = pa.array([pattern.format(number) for number in range(count)])
        assert len(np.unique(hash_texts(texts))) == count


def test_the_middle_of_a_long_text_is_not_looked_at() -> None:
    texts = pa.array(["a" * 100 + "b" + "a" * 100, "a" * 100 + "c" + "a" * 100])
    first, second = hash_texts(texts)
    assert first == second  # a map only ever says "maybe"
