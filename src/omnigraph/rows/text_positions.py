"""Text index: where each of many distinct texts stands, asked for many texts at a time.

Owns an open-addressing table of hashes over a column of texts. Only for callers who know that
every text they ask about is there: a found one is not compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.hashing import Hashes, hash_texts

Positions = npt.NDArray[np.int64]
NOWHERE = -1

# A slot holds the upper half of a hash and, in its lower half, the position.
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_FREE = np.uint64(0xFFFFFFFFFFFFFFFF)
_MAX_POSITION = int(_LOW) - 1
# So many slots per text: few texts then miss the slot they hash to.
_ROOM = 6
# So many texts are looked up at a time: what is made on the way stays in the processor's cache.
_AT_ONCE = 65_536
_ROUNDS = 64


@dataclass(frozen=True)
class PositionsByText:
    """Positions by texts that are known to be in the column; without slots, texts are compared."""

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
            found[start : start + len(part)] = _probe(self.slots, hash_texts(part))
        if (found == NOWHERE).any():
            raise _stray()
        return found


def positions_by_text(texts: pa.Array, positions: Positions) -> PositionsByText:
    """A table for a column's texts; none where their hashes are too much alike."""
    if not len(texts) or int(positions.max()) > _MAX_POSITION:
        return PositionsByText(texts, positions, None)
    hashes = hash_texts(texts)
    slots = fill_slots(hashes, positions)
    # If it is right about the column's own texts, it is right about every text that is there.
    right = slots is not None and np.array_equal(_probe(slots, hashes), positions)
    return PositionsByText(texts, positions, slots if right else None)


def _probe(slots: Hashes, hashes: Hashes) -> Positions:
    """From each slot on, the first with the same half of a hash; -1 at a free one."""
    mask = len(slots) - 1
    at = hashes.astype(np.int64) & mask
    seen = slots[at]
    missed = np.flatnonzero(((seen ^ hashes) >> _HALF != 0) & (seen != _FREE))
    while len(missed):
        at[missed] = (at[missed] + 1) & mask
        tried = slots[at[missed]]
        seen[missed] = tried
        missed = missed[((tried ^ hashes[missed]) >> _HALF != 0) & (tried != _FREE)]
    found: Positions = (seen & _LOW).astype(np.int64)
    found[seen == _FREE] = NOWHERE
    return found


def fill_slots(hashes: Hashes, positions: Positions) -> Hashes | None:
    """Each in the first free slot from where its hash points; None if that takes too long."""
    size = 1 << (_ROOM * max(len(hashes), 1)).bit_length()
    slots = np.full(size, _FREE, dtype=np.uint64)
    wanted = ((hashes >> _HALF) << _HALF) | positions.astype(np.uint64)
    at = hashes.astype(np.int64) & (size - 1)
    for _ in range(_ROUNDS):
        if not len(wanted):
            return slots
        free = slots[at] == _FREE
        # Of several that want one slot, the last to be written has it.
        slots[at[free]] = wanted[free]
        lost = slots[at] != wanted
        wanted, at = wanted[lost], (at[lost] + 1) & (size - 1)
    return None


def _stray() -> AssertionError:
    return AssertionError("a text is not in the column it refers to")
