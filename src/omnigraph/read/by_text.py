"""Positions by text, for a column that holds each text once: many at a time.

Owns the table of hashes that answers it. Every text asked about must be in the column:
then the table is right about all of them if it is right about the column's own texts,
which is tried once when it is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.hashing import Hashes, hash_texts

Positions = npt.NDArray[np.int64]

# A slot holds the upper half of a hash and, in its lower half, the position.
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_FREE = np.uint64(0xFFFFFFFFFFFFFFFF)
_MAX_POSITION = int(_LOW) - 1
# So many slots per text: few texts then miss the slot they hash to.
_ROOM = 6
# So many texts are looked up at a time: what is made on the way stays in the processor's cache.
_AT_ONCE = 65_536


@dataclass(frozen=True)
class PositionsByText:
    """Slots of an open-addressing table; without slots, texts are compared."""

    texts: pa.Array
    positions: Positions
    slots: Hashes | None

    @property
    def size(self) -> int:
        """Bytes held beside the column itself."""
        return 0 if self.slots is None else self.slots.nbytes

    def of(self, texts: pa.Array) -> Positions:
        """The position of each text; raises if one is found nowhere."""
        if self.slots is None:
            places = pc.index_in(texts, value_set=self.texts)
            if places.null_count:
                raise _stray()
            compared: Positions = self.positions[places.to_numpy()]
            return compared
        found = np.empty(len(texts), dtype=np.int64)
        for start in range(0, len(texts), _AT_ONCE):
            part = texts.slice(start, _AT_ONCE)
            found[start : start + len(part)] = _looked_up(self.slots, hash_texts(part))
        return found


def positions_by_text(texts: pa.Array, positions: Positions) -> PositionsByText:
    """A table for a column's texts; none where their hashes are too much alike."""
    if not len(texts) or int(positions.max()) > _MAX_POSITION:
        return PositionsByText(texts, positions, None)
    hashes = hash_texts(texts)
    slots = _filled(hashes, positions)
    right = slots is not None and np.array_equal(_looked_up(slots, hashes), positions)
    return PositionsByText(texts, positions, slots if right else None)


def _looked_up(slots: Hashes, hashes: Hashes) -> Positions:
    mask = len(slots) - 1
    at = hashes.astype(np.int64) & mask
    found = slots[at]
    missed = np.flatnonzero((found ^ hashes) >> _HALF)
    while len(missed):
        at[missed] = (at[missed] + 1) & mask
        tried = slots[at[missed]]
        if (tried == _FREE).any():
            raise _stray()
        found[missed] = tried
        missed = missed[((tried ^ hashes[missed]) >> _HALF) != 0]
    positions: Positions = (found & _LOW).astype(np.int64)
    return positions


def _filled(hashes: Hashes, positions: Positions) -> Hashes | None:
    """Each text in the first free slot from where its hash points; None if it takes too long."""
    size = 1 << (_ROOM * len(hashes)).bit_length()
    slots = np.full(size, _FREE, dtype=np.uint64)
    wanted = ((hashes >> _HALF) << _HALF) | positions.astype(np.uint64)
    at = hashes.astype(np.int64) & (size - 1)
    for _ in range(64):
        free = slots[at] == _FREE
        # Of several that want one slot, the last to be written has it.
        slots[at[free]] = wanted[free]
        lost = slots[at] != wanted
        wanted, at = wanted[lost], (at[lost] + 1) & (size - 1)
        if not len(wanted):
            return slots
    return None


def _stray() -> AssertionError:
    return AssertionError("a text is not in the column it refers to")
