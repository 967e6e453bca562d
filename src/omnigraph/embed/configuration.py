"""Which embedder is used: a description that can be sent to another process.

Owns reading the environment. Never makes the embedder, so that a wrong setting
troubles only those who embed something, and never shows the key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

LOCAL = "local"
MOCK = "mock"
OPENAI_COMPATIBLE = "openai-compatible"
OPENAI = "openai"
GEMINI = "gemini"

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Patience:
    """The limits of one call with all its attempts; a ``deadline_ms`` of 0 is none."""

    timeout_ms: int = 30_000
    deadline_ms: int = 60_000
    attempts: int = 4
    backoff_ms: int = 200


@dataclass(frozen=True, slots=True)
class EmbedderConfig:
    """A provider and how it is asked.

    ``model`` and ``base_url`` are None for the provider's own. ``cache`` is a directory that
    keeps vectors for the next run; None keeps none. ``problem`` is what is wrong with the
    settings: it is told to whoever embeds something.
    """

    provider: str = LOCAL
    model: str | None = None
    cache: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    patience: Patience = field(default_factory=Patience)
    problem: str | None = None

    @classmethod
    def of_environment(cls, environ: Mapping[str, str] = os.environ) -> EmbedderConfig:
        """What the environment says; `local` if it says nothing."""
        provider = environ.get("OMNIGRAPH_EMBED_PROVIDER", "").strip() or LOCAL
        if _is_on(environ.get("OMNIGRAPH_EMBEDDINGS_MOCK", "")):
            provider = MOCK
        config = cls(
            provider,
            environ.get("OMNIGRAPH_EMBED_MODEL", "").strip() or None,
            environ.get("OMNIGRAPH_EMBED_CACHE", "").strip() or None,
        )
        if provider not in (OPENAI_COMPATIBLE, OPENAI, GEMINI):
            return config
        patience, problem = _patience(environ)
        return replace(
            config,
            base_url=environ.get("OMNIGRAPH_EMBED_BASE_URL", "").strip() or None,
            api_key=_key(provider, environ),
            patience=patience,
            problem=problem,
        )


def _key(provider: str, environ: Mapping[str, str]) -> str | None:
    if provider == GEMINI:
        return environ.get("GEMINI_API_KEY", "").strip() or None
    key = environ.get("OPENAI_API_KEY", "").strip() or None
    if provider == OPENAI_COMPATIBLE:
        return environ.get("OPENROUTER_API_KEY", "").strip() or key
    return key


def _patience(environ: Mapping[str, str]) -> tuple[Patience, str | None]:
    """How long to wait, and what is wrong with the first number that is wrong."""
    usual = Patience()
    written = {
        "timeout_ms": (environ.get("OMNIGRAPH_EMBED_TIMEOUT_MS", ""), 1, _DAY_MS),
        "deadline_ms": (environ.get("OMNIGRAPH_EMBED_DEADLINE_MS", ""), 0, _DAY_MS),
        "attempts": (environ.get("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", ""), 1, 100),
        "backoff_ms": (environ.get("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", ""), 0, _DAY_MS),
    }
    variables = {"attempts": "RETRY_ATTEMPTS", "backoff_ms": "RETRY_BACKOFF_MS"}
    numbers: dict[str, int] = {}
    for name, (given, least, most) in written.items():
        text = given.strip()
        if not text:
            continue
        number = int(text) if re.fullmatch("[0-9]{1,9}", text) else -1
        if not least <= number <= most:
            variable = f"OMNIGRAPH_EMBED_{variables.get(name, name.upper())}"
            problem = f"{variable} is {text!r}: set it to a whole number from {least} to {most}"
            return usual, problem
        numbers[name] = number
    return replace(usual, **numbers), None


def _is_on(value: str) -> bool:
    return value.strip().lower() not in {"", "0", "false"}
