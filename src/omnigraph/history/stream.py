"""Streams of changes: what two states differ in, taken a page at a time.

Owns the order of changes, the spelling of their values, which is that of query results, and the
work that a page left in the middle, kept for the next one. Works on columns; only rows that are
delivered become Python objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest, ChangeFeedGap, ResourceLimit, StorageError
from omnigraph.history.changed_rows import (
    ChangeCounts,
    ChangedRows,
    Mask,
    changed_rows,
    count_changed,
    every_row,
    pair_differs,
)
from omnigraph.history.changes import OPS, Change, ChangeFilter, Endpoints, Image, Op
from omnigraph.history.compared_types import ComparedType
from omnigraph.history.position import ChangePosition, rejected, type_place
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.read.output.json_text import join_texts, json_text
from omnigraph.rows.external_sort import DEFAULT_LIMITS, SortLimits
from omnigraph.rows.references import nodes_of, types_of
from omnigraph.storage.tables.rows_in_place import ColumnPair
from omnigraph.storage.tables.table import Table, column_names

# What a change takes besides its images: names, the id of the type, punctuation.
OVERHEAD = 160

DEFAULT_CHANGES = 1000
MAX_CHANGES = 8192
PAGE_BYTES = 4 << 20
# How many rows become Python objects at a time.
_DECODED = 1024

KEPT = 4


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """Changed rows by id: the operation of each, and its place among those of that operation."""

    rows: ChangedRows
    ids: pa.Array
    ops: npt.NDArray[np.int8]
    places: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, op: Op, start: int, stop: int) -> tuple[npt.NDArray[np.int64], pa.Array]:
        """Where the changes of an operation stand in a range, and the places of their rows."""
        found = np.flatnonzero(self.ops[start:stop] == OPS.index(op))
        return found, pa.array(self.places[start:stop][found])


@dataclass(frozen=True, slots=True)
class SizedChange:
    """A change and about how many bytes of JSON it is."""

    change: Change
    size: int


def in_order_of_ids(rows: ChangedRows, wanted: Iterable[Op]) -> OrderedRows:
    """The changes of the wanted operations, all of them by id."""
    tables = {"insert": rows.inserted, "update": rows.after, "delete": rows.deleted}
    chosen = [(OPS.index(op), tables[op].column(ID)) for op in OPS if op in set(wanted)]
    ids = pa.chunked_array(
        [chunk for _, column in chosen for chunk in column.chunks], type=pa.string()
    ).combine_chunks()
    ops = np.repeat([op for op, _ in chosen], [len(column) for _, column in chosen])
    places = [np.arange(len(column), dtype=np.int64) for _, column in chosen]
    order = pc.sort_indices(ids)
    moved = order.to_numpy()
    return OrderedRows(
        rows, ids.take(order), ops.astype(np.int8)[moved], np.concatenate(places)[moved]
    )


def changes_of(
    type_: ComparedType, ordered: OrderedRows, start: int, stop: int
) -> list[SizedChange]:
    """The changes of a range of a step."""
    count = stop - start
    befores = _Side(count, type_, type_.names_before)
    afters = _Side(count, type_, type_.names_after)
    changed: list[tuple[str, ...]] = [()] * count
    at, places = ordered.of("insert", start, stop)
    afters.put(at, ordered.rows.inserted.take(places))
    at, places = ordered.of("delete", start, stop)
    befores.put(at, ordered.rows.deleted.take(places))
    at, places = ordered.of("update", start, stop)
    was, now = ordered.rows.before.take(places), ordered.rows.after.take(places)
    befores.put(at, was)
    afters.put(at, now)
    for place, names in zip(at.tolist(), _changed(type_, was, now), strict=True):
        changed[place] = tuple(names)
    ids = ordered.ids.slice(start, count).to_pylist()
    ops = ordered.ops[start:stop].tolist()
    return [
        SizedChange(
            Change(type_.kind, type_.ref, id_, OPS[op], before, after, names, type_.former),
            OVERHEAD + len(id_) + before_size + after_size,
        )
        for id_, op, before, after, names, before_size, after_size in zip(
            ids, ops, befores.images, afters.images, changed, befores.sizes, afters.sizes,
            strict=True,
        )
    ]  # fmt: skip


class _Side:
    """The images of one side of a range of changes, where there are any, under its own names."""

    def __init__(self, count: int, type_: ComparedType, names: Sequence[str]) -> None:
        self.images: list[Image | None] = [None] * count
        self.sizes: list[int] = [0] * count
        self._type = type_
        self._names = names

    def put(self, at: npt.NDArray[np.int64], rows: pa.Table) -> None:
        """Set the images of some changes from their rows."""
        if not rows.num_rows:
            return
        texts = _image_texts(self._type, self._names, rows)
        sizes = pc.binary_length(texts).to_pylist()
        decoded = msgspec.json.decode(f"[{','.join(texts.to_pylist())}]")
        for place, image, size in zip(at.tolist(), decoded, sizes, strict=True):
            self.images[place] = _image(image)
            self.sizes[place] = size


def _image(decoded: dict[str, Any]) -> Image:
    ends = decoded.get("endpoints")
    endpoints = (
        None
        if ends is None
        else Endpoints(ends["from"], ends["to"], ends.get("from_type"), ends.get("to_type"))
    )
    return Image(decoded["properties"], endpoints)


def _image_texts(type_: ComparedType, names: Sequence[str], rows: pa.Table) -> pa.Array:
    """The JSON of the images; a property that is not stored is null."""
    stored = set(rows.column_names)
    pieces: list[pa.Array | str] = ['{"properties":{']
    for number, name in enumerate(names):
        label = msgspec.json.encode(name).decode()
        pieces.append(f"{',' if number else ''}{label}:")
        pieces.append(_texts(rows, name) if name in stored else "null")
    pieces.append("}")
    if type_.kind == "edge":
        for word, column in (("from", SRC), ("to", DST)):
            label = f',"endpoints":{{"{word}":' if column == SRC else f',"{word}":'
            if column not in type_.shared:
                pieces += [label, _texts(rows, column)]
                continue
            ends = rows.column(column).combine_chunks()
            types = json_text(types_of(ends, type_.end_types))
            pieces += [label, json_text(nodes_of(ends)), f',"{word}_type":', types]
        pieces.append("}")
    joined = join_texts(*pieces, "}")
    # A type without properties is all text and no column.
    return joined if isinstance(joined, pa.Array) else pa.array([joined.as_py()] * rows.num_rows)


def _texts(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return json_text(
        pa.concat_arrays(column.chunks) if column.num_chunks else column.combine_chunks()
    )


def _changed(type_: ComparedType, was: pa.Table, now: pa.Table) -> list[list[str]]:
    """For every updated row, the properties that say something else."""
    masks: dict[str, Mask] = {}
    for pair in type_.properties:
        name = pair.after or pair.before
        if name is not None:
            stored = ColumnPair(_stored(was, pair.before), _stored(now, pair.after))
            mask = pair_differs(was, now, stored)
            # A property that went may have left its name to another.
            masks[name] = mask | masks[name] if name in masks else mask
    found: list[list[str]] = [[] for _ in range(now.num_rows)]
    for name, mask in masks.items():
        for row in np.flatnonzero(mask).tolist():
            found[row].append(name)
    return found


def _stored(rows: pa.Table, name: str | None) -> str | None:
    return name if name in rows.column_names else None


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
    """The changed rows of a type; all of one that only one of the states has."""
    before, after = type_.before, type_.after
    with _reclaimed(type_):
        if before is not None and after is not None:
            yield from changed_rows(before, after, type_.columns, limits=limits)
        elif after is not None:
            for rows in _all(after, type_, type_.names_after, limits):
                nothing = rows.slice(0, 0)
                yield ChangedRows(rows, nothing, nothing, nothing)
        elif before is not None:
            for rows in _all(before, type_, type_.names_before, limits):
                nothing = rows.slice(0, 0)
                yield ChangedRows(nothing, nothing, nothing, rows)


def counts_of(type_: ComparedType) -> ChangeCounts:
    """How many rows of a type changed; those of one that only one of the states has are known."""
    before, after = type_.before, type_.after
    if before is None or after is None:
        new, old = (0 if found is None else found.pin.row_count for found in (after, before))
        return ChangeCounts(inserted=new, deleted=old)
    with _reclaimed(type_):
        return count_changed(before, after, type_.columns)


def _all(
    table: Table, type_: ComparedType, names: Sequence[str], limits: SortLimits
) -> Iterator[pa.Table]:
    stored = column_names(table)
    present = [name for name in names if name in stored]
    return every_row(table, [*type_.structural, *present], limits)


@contextmanager
def _reclaimed(type_: ComparedType) -> Iterator[None]:
    """Say of files that are gone that a cleanup has reclaimed them."""
    try:
        yield
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
