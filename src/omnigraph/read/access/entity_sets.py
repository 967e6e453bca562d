"""Entity sets: the nodes or edges of several types as one range of positions.

Owns that range: those of the first type, then those of the next; and what the position of a node
is among others. Whatever is read is read from the types themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.lang.schema.type_sets import TypeSet, members_of
from omnigraph.lang.structural import EDGE_COLUMNS, ID, TYPE
from omnigraph.read.access.entities import NO_NODE, Entities, taken
from omnigraph.rows.references import are_of, nodes_of, referring
from omnigraph.storage.budget import need, took
from omnigraph.storage.tables.columns import arrow_field

Positions = npt.NDArray[np.int64]
POSITION_BYTES = 8


@dataclass(frozen=True)
class EntitySet:
    """The entities of some types, one type after the other."""

    type: TypeSet
    parts: tuple[Entities, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> Positions:
        """Where those of each type begin, and the end of all."""
        return np.cumsum([0, *(part.count for part in self.parts)], dtype=np.int64)

    def positions(self) -> Positions:
        """All of them, ascending."""
        return np.arange(self.count)

    def values(self, name: str, positions: Positions) -> pa.Array:
        """A property of these positions; null for nobody, and for those whose type lacks it."""
        return self.values_as(name, positions, self._type_of(name))

    def values_as(self, name: str, positions: Positions, wanted: pa.DataType) -> pa.Array:
        """The same in a type; what a type has under that name in another one is left out."""
        if name == TYPE:
            return self._types(positions)
        of = self._part_of(positions)
        places = np.full(len(positions), NO_NODE, dtype=np.int64)
        pieces: list[pa.Array] = []
        done = 0
        for number, part in enumerate(self.parts):
            rows = np.flatnonzero(of == number)
            if not len(rows) or _stored_type(part, name) != wanted:
                continue
            found = part.values(name, positions[rows] - self.starts[number])
            if isinstance(found, pa.ChunkedArray):
                found = found.combine_chunks()
            if found.type != wanted:
                found = found.cast(wanted)
            if len(rows) == len(positions):
                return found
            places[rows] = np.arange(done, done + len(rows))
            done += len(rows)
            pieces.append(found)
        if not pieces:
            return pa.nulls(len(positions), wanted)
        need(sum(piece.nbytes for piece in pieces))
        return taken(took(pa.concat_arrays(pieces)), places, places)

    def references(self, positions: Positions) -> pa.Array:
        """What edges call the nodes at these positions, none of which is nobody."""
        of = self._part_of(positions)
        found = [pa.array([], pa.string())]
        for number, part in enumerate(self.parts):
            mine = positions[of == number] - self.starts[number]
            if len(mine):
                found.append(referring(part.values(ID, mine), part.type.type_id))
        return pa.concat_arrays(found)

    def resolved(
        self, references: pa.Array, resolve: Callable[[Entities, pa.Array], Positions]
    ) -> Positions:
        """The positions of what edges call nodes; ``resolve`` tells those of ids of one type."""
        need(POSITION_BYTES * len(references))
        positions = took(np.full(len(references), NO_NODE, dtype=np.int64))
        for number, part in enumerate(self.parts):
            at = np.flatnonzero(are_of(references, part.type.type_id))
            if len(at):
                ids = nodes_of(references.take(pa.array(at)))
                positions[at] = resolve(part, ids) + self.starts[number]
        if len(positions) and positions.min() == NO_NODE:
            raise AssertionError("an edge leads to no node")
        return positions

    def bring(self, names: Iterable[str], positions: Positions) -> None:
        """Have several properties of these positions at hand, by few requests."""
        wanted = list(names)
        of = self._part_of(positions)
        for number, part in enumerate(self.parts):
            mine = positions[of == number]
            if len(mine):
                had = [name for name in wanted if _stored_type(part, name) is not None]
                part.bring(had, mine - self.starts[number])

    def codes(self, name: str, positions: Positions) -> Positions | None:
        """None: no column is at hand for all of them."""

    def _types(self, positions: Positions) -> pa.Array:
        need(positions.nbytes)
        of = self._part_of(positions)
        names = pa.array(self.type.members, pa.string())
        return took(names.take(pa.array(of, mask=of < 0)))

    def _part_of(self, positions: Positions) -> Positions:
        """Which part each is of; -1 for nobody."""
        need(2 * positions.nbytes)
        of = np.searchsorted(self.starts[1:], positions, side="right")
        return np.where(positions < 0, NO_NODE, of)

    def _type_of(self, name: str) -> pa.DataType:
        found = _stored_type(self, name)
        if found is None:
            raise AssertionError(f"{self.type.name} has no one property {name}")
        return found


Many = Entities | EntitySet


def _stored_type(found: Many, name: str) -> pa.DataType | None:
    """The type of a property of entities; None if they do not have it, or not all in one type."""
    if name in (*EDGE_COLUMNS, TYPE):
        return pa.string()
    definition = found.type.properties.get(name)
    return None if definition is None else arrow_field(name, definition.type).type


def parts_of(found: Many) -> tuple[Entities, ...]:
    """The types that entities are of, with their rows."""
    return found.parts if isinstance(found, EntitySet) else (found,)


def translated(positions: Positions, here: Many, there: Many) -> Positions:
    """Where the same nodes are among others; nobody for those who are not among them."""
    if members_of(here.type) == members_of(there.type):
        return positions
    target = dict(zip(members_of(there.type), _starts(there), strict=True))
    shifts = np.zeros(len(parts_of(here)) + 1, dtype=np.int64)
    known = np.zeros(len(shifts), dtype=bool)
    for number, (name, start) in enumerate(zip(members_of(here.type), _starts(here), strict=True)):
        if name in target:
            shifts[number], known[number] = target[name] - start, True
    need(3 * positions.nbytes)
    # Nobody is of the part after the last.
    ends = np.append(_starts(here)[1:], np.iinfo(np.int64).max)
    of = np.where(positions < 0, len(shifts) - 1, np.searchsorted(ends, positions, side="right"))
    return took(np.where(known[of], positions + shifts[of], NO_NODE))


def _starts(found: Many) -> Positions:
    return found.starts[:-1] if isinstance(found, EntitySet) else np.zeros(1, dtype=np.int64)
