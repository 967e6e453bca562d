"""The OpenAI shape of a request for vectors, which many servers understand.

Owns its words: the address, the header, the body and the answer. Never sends anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from omnigraph.embed.configuration import OPENAI, OPENAI_COMPATIBLE
from omnigraph.embed.protocol import Role


class _Vector(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Vector]


_decoder = msgspec.json.Decoder(_Answer)


@dataclass(frozen=True, slots=True)
class OpenAIShape:
    """How a server of this kind is asked; several texts at once."""

    provider: str
    base_url: str
    model: str
    key_variables: tuple[str, ...]
    takes_other_servers: bool = False
    at_once: int = 128

    def url(self, base_url: str, model: str) -> str:  # noqa: ARG002 - the model is in the body
        """The address that vectors are asked at."""
        return f"{base_url}/embeddings"

    def headers(self, key: str) -> Mapping[str, str]:
        """What proves who asks."""
        return {"authorization": f"Bearer {key}"}

    def body(self, model: str, texts: Sequence[str], dimension: int, role: Role) -> bytes:  # noqa: ARG002 - makes no difference here
        """A request for the vectors of some texts."""
        asked = {"model": model, "input": list(texts), "dimensions": dimension}
        return msgspec.json.encode(asked)

    def vectors(self, answer: bytes) -> list[list[float]]:
        """The vectors of an answer in the order of the texts; raises ValueError if there are none.

        Some servers leave out an index of 0, some all of them.
        """
        found = _decoder.decode(answer).data
        if all(one.index is None for one in found):
            return [one.embedding for one in found]
        placed = {one.index or 0: one.embedding for one in found}
        if sorted(placed) != list(range(len(found))):
            raise ValueError(f"the {len(found)} vectors are not numbered from 0 on")
        return [placed[number] for number in range(len(found))]


OPENAI_SHAPE = OpenAIShape(
    OPENAI, "https://api.openai.com/v1", "text-embedding-3-large", ("OPENAI_API_KEY",)
)
OPENAI_COMPATIBLE_SHAPE = OpenAIShape(
    OPENAI_COMPATIBLE,
    "https://openrouter.ai/api/v1",
    "openai/text-embedding-3-large",
    ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
    takes_other_servers=True,
)
