"""Skipping: leaving out the rows that break a rule, until the rest breaks none.

Owns the rounds. In each, every rule is asked about the rows that are left, and all rows
to blame go at once; a row that has gone never comes back. What no row of the input is to
blame for cannot be skipped and is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from omnigraph.write.change.change_set import ChangeSet
from omnigraph.write.change.type_batch import TypeBatch, type_key
from omnigraph.write.load.changes import LoadMode, load_changes
from omnigraph.write.load.sifting import EVERY, chosen
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import ReadSet
from omnigraph.write.rules.check import check_together
from omnigraph.write.rules.evaluation import Evaluation
from omnigraph.write.rules.key_conflicts import KeyClash, key_clashes
from omnigraph.write.rules.violations import Violation, Violations


@dataclass(frozen=True, slots=True)
class AcceptedRows:
    """Changes that break no rule, the batches they came from, and why rows were left out."""

    changes: ChangeSet
    batches: list[TypeBatch]
    violations: list[Violation]


@dataclass(slots=True)
class _Kept:
    """A batch, and which of its rows are left."""

    batch: TypeBatch
    rows: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = np.arange(self.batch.rows.num_rows, dtype=np.int64)

    @property
    def is_touched(self) -> bool:
        """A type whose every row was left out is left alone; one given as empty is not."""
        return len(self.rows) > 0 or not self.batch.rows.num_rows

    def now(self) -> TypeBatch:
        return chosen(self.batch, self.rows)


def settle(
    batches: Sequence[TypeBatch], mode: LoadMode, base: Base, reads: ReadSet
) -> AcceptedRows:
    """Leave out rows until the rest can be loaded."""
    kept = {type_key(batch.type): _Kept(batch) for batch in batches}
    gone: list[Violation] = []
    while True:
        now = [one.now() for one in kept.values() if one.is_touched]
        changes = load_changes(now, mode, base, reads)
        trial = Evaluation(changes, base, reads, Violations(EVERY))
        check_together(trial)
        found = trial.violations.kept
        if not found:
            clashes = [c for change in changes.types.values() for c in key_clashes(change)]
            found = [violation for clash in clashes for violation in _of_clash(clash)]
        if not found:
            return AcceptedRows(changes, now, gone)
        _refuse_unplaced(found)
        blamed = _blamed(found, {type_key(batch.type): batch for batch in now})
        gone += [violation for rows in blamed.values() for violation in rows.values()]
        for key, rows in blamed.items():
            kept[key].rows = np.delete(kept[key].rows, list(rows))


def _of_clash(clash: KeyClash) -> Iterable[Violation]:
    for row in clash.rows.tolist():
        yield Violation(
            "key_conflict",
            clash.text(row),
            clash.change.type_key,
            "id",
            clash.ids[row].as_py(),
            clash.places.place(row, "id"),
        )


def _refuse_unplaced(found: Sequence[Violation]) -> None:
    unplaced = Violations()
    for violation in found:
        if violation.place is None:
            unplaced.add(violation)
    unplaced.raise_if_any()


def _blamed(
    found: Sequence[Violation], batches: dict[str, TypeBatch]
) -> dict[str, dict[int, Violation]]:
    """The rows to blame by type, each with the first thing that is wrong with it."""
    blamed: dict[str, dict[int, Violation]] = {}
    for violation in found:
        key = violation.type_key or ""
        rows = blamed.setdefault(key, {})
        for row, own in _rows(violation, batches[key]):
            rows.setdefault(row, own)
    return blamed


def _rows(violation: Violation, batch: TypeBatch) -> list[tuple[int, Violation]]:
    if violation.place is None or violation.place.row is None:
        raise AssertionError("a violation of a load names its row")
    if violation.rule != "cardinality":
        return [(violation.place.row, violation)]
    # No edge of a source is more to blame than another.
    ends = batch.rows.column("src")
    rows = pc.indices_nonzero(pc.equal(ends, violation.entity_id)).to_pylist()
    own = batch.places.place
    return [(row, replace(violation, place=own(row, "from"))) for row in rows]
