"""The vector of a text to search for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.local import MODEL, LocalEmbedder, MockEmbedder
from omnigraph.embed.providers import embed_query
from omnigraph.errors import EmbeddingError
from omnigraph.lang.cache import Cache
from tests.embed.vector_server import VectorServer, error, vectors_of


def test_nothing_needs_to_be_configured() -> None:
    found = embed_query("bad weather", 64, None)
    assert found.dtype == np.float32
    assert np.array_equal(found, LocalEmbedder().embed(["bad weather"], 64)[0])


def test_a_configuration_may_be_given() -> None:
    found = embed_query("x", 5, "large", EmbedderConfig("mock", "large"))
    assert np.array_equal(found, MockEmbedder().embed(["x"], 5)[0])


def test_a_server_is_told_that_it_is_a_query(
    server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "gemini")
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    found = embed_query("x", 4, "small")
    assert server.asked[0].body["taskType"] == "RETRIEVAL_QUERY"
    assert np.allclose(found * 3, vectors_of(["x"], 4, "RETRIEVAL_QUERY")[0])
    assert np.isclose(np.linalg.norm(found), 1)


def test_the_same_text_is_asked_for_once(
    server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = embed_query("x", 4, None)
    assert np.array_equal(embed_query("x", 4, None), first)
    assert len(server.asked) == 1
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 7
    embed_query("x", 8, None)
    embed_query("y", 4, None)
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "other")
    embed_query("x", 4, None)
    assert len(server.asked) == 4


def test_a_failure_is_not_remembered(server: VectorServer) -> None:
    server.next = [error(400, "no")]
    with pytest.raises(EmbeddingError):
        embed_query("x", 4, None)
    assert np.allclose(embed_query("x", 4, None) * 3, vectors_of(["x"], 4)[0])


def test_what_was_asked_long_ago_is_forgotten(
    server: VectorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.embed.providers._remembered", Cache(limit=3))
    for text in ("a", "b", "c", "a", "d", "a"):
        embed_query(text, 4, None)
    assert server.texts == ["a", "b", "c", "d"]
    embed_query("b", 4, None)
    assert server.texts == ["a", "b", "c", "d", "b"]


def test_another_model_is_refused_before_anything_is_asked(server: VectorServer) -> None:
    with pytest.raises(EmbeddingError, match=r"of Film.meaning .* 'large'.* 'small'") as caught:
        embed_query("x", 4, "large", place="Film.meaning")
    assert caught.value.kind == "model"
    assert (caught.value.details["expected"], caught.value.details["actual"]) == ("large", "small")
    assert server.asked == []


def test_queries_are_kept_on_no_disk(
    server: VectorServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_CACHE", str(tmp_path / "vectors"))
    embed_query("x", 4, None)
    assert len(server.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_pinned_model_of_local() -> None:
    embed_query("x", 64, MODEL)
    with pytest.raises(EmbeddingError, match="'other'"):
        embed_query("x", 64, "other")
