"""Key finders: which rows hold a key, asked about whole columns of keys at a time.

Owns the three questions that rules about several rows ask, and their answers from rows in
memory and from the stored rows of a base. The key index of a load on Spark and the delta of a
merge answer them too. Never says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.structural import ID
from omnigraph.write.change.change_set import without
from omnigraph.write.publish.read_set import BaseQuery, KeyLookup
from omnigraph.write.rules.evaluation import Evaluation

Mask = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]
AT, HOLDER = "at", "holder"


class KeySet(Protocol):
    """Some keys."""

    def has(self, keys: pa.Array) -> Mask:
        """Which of these keys are held."""


class KeyFinder(KeySet, Protocol):
    """Some rows, by the key that each of them holds."""

    def find(self, keys: pa.Array) -> pa.Table:
        """A row for every holder: ``at`` says of which key, the others who it is."""

    def count(self, keys: pa.Array) -> Counts:
        """How many rows hold each of these keys."""


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """Rows in memory; ``holders`` are their ids, None where these are the keys.

    With ``weights`` each stands for so many rows of its key.
    """

    keys: pa.Array
    holders: pa.Array | None = None
    weights: Counts | None = None

    def has(self, keys: pa.Array) -> Mask:
        """Compare."""
        marks = pc.is_in(keys, value_set=self.keys, skip_nulls=True)
        mask: Mask = marks.to_numpy(zero_copy_only=False)
        return mask

    def find(self, keys: pa.Array) -> pa.Table:
        """Join, in the order of the keys asked about."""
        if not len(self.keys):
            return pa.schema([(AT, pa.int64()), (HOLDER, pa.string())]).empty_table()
        holders = self.keys if self.holders is None else self.holders
        asked = pa.table({"key": keys, AT: np.arange(len(keys), dtype=np.int64)}).drop_null()
        held = pa.table({"key": self.keys, HOLDER: holders})
        return asked.join(held, "key", join_type="inner").select([AT, HOLDER]).sort_by(AT)

    def count(self, keys: pa.Array) -> Counts:
        """Count by key."""
        encoded = self.keys.dictionary_encode()
        totals = np.bincount(encoded.indices.to_numpy(), self.weights, len(encoded.dictionary))
        places = pc.index_in(keys, value_set=encoded.dictionary)
        # A key that nobody holds finds the last count, which is none.
        places = pc.fill_null(places, len(totals)).to_numpy(zero_copy_only=False)
        counts: Counts = np.append(totals, 0).astype(np.int64)[places]
        return counts


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """The stored rows of a type, but for those that a write replaces or deletes.

    ``question`` finds the rows that may hold some keys; who asks it keeps the read set.
    """

    ask: Callable[[BaseQuery], pa.Table]
    question: Callable[[pa.Array], BaseQuery]
    key_of: Callable[[pa.Table], pa.Array]
    gone: tuple[pa.Array | pa.ChunkedArray, ...] = ()

    @classmethod
    def of_column(
        cls, trial: Evaluation, type_key: str, column: str, *gone: pa.Array | pa.ChunkedArray
    ) -> StoredKeys:
        """The rows of a base by what they hold in a column of texts."""
        wanted = tuple(dict.fromkeys((ID, column)))
        return cls(
            lambda question: trial.ask(type_key, question),
            lambda keys: KeyLookup(column, keys.unique(), wanted),
            lambda rows: rows.column(column).combine_chunks(),
            gone,
        )

    def has(self, keys: pa.Array) -> Mask:
        """Ask for the rows."""
        return self._held(keys).has(keys)

    def find(self, keys: pa.Array) -> pa.Table:
        """Ask for the rows."""
        return self._held(keys).find(keys)

    def count(self, keys: pa.Array) -> Counts:
        """Ask for the rows."""
        return self._held(keys).count(keys)

    def _held(self, keys: pa.Array) -> HeldKeys:
        if not len(keys):
            return HeldKeys(pa.array([], keys.type))
        rows = self.ask(self.question(keys))
        for ids in self.gone:
            rows = without(rows, ids)
        return HeldKeys(self.key_of(rows), rows.column(ID).combine_chunks())
