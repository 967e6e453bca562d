"""Units of a search: what is searched for once, however many rows ask for it.

Owns finding them among rows, and which of them are alike in what conditions look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.lang.query import plan
from omnigraph.read.execute.bindings import Bindings, Positions
from omnigraph.read.execute.grouping import value_codes
from omnigraph.storage.budget import need, took


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows that are alike in what conditions look at: the group of each unit, and a row of each."""

    of: Positions
    rows: Positions
    uses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Units:
    """What is searched for once: a start, the end where it is known, what conditions look at."""

    sources: Positions
    ends: Positions
    groups: Groups
    of_rows: Positions
    """The unit of each row; -1 where an end is nobody."""
    rows: Positions
    """The rows, unit by unit."""
    starts: Positions
    """Where the rows of each unit begin."""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.sources)

    def lefts(self, step: plan.Expand) -> Positions:
        """The left ends, where both are known."""
        return self.ends if step.from_right else self.sources

    @classmethod
    def of(cls, step: plan.Expand, rows: Bindings) -> Units:
        """Those of some rows."""
        sources = rows.columns[step.source]
        ends = rows.columns[step.target] if step.closes else np.zeros_like(sources)
        alive = np.flatnonzero((sources >= 0) & (ends >= 0))
        uses = () if step.each is None else step.each.uses
        uses = tuple(name for name in uses if name in rows.columns or name in rows.values)
        group_rows, group_of = first_of_each(
            [_codes(rows, name)[alive] for name in uses], len(alive)
        )
        keys = [group_of, sources[alive], ends[alive]]
        first, of_alive = first_of_each(keys, len(alive))
        need(4 * 8 * rows.count)
        of = np.full(rows.count, -1, dtype=np.int64)
        of[alive] = of_alive
        ordered = alive[np.argsort(of_alive, kind="stable")]
        sizes = np.bincount(of_alive, minlength=len(first))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        groups = Groups(group_of[first], alive[group_rows], uses)
        chosen = alive[first]
        return cls(sources[chosen], ends[chosen], groups, of, took(ordered), starts)


def _codes(rows: Bindings, name: str) -> Positions:
    """Numbers that tell the rows apart by a variable or a computed value."""
    return rows.columns[name] if name in rows.columns else value_codes(rows.values[name])


def first_of_each(keys: Sequence[Positions], count: int) -> tuple[Positions, Positions]:
    """The first row of each distinct combination, and of which each row is."""
    of = np.zeros(count, dtype=np.int64)
    for key in keys:
        need(6 * 8 * count)
        _, codes = np.unique(key, return_inverse=True)
        _, of = np.unique(of * (len(key) + 1) + codes.reshape(-1), return_inverse=True)
        of = of.reshape(-1).astype(np.int64)
    _, first = np.unique(of, return_index=True)
    return first.astype(np.int64), took(of)


def matches(keys: Positions, wanted: Positions) -> tuple[Positions, Positions]:
    """Every key that is wanted: which key, and by whom."""
    order = np.argsort(wanted, kind="stable")
    begin = np.searchsorted(wanted[order], keys)
    size = np.searchsorted(wanted[order], keys, side="right") - begin
    of = np.repeat(np.arange(len(keys)), size)
    place = np.arange(len(of)) + np.repeat(begin - (np.cumsum(size) - size), size)
    return of, order[place]
