"""Request formats: how each remote provider is asked for vectors, and how it answers.

Owns their words: address, header, body and answer, and what a provider is when nothing
is set. Never sends anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from omnigraph.embed.configuration import GEMINI, OPENAI, OPENAI_COMPATIBLE
from omnigraph.embed.protocol import Role


@dataclass(frozen=True, slots=True)
class RequestFormat:
    """What a kind of server understands.

    The key is taken from the first of the ``key_variables`` that is set, and sent in
    ``headers``. ``vectors`` reads an answer in the order of the texts and raises ValueError if
    there are none. A provider that ``takes_other_servers`` may be one's own, which may ask for
    no key.
    """

    provider: str
    base_url: str
    model: str
    key_variables: tuple[str, ...]
    url: Callable[[str, str], str]
    headers: Callable[[str], Mapping[str, str]]
    body: Callable[[str, Sequence[str], int, Role], bytes]
    vectors: Callable[[bytes], list[list[float]]]
    at_once: int
    takes_other_servers: bool = False


# -- OpenAI, which many servers understand ------------------------------------------


class _Numbered(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _OpenAIAnswer(msgspec.Struct):
    data: list[_Numbered]


def _openai_body(model: str, texts: Sequence[str], dimension: int, _: Role) -> bytes:
    return msgspec.json.encode({"model": model, "input": list(texts), "dimensions": dimension})


def _openai_vectors(answer: bytes) -> list[list[float]]:
    found = msgspec.json.decode(answer, type=_OpenAIAnswer).data
    # Some servers leave out an index of 0, some all of them.
    if all(one.index is None for one in found):
        return [one.embedding for one in found]
    placed = {one.index or 0: one.embedding for one in found}
    if sorted(placed) != list(range(len(found))):
        raise ValueError(f"the {len(found)} vectors are not numbered from 0 on")
    return [placed[number] for number in range(len(found))]


def _openai(
    provider: str, base_url: str, model: str, *key_variables: str, takes_other_servers: bool = False
) -> RequestFormat:
    return RequestFormat(
        provider,
        base_url,
        model,
        key_variables,
        url=lambda base_url, _: f"{base_url}/embeddings",
        headers=lambda key: {"authorization": f"Bearer {key}"},
        body=_openai_body,
        vectors=_openai_vectors,
        at_once=128,
        takes_other_servers=takes_other_servers,
    )


# -- Gemini: one text at a time, and what it is for ---------------------------------

_TASKS: Mapping[Role, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


class _Values(msgspec.Struct):
    values: list[float]


class _GeminiAnswer(msgspec.Struct):
    embedding: _Values


def _gemini_body(model: str, texts: Sequence[str], dimension: int, role: Role) -> bytes:
    (text,) = texts
    asked = {
        "model": f"models/{model}",
        "content": {"parts": [{"text": text}]},
        "taskType": _TASKS[role],
        "outputDimensionality": dimension,
    }
    return msgspec.json.encode(asked)


FORMATS = (
    _openai(
        OPENAI_COMPATIBLE,
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        "OPENROUTER_API_KEY",
        "OPENAI_API_KEY",
        takes_other_servers=True,
    ),
    _openai(OPENAI, "https://api.openai.com/v1", "text-embedding-3-large", "OPENAI_API_KEY"),
    RequestFormat(
        GEMINI,
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-embedding-2",
        ("GEMINI_API_KEY",),
        url=lambda base_url, model: f"{base_url}/models/{quote(model, safe='')}:embedContent",
        headers=lambda key: {"x-goog-api-key": key},
        body=_gemini_body,
        vectors=lambda answer: [msgspec.json.decode(answer, type=_GeminiAnswer).embedding.values],
        at_once=1,
    ),
)
