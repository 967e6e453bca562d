"""The Gemini shape of a request for vectors: one text at a time, and what it is for.

Owns its words: the address, the header, the body and the answer. Never sends anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from omnigraph.embed.configuration import GEMINI
from omnigraph.embed.protocol import Role

_TASKS: Mapping[Role, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


class _Vector(msgspec.Struct):
    values: list[float]


class _Answer(msgspec.Struct):
    embedding: _Vector


_decoder = msgspec.json.Decoder(_Answer)


@dataclass(frozen=True, slots=True)
class GeminiShape:
    """How Gemini is asked."""

    provider: str = GEMINI
    base_url: str = "https://generativelanguage.googleapis.com/v1beta"
    model: str = "gemini-embedding-2"
    key_variables: tuple[str, ...] = ("GEMINI_API_KEY",)
    takes_other_servers: bool = False
    at_once: int = 1

    def url(self, base_url: str, model: str) -> str:
        """The address that vectors are asked at."""
        return f"{base_url}/models/{quote(model, safe='')}:embedContent"

    def headers(self, key: str) -> Mapping[str, str]:
        """What proves who asks."""
        return {"x-goog-api-key": key}

    def body(self, model: str, texts: Sequence[str], dimension: int, role: Role) -> bytes:
        """A request for the vector of the one text."""
        (text,) = texts
        asked = {
            "model": f"models/{model}",
            "content": {"parts": [{"text": text}]},
            "taskType": _TASKS[role],
            "outputDimensionality": dimension,
        }
        return msgspec.json.encode(asked)

    def vectors(self, answer: bytes) -> list[list[float]]:
        """The one vector of an answer; raises ValueError if there is none."""
        return [_decoder.decode(answer).embedding.values]


GEMINI_SHAPE = GeminiShape()
