"""Streams of changes: what two states differ in, taken a page at a time.

Owns the work that a page left in the middle, kept for the next one, and the order of changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock

from omnigraph.errors import BadRequest, ChangeFeedGap, ResourceLimit, StorageError
from omnigraph.history.changed_rows import ChangedRows, changed_rows
from omnigraph.history.changes import Change
from omnigraph.history.compared import ComparedType
from omnigraph.history.images import OrderedRows, SizedChange, changes_of, in_order_of_ids
from omnigraph.history.position import ChangePosition, rejected, type_place
from omnigraph.history.selection import ChangeFilter
from omnigraph.rows.external_sort import DEFAULT_LIMITS, SortLimits

DEFAULT_CHANGES = 1000
MAX_CHANGES = 8192
PAGE_BYTES = 4 << 20
# How many rows become Python objects at a time.
_DECODED = 1024

KEPT = 4


class ChangeStream:
    """The changes of some types in the order they are given."""

    def __init__(
        self,
        types: Iterable[ComparedType],
        wanted: ChangeFilter,
        after: ChangePosition | None = None,
        limits: SortLimits = DEFAULT_LIMITS,
    ) -> None:
        chosen = [type_ for type_ in types if wanted.has_type(type_.kind, type_.ref.id)]
        self._pieces = _pieces(chosen, wanted, after, limits)
        self._ready: deque[SizedChange] = deque()

    def take(self, room: PageRoom) -> list[SizedChange]:
        """The next changes, as many as there is room for."""
        taken: list[SizedChange] = []
        while not self.is_done and room.admits(self._ready[0]):
            taken.append(self._ready.popleft())
            room.use(taken[-1])
        return taken

    def put_back(self, taken: Sequence[SizedChange]) -> None:
        """Return what was taken last, to be taken again."""
        self._ready.extendleft(reversed(taken))

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return True
            self._ready.extend(piece)
        return False

    def __iter__(self) -> Iterator[Change]:
        while not self.is_done:
            yield self._ready.popleft().change


class PageRoom:
    """How much still fits on a page: changes by number and by bytes."""

    def __init__(self, changes: int, size: int = PAGE_BYTES) -> None:
        self._changes = changes
        self._bytes = size
        self.is_untouched = True

    def admits(self, change: SizedChange) -> bool:
        """Whether a change fits; a page that has none yet takes one of any size."""
        return self._changes > 0 and (self.is_untouched or change.size <= self._bytes)

    def use(self, change: SizedChange) -> None:
        """Put a change on the page."""
        self.is_untouched = False
        self._changes -= 1
        self._bytes -= change.size


def page_room(limit: int | None) -> PageRoom:
    """The room of a page of at most so many changes; refuses a limit that cannot be."""
    if limit is None:
        return PageRoom(DEFAULT_CHANGES)
    if limit < 1:
        raise BadRequest(f"the limit of a page is a number of changes from 1 on, not {limit}")
    if limit > MAX_CHANGES:
        resource = "commit_changes_page_changes"
        raise ResourceLimit(
            f"resource limit exceeded for {resource}: actual {limit}, limit {MAX_CHANGES}",
            details={"resource": resource, "limit": MAX_CHANGES, "actual": limit},
        )
    return PageRoom(limit)


def rows_of(type_: ComparedType, limits: SortLimits = DEFAULT_LIMITS) -> Iterator[ChangedRows]:
    """The changed rows of a type; files that are gone were reclaimed by a cleanup."""
    try:
        type_.check_columns()
        yield from changed_rows(type_.before, type_.after, limits=limits)
    except StorageError as error:
        if error.kind != "not_found":
            raise
        older = type_.commits[0]
        raise ChangeFeedGap(
            f"what {type_.ref.name} was at commit {older} cannot be read any more: cleanup has "
            "reclaimed it; compare newer commits, and let cleanup keep more of them in future",
            details={"first_unreadable_commit_id": older},
        ) from error


def _pieces(
    types: list[ComparedType],
    wanted: ChangeFilter,
    after: ChangePosition | None,
    limits: SortLimits,
) -> Iterator[list[SizedChange]]:
    if after is not None:
        types = _from(types, after)
    for type_ in types:
        behind = after if after is not None and type_place(type_) == after.type_place else None
        for rows in rows_of(type_, limits):
            ordered = in_order_of_ids(rows, wanted.ops)
            start = 0
            if behind is not None:
                start, is_passed = behind.skipped(ordered.ids)
                behind = None if is_passed else behind
            yield from _decoded(type_, ordered, start)


def _from(types: list[ComparedType], after: ChangePosition) -> list[ComparedType]:
    if after.type_place not in map(type_place, types):
        raise rejected("the change it stands behind is not there")
    return [type_ for type_ in types if type_place(type_) >= after.type_place]


def _decoded(type_: ComparedType, ordered: OrderedRows, start: int) -> Iterator[list[SizedChange]]:
    for begin in range(start, len(ordered), _DECODED):
        yield changes_of(type_, ordered, begin, min(begin + _DECODED, len(ordered)))


StreamKey = tuple[str, str, ChangePosition | None]
"""A commit, the digest of a selection, and how far its changes were delivered."""


class PausedStreams:
    """Streams by where they stand; whoever takes one has it alone."""

    def __init__(self) -> None:
        self._streams: dict[StreamKey, ChangeStream] = {}
        self._lock = Lock()

    def keep(self, place: StreamKey, stream: ChangeStream) -> None:
        """Keep a stream; of too many the oldest goes."""
        with self._lock:
            self._streams.pop(place, None)
            self._streams[place] = stream
            while len(self._streams) > KEPT:
                del self._streams[next(iter(self._streams))]

    def take(self, place: StreamKey) -> ChangeStream | None:
        """The stream that stands there, if there is one."""
        with self._lock:
            return self._streams.pop(place, None)
