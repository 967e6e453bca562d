"""Key conflicts: ids that a strict write may not meet.

Owns the refusal of an id that is stored already and of one that the input repeats.
The key of a keyed type is a matter of uniqueness and not decided here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import KeyConflict
from omnigraph.write.changes import TypeChange
from omnigraph.write.violations import SHOWN, Places


def check_keys(change: TypeChange) -> None:
    """Refuse what a strict write may not meet."""
    if change.refuses_repeats:
        for batch in change.batches:
            ids = batch.rows.column("id").combine_chunks()
            _refuse(change, ids, _repeats(ids), batch.places, "is there twice in the input for")
    if change.refuses_existing and change.existing.num_rows:
        stored = pc.is_in(change.ids, value_set=change.existing.column("id").combine_chunks())
        rows = pc.indices_nonzero(stored).to_numpy()
        _refuse(change, change.ids, rows, change.places, "exists already in")


def _repeats(ids: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The rows whose id an earlier row has."""
    codes = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    _, firsts = np.unique(codes, return_index=True)
    return np.setdiff1d(np.arange(len(codes)), firsts)


def _refuse(
    change: TypeChange,
    ids: pa.Array,
    rows: np.ndarray[Any, np.dtype[Any]],
    places: Places,
    problem: str,
) -> None:
    if not len(rows):
        return
    conflicts = []
    lines = []
    for row in rows[:SHOWN].tolist():
        entity_id = ids[row].as_py()
        place = places.place(row, "id")
        text = f"'{entity_id}' {problem} {change.type.name}"
        lines.append(text if place is None else f"{place}: {text}")
        conflicts.append(
            {
                "entity_id": entity_id,
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
            "type_key": change.type_key,
            "entity_id": conflicts[0]["entity_id"],
            "total": len(rows),
            "conflicts": conflicts,
        },
    )
