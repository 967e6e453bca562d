"""Remote providers: many texts asked for in a few requests at a time, the answers checked.

Owns cutting texts into requests and what an answer has to be. What is sent is the
business of a format, and how it gets there that of an endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.endpoint import Endpoint
from omnigraph.embed.protocol import Role, Texts, Vectors, text_array, unit_rows
from omnigraph.embed.request_formats import RequestFormat
from omnigraph.errors import EmbeddingError

CONCURRENCY = 8
# A token is a byte at least, and no known server takes fewer tokens in one request.
MAX_REQUEST_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class RemoteEmbedder:
    """Asks a server."""

    format: RequestFormat
    config: EmbedderConfig

    @property
    def provider(self) -> str:
        """That of the format."""
        return self.format.provider

    @property
    def model(self) -> str:
        """The model it uses."""
        return self.config.model or self.format.model

    def embed(self, texts: Texts, dimension: int, role: Role = "document") -> Vectors:
        """Any dimension that the model makes."""
        call = _Call(self, text_array(texts), dimension, role)
        call.run()
        return call.vectors

    def endpoint(self) -> Endpoint:
        """Where it asks; refuses settings that cannot work, before anything is sent."""
        return Endpoint.of(self.format, self.config)


class _Call:
    """The texts of one call, in requests that fill in their vectors."""

    def __init__(
        self, embedder: RemoteEmbedder, texts: pa.Array, dimension: int, role: Role
    ) -> None:
        self._embedder = embedder
        self._endpoint = embedder.endpoint()
        self._texts = texts
        self._dimension = dimension
        self._role = role
        self._failed = Event()
        self.vectors: Vectors = np.empty((len(texts), dimension), dtype=np.float32)

    def run(self) -> None:
        """Ask for everything, a few requests at a time; the first failure ends it."""
        requests = list(self._requests())
        if len(requests) < 2:
            for first, last in requests:
                self._ask(first, last)
            return
        with ThreadPoolExecutor(min(CONCURRENCY, len(requests))) as pool:
            asked: list[Future[None]] = [pool.submit(self._take, *each) for each in requests]
            try:
                done, _ = wait(asked, return_when=FIRST_EXCEPTION)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        for each in asked:
            if each in done:
                each.result()

    def _take(self, first: int, last: int) -> None:
        if self._failed.is_set():
            return
        try:
            self._ask(first, last)
        except BaseException:
            self._failed.set()
            raise

    def _requests(self) -> Iterator[tuple[int, int]]:
        """Ranges of texts that are few and short enough together; a long text is alone."""
        at_once = self._embedder.format.at_once
        sizes = pc.binary_length(self._texts).to_numpy(zero_copy_only=False)
        ends = np.cumsum(sizes, dtype=np.int64)
        first = 0
        while first < len(ends):
            begun = int(ends[first] - sizes[first])
            fitting = int(np.searchsorted(ends, begun + MAX_REQUEST_BYTES, side="right"))
            last = max(first + 1, min(fitting, first + at_once))
            yield first, last
            first = last

    def _ask(self, first: int, last: int) -> None:
        texts = self._texts.slice(first, last - first)
        try:
            answer = self._endpoint.ask(texts.to_pylist(), self._dimension, self._role)
        except EmbeddingError as error:
            if error.kind != "text_too_long":
                raise
            if last - first == 1:
                error.position = first
                raise
        else:
            self._keep(answer, texts, first)
            return
        # Together they may be too much, and if one of them is, it is found.
        middle = (first + last) // 2
        self._ask(first, middle)
        self._ask(middle, last)

    def _keep(self, answer: bytes, texts: pa.Array, first: int) -> None:
        try:
            found = self._embedder.format.vectors(answer)
        except (ValueError, msgspec.DecodeError, RecursionError) as error:
            raise self._bad(answer, self._endpoint.hide(str(error))) from None
        if len(found) != len(texts):
            raise self._bad(answer, f"{len(found)} vectors for {len(texts)} texts")
        lengths = {len(vector) for vector in found} - {self._dimension}
        if lengths:
            length = min(lengths)
            raise self._endpoint.error(
                f"makes vectors of {length} numbers with the model '{self._embedder.model}', not "
                f"of {self._dimension}: name a model in OMNIGRAPH_EMBED_MODEL that can make them, "
                "or give the vectors",
                "dimension",
                dimension=self._dimension,
                actual=length,
            )
        raw = np.array(found, dtype=np.float64)
        try:
            self.vectors[first : first + len(texts)] = unit_rows(raw, texts, self._embedder)
        except EmbeddingError as error:
            error.position = first + (error.position or 0)
            raise

    def _bad(self, answer: bytes, why: str) -> EmbeddingError:
        begins = self._endpoint.hide(answer[:2000].decode(errors="replace"))[:60]
        return self._endpoint.error(
            f"gives an answer without the vectors that were asked for ({why}); it begins "
            f"{begins!r}: check OMNIGRAPH_EMBED_BASE_URL and OMNIGRAPH_EMBED_PROVIDER",
            "bad_answer",
        )
