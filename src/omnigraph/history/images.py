"""Images: changed rows as changes, a bounded number of them at a time.

Owns the order of the changes of a step and the spelling of their values, which is that of
query results. Works on columns; only rows that are delivered become Python objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.changed_rows import ChangedRows, differing
from omnigraph.history.changes import OPS, Change, Endpoints, Image, Op
from omnigraph.history.compared import ComparedType
from omnigraph.read.output.json_text import join_texts, json_text

# What a change takes besides its images: names, the id of the type, punctuation.
OVERHEAD = 160


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
    chosen = [(OPS.index(op), tables[op].column("id")) for op in OPS if op in set(wanted)]
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
    befores = _Side(count)
    afters = _Side(count)
    changed: list[tuple[str, ...]] = [()] * count
    at, places = ordered.of("insert", start, stop)
    afters.put(at, type_, ordered.rows.inserted.take(places))
    at, places = ordered.of("delete", start, stop)
    befores.put(at, type_, ordered.rows.deleted.take(places))
    at, places = ordered.of("update", start, stop)
    was, now = ordered.rows.before.take(places), ordered.rows.after.take(places)
    befores.put(at, type_, was)
    afters.put(at, type_, now)
    for place, names in zip(at.tolist(), _changed(type_, was, now), strict=True):
        changed[place] = tuple(names)
    ids = ordered.ids.slice(start, count).to_pylist()
    ops = ordered.ops[start:stop].tolist()
    return [
        SizedChange(
            Change(type_.kind, type_.ref, id_, OPS[op], before, after, names),
            OVERHEAD + len(id_) + before_size + after_size,
        )
        for id_, op, before, after, names, before_size, after_size in zip(
            ids, ops, befores.images, afters.images, changed, befores.sizes, afters.sizes,
            strict=True,
        )
    ]  # fmt: skip


class _Side:
    """The images of one side of a range of changes, where there are any."""

    def __init__(self, count: int) -> None:
        self.images: list[Image | None] = [None] * count
        self.sizes: list[int] = [0] * count

    def put(self, at: npt.NDArray[np.int64], type_: ComparedType, rows: pa.Table) -> None:
        """Set the images of some changes from their rows."""
        if not rows.num_rows:
            return
        texts = _image_texts(type_, rows)
        sizes = pc.binary_length(texts).to_pylist()
        decoded = msgspec.json.decode(f"[{','.join(texts.to_pylist())}]")
        for place, image, size in zip(at.tolist(), decoded, sizes, strict=True):
            self.images[place] = _image(image)
            self.sizes[place] = size


def _image(decoded: dict[str, Any]) -> Image:
    ends = decoded.get("endpoints")
    endpoints = None if ends is None else Endpoints(ends["from"], ends["to"])
    return Image(decoded["properties"], endpoints)


def _image_texts(type_: ComparedType, rows: pa.Table) -> pa.Array:
    """The JSON of the images; a property that is not stored is null."""
    stored = set(rows.column_names)
    pieces: list[pa.Array | str] = ['{"properties":{']
    for number, name in enumerate(type_.properties):
        label = msgspec.json.encode(name).decode()
        pieces.append(f"{',' if number else ''}{label}:")
        pieces.append(_texts(rows, name) if name in stored else "null")
    pieces.append("}")
    if type_.kind == "edge":
        pieces += [',"endpoints":{"from":', _texts(rows, "src"), ',"to":', _texts(rows, "dst"), "}"]
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
    found: list[list[str]] = [[] for _ in range(now.num_rows)]
    stored = set(now.column_names)
    for name in type_.properties:
        if name in stored:
            for row in np.flatnonzero(differing(was.column(name), now.column(name))).tolist():
                found[row].append(name)
    return found
