"""Key conflicts: ids that a strict write may not meet.

Owns the refusal of an id that is stored already and of one that the input repeats.
The key of a keyed type is a matter of uniqueness and not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import KeyConflict, quoted
from omnigraph.write.change.change_set import Rows, TypeChange, repeated_rows
from omnigraph.write.rules.violations import SHOWN, SourceMap, Violation, report

TWICE, EXISTS = "is there twice in the input for", "exists already in"


def key_text(entity_id: str, problem: str, type_name: str) -> str:
    """What is said about an id that a strict write may not meet."""
    return f"'{quoted(entity_id)}' {problem} {type_name}"


@dataclass(frozen=True, slots=True)
class KeyClash:
    """Rows whose ids a strict write may not meet; ``rows`` are among ``ids`` and ``places``."""

    change: TypeChange
    ids: pa.Array
    rows: Rows
    places: SourceMap
    problem: str

    def violations(self) -> Iterator[Violation]:
        """What is said about each of the rows."""
        for row in self.rows.tolist():
            id_ = self.ids[row].as_py()
            text = key_text(id_, self.problem, self.change.type.name)
            place = self.places.place(row, "id")
            yield Violation("key_conflict", text, self.change.type_key, "id", id_, place)


def check_keys(change: TypeChange) -> None:
    """Refuse what a strict write may not meet."""
    for clash in key_clashes(change):
        _refuse(clash)


def key_clashes(change: TypeChange) -> Iterator[KeyClash]:
    """What a strict write may not meet: repeated ids, then stored ones."""
    if change.refuses_repeats:
        for batch in change.batches:
            ids = batch.rows.column("id").combine_chunks()
            rows, _ = repeated_rows(ids)
            if len(rows):
                yield KeyClash(change, ids, rows, batch.places, TWICE)
    if change.refuses_existing and change.existing.num_rows:
        stored = pc.is_in(change.ids, value_set=change.existing.column("id").combine_chunks())
        rows = pc.indices_nonzero(stored).to_numpy()
        if len(rows):
            yield KeyClash(change, change.ids, rows, change.places, EXISTS)


def _refuse(clash: KeyClash) -> None:
    total = len(clash.rows)
    found = list(islice(clash.violations(), SHOWN))
    summary = f"{total} ids conflict" if total > 1 else None
    members = ("entity_id", "source", "line", "column")
    raise KeyConflict(
        report(list(map(str, found)), total, summary),
        details={
            "type_key": clash.change.type_key,
            "entity_id": found[0].entity_id,
            "total": total,
            "conflicts": [{name: one.body()[name] for name in members} for one in found],
        },
    )
