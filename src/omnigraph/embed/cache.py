"""Embedding each text once: within a call, and across runs when there is a store on disk.

Owns the files of the store. Never asks a provider by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from ulid import ULID

from omnigraph.embed.protocol import Embedder, Role, Texts, Vectors, text_array
from omnigraph.errors import EmbeddingError, StorageError

Memory = dict[tuple[str, int, Role], Vectors]
"""Vectors by text, dimension and role, all of one model."""

# What a run that is stopped has to pay for again, at most.
_AT_ONCE = 256

KEY = pa.binary(32)
_SUFFIX = ".arrow"


@dataclass(frozen=True, slots=True)
class WrappedEmbedder:
    """Another embedder, by whose names this one goes."""

    inner: Embedder

    @property
    def provider(self) -> str:
        """That of the other embedder."""
        return self.inner.provider

    @property
    def model(self) -> str:
        """That of the other embedder."""
        return self.inner.model


@dataclass(frozen=True, slots=True)
class CachingEmbedder(WrappedEmbedder):
    """Asks another embedder for each different text once."""

    store: VectorStore | None = None

    def embed(self, texts: Texts, dimension: int, role: Role = "document") -> Vectors:
        """The vectors of the other embedder."""
        encoded = text_array(texts).dictionary_encode()
        places: npt.NDArray[np.int32] = encoded.indices.to_numpy()
        try:
            if self.store is None:
                distinct = self.inner.embed(encoded.dictionary, dimension, role)
            else:
                distinct = self._kept(self.store, encoded.dictionary, dimension, role)
        except EmbeddingError as error:
            if error.position is not None:
                error.position = int(np.flatnonzero(places == error.position)[0])
            raise
        return distinct[places]

    def _kept(self, store: VectorStore, texts: pa.Array, dimension: int, role: Role) -> Vectors:
        shelf = store.shelf(self.provider, self.model, role, dimension)
        keys = _keys(texts.to_pylist())
        vectors = np.empty((len(texts), dimension), dtype=np.float32)
        missing = shelf.read(keys, vectors)
        for start in range(0, len(missing), _AT_ONCE):
            some = missing[start : start + _AT_ONCE]
            try:
                made = self.inner.embed(texts.take(pa.array(some)), dimension, role)
            except EmbeddingError as error:
                if error.position is not None:
                    error.position = int(some[error.position])
                raise
            shelf.write(keys.take(pa.array(some)), made)
            vectors[some] = made
        return vectors


def embed_new(
    embedder: Embedder, known: Memory, texts: Texts, dimension: int, role: Role
) -> Vectors:
    """One vector per text; only what is not known yet is asked for, and known from then on."""
    wanted = [(text, dimension, role) for text in text_array(texts).to_pylist()]
    new = [place for place, key in enumerate(wanted) if key not in known]
    if new:
        try:
            made = embedder.embed([wanted[place][0] for place in new], dimension, role)
        except EmbeddingError as error:
            if error.position is not None:
                error.position = new[error.position]
            raise
        known.update({wanted[place]: made[row] for row, place in enumerate(new)})
    return np.stack([known[key] for key in wanted])


def _keys(texts: Iterable[str]) -> pa.Array:
    return pa.array((sha256(text.encode()).digest() for text in texts), KEY)


@dataclass(frozen=True, slots=True)
class VectorStore:
    """A directory of vectors."""

    directory: str

    def shelf(self, provider: str, model: str, role: str, dimension: int) -> Shelf:
        """The vectors that can stand for each other."""
        # Names of models may have any character, and any case.
        name = sha256(f"{provider}\0{model}\0{role}".encode()).hexdigest()[:32]
        directory = Path(self.directory).expanduser() / f"{name}-{dimension}"
        try:
            # Now, and not when a provider has been paid already.
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(directory, error) from error
        return Shelf(directory, dimension)


@dataclass(frozen=True, slots=True)
class Shelf:
    """The vectors of one dimension that one model made for one role."""

    directory: Path
    dimension: int

    def read(self, keys: pa.Array, vectors: Vectors) -> npt.NDArray[np.int64]:
        """Fill in the vectors that are known, and say which rows are not."""
        known = self._known()
        found = pc.index_in(keys, value_set=known.column("key").combine_chunks())
        is_known = found.is_valid().to_numpy(zero_copy_only=False)
        if is_known.any():
            taken = known.column("vector").take(found.drop_null()).combine_chunks()
            vectors[is_known] = taken.flatten().to_numpy().reshape(-1, self.dimension)
        missing: npt.NDArray[np.int64] = np.flatnonzero(~is_known)
        return missing

    def write(self, keys: pa.Array, vectors: Vectors) -> None:
        """Keep the vectors of a batch."""
        values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), self.dimension)
        rows = pa.table([keys, values], schema=self._schema)
        name = str(ULID())
        unfinished = self.directory / f"{name}.part"
        try:
            with pa.OSFile(str(unfinished), "wb") as file, pa.ipc.new_file(file, rows.schema) as to:
                to.write_table(rows)
            unfinished.replace(self.directory / f"{name}{_SUFFIX}")
        except OSError as error:
            raise _unwritable(unfinished, error) from error
        finally:
            unfinished.unlink(missing_ok=True)

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([("key", KEY), ("vector", pa.list_(pa.float32(), self.dimension))])

    def _known(self) -> pa.Table:
        files = sorted(self.directory.glob(f"*{_SUFFIX}"))
        return pa.concat_tables([self._schema.empty_table(), *map(self._open, files)])

    def _open(self, path: Path) -> pa.Table:
        # Mapped, not read: only the pages of the vectors that are wanted are ever touched.
        try:
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable(path, str(error)) from error
        if table.schema != self._schema:
            raise _unreadable(path, "it has other columns")
        return table


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"the embedding cache cannot be written at {path}: {error.strerror or error}",
        kind="configuration",
    )


def _unreadable(path: Path, reason: str) -> StorageError:
    return StorageError(
        f"{path} of the embedding cache cannot be read ({reason}): delete it", kind="permanent"
    )
