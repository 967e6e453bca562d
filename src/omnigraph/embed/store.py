"""Vectors on disk, so that a second run need not ask a provider again.

Owns the files: one per batch, written whole or not at all, never changed. Several
processes may write at once. Deleting files is always safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from ulid import ULID

from omnigraph.embed.protocol import Vectors
from omnigraph.errors import StorageError

KEY = pa.binary(32)
_SUFFIX = ".arrow"


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
