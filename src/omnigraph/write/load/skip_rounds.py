"""Skip rounds: leaving out the rows that break a rule, until the rest breaks none.

Owns the rounds, on every engine, and what they do in this process. In each, every rule is asked
about the rows that are left, and all rows to blame go at once; a row that has gone never comes
back. What no row of the input is to blame for cannot be skipped and is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
import pyarrow.compute as pc

from omnigraph.lang.structural import SRC
from omnigraph.write.change.change_set import ChangeSet, TypeBatch, type_key
from omnigraph.write.load.changes import LoadMode, load_changes
from omnigraph.write.load.sifting import EVERY, chosen
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import ReadSet
from omnigraph.write.rules.check import check_together
from omnigraph.write.rules.evaluation import Evaluation
from omnigraph.write.rules.uniqueness import key_clashes
from omnigraph.write.rules.violations import Violation, Violations, raise_unplaced


class CheckRound(Protocol):
    """What one look at the rows that are left has found."""

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong with them."""


Found = TypeVar("Found", bound=CheckRound)


def skip_rounds(look: Callable[[], Found], leave_out: Callable[[Found], None]) -> Found:
    """Leave out rows until the rest breaks no rule; the look that found nothing.

    ``look`` asks every rule about the rows that are left. ``leave_out`` raises what no row of the
    input is to blame for.
    """
    while not (found := look()).is_right:
        leave_out(found)
    return found


@dataclass(frozen=True, slots=True)
class AcceptedRows:
    """The changes that some batches make, and what is wrong with them.

    When nothing is, the violations say why rows were left out before.
    """

    changes: ChangeSet
    batches: list[TypeBatch]
    violations: list[Violation]

    @property
    def is_right(self) -> bool:
        """Whether they break no rule."""
        return not self.violations


def settle(
    batches: Sequence[TypeBatch], mode: LoadMode, base: Base, reads: ReadSet
) -> AcceptedRows:
    """Leave out rows until the rest can be loaded."""
    left = {
        type_key(batch.type): np.arange(batch.rows.num_rows, dtype=np.int64) for batch in batches
    }
    gone: list[Violation] = []

    def look() -> AcceptedRows:
        # A type whose every row was left out is left alone; one given as empty is not.
        now = [
            chosen(batch, left[type_key(batch.type)])
            for batch in batches
            if len(left[type_key(batch.type)]) or not batch.rows.num_rows
        ]
        changes = load_changes(now, mode, base, reads)
        trial = Evaluation(changes, base, reads, Violations(EVERY))
        check_together(trial)
        found = trial.violations.kept
        if not found:
            clashes = (clash for one in changes.types.values() for clash in key_clashes(one))
            found = [violation for clash in clashes for violation in clash.violations()]
        return AcceptedRows(changes, now, found)

    def leave_out(found: AcceptedRows) -> None:
        raise_unplaced(found.violations)
        blamed = _blamed(found.violations, {type_key(one.type): one for one in found.batches})
        gone.extend(violation for rows in blamed.values() for violation in rows.values())
        for key, rows in blamed.items():
            left[key] = np.delete(left[key], list(rows))

    return replace(skip_rounds(look, leave_out), violations=gone)


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
        raise AssertionError("what no row is to blame for has been raised")
    if violation.rule != "cardinality":
        return [(violation.place.row, violation)]
    # No edge of a source is more to blame than another.
    ends = batch.rows.column(SRC)
    rows = pc.indices_nonzero(pc.equal(ends, violation.entity_id)).to_pylist()
    own = batch.places.place
    return [(row, replace(violation, place=own(row, "from"))) for row in rows]
