"""Which embedder is used: a description that can be sent to another process.

Owns reading the environment. Never makes the embedder, so that a wrong setting
troubles only those who embed something.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

LOCAL = "local"
MOCK = "mock"


@dataclass(frozen=True, slots=True)
class EmbedderConfig:
    """A provider and how it is asked.

    ``model`` is None for the provider's own choice. ``cache`` is a directory that keeps
    vectors for the next run; None keeps none.
    """

    provider: str = LOCAL
    model: str | None = None
    cache: str | None = None

    @classmethod
    def of_environment(cls, environ: Mapping[str, str] = os.environ) -> EmbedderConfig:
        """What the environment says; `local` if it says nothing."""
        provider = environ.get("OMNIGRAPH_EMBED_PROVIDER", "").strip() or LOCAL
        if _is_on(environ.get("OMNIGRAPH_EMBEDDINGS_MOCK", "")):
            provider = MOCK
        return cls(
            provider,
            environ.get("OMNIGRAPH_EMBED_MODEL", "").strip() or None,
            environ.get("OMNIGRAPH_EMBED_CACHE", "").strip() or None,
        )


def _is_on(value: str) -> bool:
    return value.strip().lower() not in {"", "0", "false"}
