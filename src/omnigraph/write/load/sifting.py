"""Sifting: input told apart into rows that obey the rules of one row, and rejects.

Owns what happens to a row that is wrong by itself, the same in this process and inside
Spark tasks: it is left out, with the first thing that is wrong with it. Never looks at
other rows or at the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.embed.fill import fill_vectors
from omnigraph.embed.protocol import Embedder
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.write.change.type_batch import EntityType, TypeBatch
from omnigraph.write.load.columns.frames import read_frame
from omnigraph.write.load.columns.typed_rows import finish
from omnigraph.write.load.ndjson.decode import are_utf8, read_lines
from omnigraph.write.load.ndjson.envelopes import group_by_type
from omnigraph.write.load.ndjson.line_errors import LineErrors, first_of_each
from omnigraph.write.load.ndjson.lines import Lines, NdjsonSource
from omnigraph.write.load.ndjson.locate import LinePlaces
from omnigraph.write.load.source_map import ChosenPlaces, NumberedPlaces
from omnigraph.write.rules.row_rules import check_required, check_values
from omnigraph.write.rules.violations import Violation, Violations

Numbers = npt.NDArray[np.int64]
EVERY = 1 << 62


@dataclass(frozen=True, slots=True)
class SiftedBatch:
    """Rows of one type that are right by themselves, and the number of the line of each."""

    batch: TypeBatch
    lines: Numbers


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """What is left of some input, and one violation for every row that was left out."""

    batches: list[SiftedBatch] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)


def sift_lines(
    sources: Sequence[NdjsonSource], catalog: Catalog, embedder: Embedder
) -> CheckedRows:
    """Sift NDJSON; lines are numbered within their source."""
    lines = Lines(sources)
    where = lines.where()
    heads = LineErrors(where, EVERY)
    groups = group_by_type(lines.texts, catalog, is_utf8=are_utf8(sources), problems=heads)
    rejected = first_of_each([heads])
    batches: list[SiftedBatch] = []
    late: list[Violation] = []
    for type_, ordinals in groups:
        table, kept, wrong = _read(type_, lines, ordinals)
        rejected |= wrong
        if table is None:
            continue
        places = LinePlaces(where, kept, of_edges=type_.kind == "edge")
        sifted = sift_rows(finish(type_, table, places), places.numbers, embedder)
        batches += sifted.batches
        late += sifted.violations
    return CheckedRows(batches, in_order([*rejected.values(), *late]))


def _read(
    type_: EntityType, lines: Lines, ordinals: Numbers
) -> tuple[pa.Table | None, Numbers, dict[int, Violation]]:
    """The columns of the lines that can be read, their ordinals, and what is wrong with others."""
    problems = LineErrors(lines.where(), EVERY)
    table = read_lines(type_, lines.select(ordinals), ordinals, problems)
    if table is not None:
        return table, ordinals, {}
    wrong = first_of_each([problems])
    kept = ordinals[~np.isin(ordinals, np.fromiter(wrong, dtype=np.int64, count=len(wrong)))]
    if not len(kept):
        return None, kept, wrong
    again = LineErrors(lines.where(), EVERY)
    table = read_lines(type_, lines.select(kept), kept, again)
    if table is None:
        raise AssertionError("a line without problems has one when it is read again")
    return table, kept, wrong


def sift_table(
    name: str,
    type_: EntityType,
    table: pa.Table,
    embedder: Embedder,
    *,
    numbers: Numbers | None = None,
    is_pandas: bool = False,
) -> CheckedRows:
    """Sift the rows of a table; what is wrong with all of them is raised.

    ``numbers`` are what the rows are known by, counted from 0, if not by their position.
    """
    rows = np.arange(table.num_rows, dtype=np.int64)
    known = rows if numbers is None else numbers
    violations: list[Violation] = []
    # What can be told of a row depends on its other columns, so it takes more than one look.
    while True:
        found = Violations(EVERY)
        places = NumberedPlaces(name, known[rows])
        some = table if len(rows) == table.num_rows else table.take(pa.array(rows))
        columns = read_frame(type_, name, some, found, places, is_pandas=is_pandas)
        if columns is not None:
            break
        if unplaced := found.unplaced():
            fatal = Violations()
            fatal.add_all(len(unplaced), unplaced)
            fatal.raise_if_any()
        wrong = _first_of_each_row(found.kept)
        violations += wrong.values()
        rows = np.delete(rows, list(wrong))
        if not len(rows):
            # Not as if there had been none: a table without rows says something, this does not.
            return CheckedRows([], in_order(violations))
    sifted = sift_rows(finish(type_, columns, places), known[rows] + 1, embedder)
    return CheckedRows(sifted.batches, in_order([*violations, *sifted.violations]))


def sift_rows(batch: TypeBatch, lines: Numbers, embedder: Embedder) -> CheckedRows:
    """Fill vectors, then leave out the rows whose values break a rule."""
    batch = replace(batch, rows=fill_vectors(batch.rows, batch.type, embedder))
    found = Violations(EVERY)
    check_required(batch.type, batch.rows, found, batch.places)
    check_values(batch.type, batch.rows, found, batch.places)
    if not found:
        return CheckedRows([SiftedBatch(batch, lines)])
    wrong = _first_of_each_row(found.kept)
    kept = np.delete(np.arange(batch.rows.num_rows, dtype=np.int64), list(wrong))
    rest = [SiftedBatch(chosen(batch, kept), lines[kept])] if len(kept) else []
    return CheckedRows(rest, list(wrong.values()))


def chosen(batch: TypeBatch, rows: Numbers) -> TypeBatch:
    """Some rows of a batch, in order."""
    if len(rows) == batch.rows.num_rows:
        return batch
    at = pa.array(rows)
    fresh = None if batch.fresh is None else batch.fresh.take(at)
    return TypeBatch(batch.type, batch.rows.take(at), fresh, ChosenPlaces(batch.places, rows))


def _first_of_each_row(violations: Iterable[Violation]) -> dict[int, Violation]:
    """The first of the violations of every row, by the row of its batch."""
    found: dict[int, Violation] = {}
    for violation in violations:
        if violation.place is None or violation.place.row is None:
            raise AssertionError("a rule of one row blames no row")
        found.setdefault(violation.place.row, violation)
    return found


def in_order(violations: Iterable[Violation]) -> list[Violation]:
    """Violations in the order of the lines they are about, source by source."""
    sources: dict[str | None, int] = {}
    return sorted(violations, key=lambda found: _order(found, sources))


def _order(violation: Violation, sources: dict[str | None, int]) -> tuple[int, int]:
    place = violation.place
    if place is None:
        return EVERY, 0
    return sources.setdefault(place.source, len(sources)), place.line
