"""A text is paid for once: within a call, and in the next run if vectors are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from omnigraph.embed.cache import CachingEmbedder, VectorStore
from omnigraph.embed.local import MockEmbedder
from omnigraph.embed.protocol import Role, Texts, Vectors, text_array
from omnigraph.errors import StorageError


@dataclass
class Paid:
    """A provider that remembers what it was asked; it fails after ``limit`` calls."""

    model: str = "m"
    limit: int = 1000
    calls: list[list[str]] = field(default_factory=list)

    @property
    def provider(self) -> str:
        return "paid"

    def embed(self, texts: Texts, dimension: int, role: Role = "document") -> Vectors:
        if len(self.calls) == self.limit:
            raise ConnectionError
        self.calls.append(text_array(texts).to_pylist())
        return MockEmbedder().embed([f"{role} {text}" for text in self.calls[-1]], dimension)


def expected(texts: list[str], dimension: int, role: Role = "document") -> Vectors:
    return Paid().embed(texts, dimension, role)


def test_equal_texts_are_asked_for_once() -> None:
    paid = Paid()
    texts = ["a", "b", "a", "c", "b"]
    assert np.array_equal(CachingEmbedder(paid).embed(texts, 8), expected(texts, 8))
    assert paid.calls == [["a", "b", "c"]]


def test_without_a_store_nothing_is_kept() -> None:
    paid = Paid()
    for _ in range(2):
        CachingEmbedder(paid).embed(["a"], 8)
    assert paid.calls == [["a"], ["a"]]


def test_a_second_run_asks_for_what_is_new(tmp_path: Path) -> None:
    store = VectorStore(str(tmp_path / "vectors"))
    CachingEmbedder(Paid(), store).embed(["a", "b"], 8)
    paid = Paid()
    texts = ["c", "b", "a", "é"]
    assert np.array_equal(CachingEmbedder(paid, store).embed(texts, 8), expected(texts, 8))
    assert paid.calls == [["c", "é"]]
    paid.calls.clear()
    assert np.array_equal(CachingEmbedder(paid, store).embed(texts, 8), expected(texts, 8))
    assert paid.calls == []


def test_other_models_dimensions_and_roles_are_other_vectors(tmp_path: Path) -> None:
    store = VectorStore(str(tmp_path))
    CachingEmbedder(Paid(), store).embed(["a"], 8)
    paid, other = Paid(), Paid("other")
    assert np.array_equal(CachingEmbedder(paid, store).embed(["a"], 4), expected(["a"], 4))
    asked = CachingEmbedder(paid, store).embed(["a"], 8, "query")
    assert np.array_equal(asked, expected(["a"], 8, "query"))
    CachingEmbedder(other, store).embed(["a"], 8)
    assert paid.calls == [["a"], ["a"]]
    assert other.calls == [["a"]]


def test_what_was_paid_before_a_failure_is_kept(tmp_path: Path) -> None:
    store = VectorStore(str(tmp_path))
    texts = [f"text {n}" for n in range(600)]
    failing = Paid(limit=2)
    with pytest.raises(ConnectionError):
        CachingEmbedder(failing, store).embed(texts, 4)
    paid = Paid()
    assert np.array_equal(CachingEmbedder(paid, store).embed(texts, 4), expected(texts, 4))
    done = sum(map(len, failing.calls))
    assert 0 < done < len(texts)
    assert [text for call in paid.calls for text in call] == texts[done:]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    store = VectorStore(str(tmp_path))
    CachingEmbedder(Paid(), store).embed(["a"], 8)
    (kept,) = tmp_path.rglob("*.arrow")
    kept.write_bytes(b"no arrow")
    with pytest.raises(StorageError, match=f"{kept.name}.*delete it"):
        CachingEmbedder(Paid(), store).embed(["a"], 8)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    paid = Paid()
    with pytest.raises(StorageError, match="cannot be written"):
        CachingEmbedder(paid, VectorStore(str(file))).embed(["a"], 8)
    assert paid.calls == []
