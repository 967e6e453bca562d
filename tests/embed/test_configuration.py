"""Which embedder is used, and what is said when it cannot be."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from omnigraph.embed.configuration import EmbedderConfig, Patience
from omnigraph.embed.local import MODEL
from omnigraph.embed.providers import embedder_of
from omnigraph.errors import EmbeddingError


def test_nothing_said_is_local() -> None:
    embedder = embedder_of(EmbedderConfig.of_environment({"OMNIGRAPH_EMBED_PROVIDER": " "}))
    assert (embedder.provider, embedder.model) == ("local", MODEL)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, EmbedderConfig("local")),
        ({"OMNIGRAPH_EMBED_PROVIDER": "mock"}, EmbedderConfig("mock")),
        ({"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}, EmbedderConfig("mock")),
        ({"OMNIGRAPH_EMBEDDINGS_MOCK": "0"}, EmbedderConfig("local")),
        ({"OMNIGRAPH_EMBEDDINGS_MOCK": "False"}, EmbedderConfig("local")),
        (
            {"OMNIGRAPH_EMBEDDINGS_MOCK": "yes", "OMNIGRAPH_EMBED_PROVIDER": "gemini"},
            EmbedderConfig("mock"),
        ),
        (
            {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OMNIGRAPH_EMBED_MODEL": "m"},
            EmbedderConfig("openai", "m"),
        ),
        ({"OMNIGRAPH_EMBED_CACHE": "/var/vectors"}, EmbedderConfig(cache="/var/vectors")),
        (
            {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OMNIGRAPH_EMBED_BASE_URL": "http://x"},
            EmbedderConfig("openai", base_url="http://x"),
        ),
        (
            {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OPENAI_API_KEY": "o", "GEMINI_API_KEY": "g"},
            EmbedderConfig("openai", api_key="o"),
        ),
        (
            {
                "OMNIGRAPH_EMBED_PROVIDER": "gemini",
                "OMNIGRAPH_EMBED_TIMEOUT_MS": "1",
                "OMNIGRAPH_EMBED_DEADLINE_MS": " 0 ",
                "OMNIGRAPH_EMBED_RETRY_ATTEMPTS": "5",
                "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "",
            },
            EmbedderConfig("gemini", patience=Patience(1, 0, 5, 200)),
        ),
        # What nobody needs is not looked at, and keys stay where they are.
        (
            {"OMNIGRAPH_EMBED_TIMEOUT_MS": "soon", "OPENAI_API_KEY": "o"},
            EmbedderConfig("local"),
        ),
    ],
)
def test_the_environment(environ: dict[str, str], expected: EmbedderConfig) -> None:
    assert EmbedderConfig.of_environment(environ) == expected


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OMNIGRAPH_EMBED_TIMEOUT_MS", "0"),
        ("OMNIGRAPH_EMBED_DEADLINE_MS", "1.5"),
        ("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "-1"),
        ("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "101"),
        ("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "99999999999999999999"),
    ],
)
def test_a_number_that_is_none_troubles_whoever_embeds(variable: str, value: str) -> None:
    environ = {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OPENAI_API_KEY": "o", variable: value}
    embedder = embedder_of(EmbedderConfig.of_environment(environ))
    with pytest.raises(EmbeddingError, match=f"{variable} is '{value}': .* whole number") as caught:
        embedder.embed(["a"], 4)
    assert caught.value.kind == "configuration"


def test_the_mock_has_whatever_model_is_wanted() -> None:
    assert embedder_of(EmbedderConfig("mock")).model == ""
    assert embedder_of(EmbedderConfig("mock", "large")).model == "large"


def test_an_unknown_provider() -> None:
    with pytest.raises(EmbeddingError, match=r"no embedding provider 'gemni'.* local, mock"):
        embedder_of(EmbedderConfig("gemni")).embed(["a"], 64)


def test_the_description_crosses_processes() -> None:
    config = EmbedderConfig("mock", "large", "/var/vectors")
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 - our own bytes


def test_what_was_used() -> None:
    embedder = embedder_of(EmbedderConfig("mock", "large"))
    assert embedder.used is None
    embedder.embed(["a"], 4)
    assert embedder.used == {"provider": "mock", "model": "large"}


def test_equal_texts_have_equal_vectors() -> None:
    a, b, again = embedder_of(EmbedderConfig("mock")).embed(["a", "b", "a"], 4)
    assert np.array_equal(a, again)
    assert not np.array_equal(a, b)
