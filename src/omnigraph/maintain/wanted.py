"""What is wanted of a graph: the one measure by which something is due.

Owns the thresholds, for whoever shows the health of a graph and for whoever restores it, so that
both say the same. Pure: what is there is given, and nothing is looked up here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

NeedKind = Literal["fragments", "deletions", "indexes"]

TARGET_ROWS = 250_000
"""How many rows a fragment is to have; one of less than half of them is small."""
FEW_FRAGMENTS = 16
"""So many small fragments are left alone: writers fold theirs, and reads do not notice these."""
MANY_DELETED = 0.2
"""The share of a table's stored rows that may be deleted ones."""
FEW_DELETED = 64
"""So many deleted rows are nobody's business."""
FEW_ROWS = 256
"""So many rows are scanned as fast as they are looked up: no index is due for them."""
UNCOVERED_PART = 0.1
"""The share of rows that an index may lack: they are found by scanning."""
UNCOVERED_FRAGMENTS = 4
"""So many fragments may lie beside an index."""
LEFTOVER_BYTES = 64 * 2**20
LEFTOVER_PART = 0.2
LEFTOVER_FLOOR = 2**20
"""Leftovers are worth a cleanup at so many bytes, or at that share of all, if not just a few."""
MANY_COMMITS = 64
"""So many commits that are to go are worth a cleanup, whatever they take."""
PORTION_BYTES = 512 * 2**20
"""Tables that are worked on as one commit are no more than this together, or alone."""
LONGEST_PAUSE = 8
"""So many times as long as wanted is the pause of somebody who finds nothing to do."""
MUCH_HISTORY = 10
"""So many times what is live, everything else is a lot."""
STALE_AFTER = timedelta(days=30)
"""A branch that nobody has written to for so long is one to ask about."""


@dataclass(frozen=True, slots=True)
class IndexShape:
    """One index of a table: what there is to do for it, and what it covers."""

    property: str
    kind: str | None
    is_lacking: bool
    """Whether it is to be built or extended."""
    rows_covered: int = 0
    rows_total: int = 0
    uncovered_fragments: int = 0
    is_unasked: bool = False


@dataclass(frozen=True, slots=True)
class TableShape:
    """One pinned version of a table, as far as maintenance has a say in it."""

    type_key: str
    rows: int
    fragment_rows: tuple[int, ...] = ()
    """The rows that every fragment was written with, deleted ones included."""
    deleted_rows: int = 0
    indexes: tuple[IndexShape, ...] = ()
    live_bytes: int = 0

    @property
    def small_fragments(self) -> int:
        """How many fragments are worth merging with others."""
        return sum(rows < TARGET_ROWS // 2 for rows in self.fragment_rows)


@dataclass(frozen=True, slots=True)
class Need:
    """One reason to work on a table."""

    kind: NeedKind
    reason: str


def needs(shape: TableShape) -> tuple[Need, ...]:
    """Why a table is to be worked on; nothing for one that is as it should be."""
    return tuple(_needs(shape))


def _needs(shape: TableShape) -> Iterator[Need]:
    small = shape.small_fragments
    if small > FEW_FRAGMENTS:
        yield Need("fragments", f"{small:,} small fragments")
    stored = sum(shape.fragment_rows)
    if shape.deleted_rows > FEW_DELETED and shape.deleted_rows > MANY_DELETED * stored:
        yield Need("deletions", f"{shape.deleted_rows:,} of {stored:,} stored rows are deleted")
    for reason, names in _index_needs(shape.indexes).items():
        yield Need("indexes", f"{reason}: {first_of(sorted(names))}")


def _index_needs(indexes: Iterable[IndexShape]) -> dict[str, set[str]]:
    """The properties whose indexes are due, by what they lack."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for index in indexes:
        uncovered = index.rows_total - index.rows_covered
        if index.is_unasked:
            found["indexes that nobody asks for"].add(index.property)
        elif not index.is_lacking or uncovered < FEW_ROWS:
            continue
        elif index.rows_covered == 0:
            found["indexes that are not built"].add(index.property)
        elif (
            index.uncovered_fragments > UNCOVERED_FRAGMENTS
            or uncovered > UNCOVERED_PART * index.rows_total
        ):
            found["indexes that lack rows"].add(index.property)
    return found


def is_worth_cleaning(reclaimable: int, stored: int) -> bool:
    """Whether what would go is enough to begin an epoch on every branch for."""
    is_much = reclaimable >= LEFTOVER_PART * stored and reclaimable >= LEFTOVER_FLOOR
    return reclaimable >= LEFTOVER_BYTES or is_much


def are_worth_reclaiming(commits: int, reclaimable: int, stored: int) -> bool:
    """The same where commits go that nobody wants to keep."""
    return commits >= MANY_COMMITS or is_worth_cleaning(reclaimable, stored)


def next_pause(every: float, idle_rounds: int) -> float:
    """How long to wait for the next round, in seconds: longer and longer while nothing is due."""
    return every * float(min(2**idle_rounds, LONGEST_PAUSE))


def is_mostly_history(unneeded: int, live: int) -> bool:
    """Whether what the newest state does not need is out of proportion to what it needs."""
    return unneeded >= LEFTOVER_BYTES and unneeded > MUCH_HISTORY * live


def is_stale(newest: int, now: int) -> bool:
    """Whether a branch was left alone for long; times are microseconds since the epoch."""
    return now - newest > STALE_AFTER // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class DueTable:
    """A table that is to be worked on."""

    shape: TableShape
    needs: tuple[Need, ...]

    @property
    def reason(self) -> str:
        """All reasons in words."""
        return "; ".join(need.reason for need in self.needs)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which due tables are worked on now, and which have to wait for the next round."""

    now: tuple[DueTable, ...]
    later: tuple[DueTable, ...]

    def portions(self) -> Iterator[tuple[DueTable, ...]]:
        """What is worked on at once: so much that it pays, so little that one may stop after it."""
        found: list[DueTable] = []
        for one in self.now:
            if found and sum(each.shape.live_bytes for each in (*found, one)) > PORTION_BYTES:
                yield tuple(found)
                found = []
            found.append(one)
        if found:
            yield tuple(found)


def choose_tables(shapes: Iterable[TableShape], max_bytes: int | None) -> Chosen:
    """The due tables that fit a budget: the more there is to win for a byte, the sooner.

    One that is larger than any budget waits for ever, and is told as left each time.
    """
    due = [DueTable(shape, found) for shape in shapes if (found := needs(shape))]
    due.sort(key=lambda one: (-_gain(one), one.shape.type_key))
    now: list[DueTable] = []
    later: list[DueTable] = []
    left = max_bytes
    for one in due:
        if left is not None and one.shape.live_bytes > left:
            later.append(one)
            continue
        now.append(one)
        left = None if left is None else left - one.shape.live_bytes
    return Chosen(tuple(now), tuple(later))


def _gain(due: DueTable) -> float:
    """What work on a table wins, by what it costs: small fragments cost every reader."""
    weight = due.shape.small_fragments + 100 * len(due.needs)
    return weight / (1 + due.shape.live_bytes / 2**20)


def first_of(names: Sequence[str], count: int = 3) -> str:
    """A few names, and how many more there are."""
    rest = len(names) - count
    return ", ".join(names[:count]) + (f" and {rest:,} more" if rest > 0 else "")
