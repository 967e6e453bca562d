"""Key conflicts: ids that a strict write may not meet.

Owns the refusal of an id that is stored already and of one that the input repeats.
The key of a keyed type is a matter of uniqueness and not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import KeyConflict
from omnigraph.write.change.change_set import TypeChange
from omnigraph.write.rules.violations import SHOWN, SourceMap

TWICE, EXISTS = "is there twice in the input for", "exists already in"


def key_text(entity_id: str, problem: str, type_name: str) -> str:
    """What is said about an id that a strict write may not meet."""
    return f"'{entity_id}' {problem} {type_name}"


@dataclass(frozen=True, slots=True)
class KeyClash:
    """Rows whose ids a strict write may not meet; ``rows`` are among ``ids`` and ``places``."""

    change: TypeChange
    ids: pa.Array
    rows: np.ndarray[Any, np.dtype[Any]]
    places: SourceMap
    problem: str

    def text(self, row: int) -> str:
        """What is said about one of the rows."""
        return key_text(self.ids[row].as_py(), self.problem, self.change.type.name)


def check_keys(change: TypeChange) -> None:
    """Refuse what a strict write may not meet."""
    for clash in key_clashes(change):
        _refuse(clash)


def key_clashes(change: TypeChange) -> Iterator[KeyClash]:
    """What a strict write may not meet: repeated ids, then stored ones."""
    if change.refuses_repeats:
        for batch in change.batches:
            ids = batch.rows.column("id").combine_chunks()
            rows = _repeats(ids)
            if len(rows):
                yield KeyClash(change, ids, rows, batch.places, TWICE)
    if change.refuses_existing and change.existing.num_rows:
        stored = pc.is_in(change.ids, value_set=change.existing.column("id").combine_chunks())
        rows = pc.indices_nonzero(stored).to_numpy()
        if len(rows):
            yield KeyClash(change, change.ids, rows, change.places, EXISTS)


def _repeats(ids: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The rows whose id an earlier row has."""
    codes = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    _, firsts = np.unique(codes, return_index=True)
    return np.setdiff1d(np.arange(len(codes)), firsts)


def _refuse(clash: KeyClash) -> None:
    conflicts = []
    lines = []
    rows = clash.rows
    for row in rows[:SHOWN].tolist():
        place = clash.places.place(row, "id")
        text = clash.text(row)
        lines.append(text if place is None else f"{place}: {text}")
        conflicts.append(
            {
                "entity_id": clash.ids[row].as_py(),
                "source": place.source if place else None,
                "line": place.line if place else None,
                "column": place.column if place else None,
            }
        )
    if len(rows) > len(lines):
        lines.append(f"… and {len(rows) - len(lines)} more")
    if len(rows) > 1:
        lines.append(f"{len(rows)} ids conflict; nothing was written")
    raise KeyConflict(
        "\n".join(lines),
        details={
            "type_key": clash.change.type_key,
            "entity_id": conflicts[0]["entity_id"],
            "total": len(rows),
            "conflicts": conflicts,
        },
    )
