"""What the tests of embeddings share: a provider that is reached over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.embed import providers
from tests.embed.vector_server import KEY, VectorServer, serving


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROVIDER", "MODEL", "BASE_URL", "CACHE", "TIMEOUT_MS", "DEADLINE_MS"):
        monkeypatch.delenv(f"OMNIGRAPH_EMBED_{name}", raising=False)
    for name in ("OMNIGRAPH_EMBEDDINGS_MOCK", "OPENROUTER_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    providers._remembered.clear()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[VectorServer]:
    """A provider that the environment names, with a key; it is asked again without a pause."""
    with serving() as running:
        monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai-compatible")
        monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", running.url)
        monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "small")
        monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "0")
        monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
        yield running
