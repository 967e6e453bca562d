"""Sifting: input told apart into rows that obey the rules of one row, and rejects.

Owns what happens to a row that is wrong by itself, the same in this process and inside
Spark tasks: it is left out, with the first thing that is wrong with it; or nothing is loaded,
and all that is wrong is told. Never looks at other rows or at the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.embed.fill import fill_vectors
from omnigraph.embed.protocol import Embedder
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.write.change.change_set import EntityType, TypeBatch
from omnigraph.write.load.columns.frames import read_frame, read_tables
from omnigraph.write.load.columns.keyed_ends import EndNodes, end_nodes
from omnigraph.write.load.columns.texts import without_views
from omnigraph.write.load.columns.typed_rows import finish
from omnigraph.write.load.ndjson.envelopes import (
    CHUNK,
    LineErrors,
    first_of_each,
    group_by_type,
    raise_together,
)
from omnigraph.write.load.ndjson.exact import read_exact
from omnigraph.write.load.ndjson.lines import LinePlaces, Lines, NdjsonSource
from omnigraph.write.load.ndjson.text_ends import are_spelled_out, with_text_ends
from omnigraph.write.load.ndjson.typed_lines import read_bulk
from omnigraph.write.load.rejects import ChosenPlaces, NumberedPlaces
from omnigraph.write.rules.row_rules import check_required, check_values
from omnigraph.write.rules.violations import SHOWN, Violation, Violations, raise_unplaced

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
    sources: Sequence[NdjsonSource],
    catalog: Catalog,
    *,
    strict: bool = False,
    patches: bool = False,
    needs_types: bool = False,
) -> CheckedRows:
    """The lines that can be read, one batch for each type by its key; numbered by source.

    With ``strict`` one ValidationError is raised for all that is wrong. A line that is too large
    is always refused. Where it ``needs_types``, edges have to say them of nodes of interfaces.
    """
    lines = Lines(sources)
    where = lines.where()
    shown = SHOWN if strict else EVERY
    every = [LineErrors(where, shown)]
    groups = group_by_type(lines.texts, catalog, is_utf8=_are_utf8(sources), problems=every[0])
    read: list[tuple[_Reading, pa.Table | None, Numbers]] = []
    for type_, ordinals in groups:
        every.append(LineErrors(where, shown))
        nodes = end_nodes(type_, catalog, needs_types=needs_types)
        reading = _Reading(type_, nodes, patches)
        table = reading.lines(lines.select(ordinals), ordinals, every[-1])
        read.append((reading, table, ordinals))
    if strict:
        raise_together(every)
    wrong = first_of_each(every)
    batches = []
    for reading, table, ordinals in read:
        if table is None:
            ordinals = ordinals[~np.isin(ordinals, list(wrong))]  # noqa: PLW2901 - what is left
            table = reading.again(lines, ordinals)  # noqa: PLW2901
        if table is not None:
            type_ = reading.type
            places = LinePlaces(where, ordinals, of_edges=type_.kind == "edge")
            batches.append(SiftedBatch(finish(type_, table, places), places.numbers))
    return CheckedRows(batches, in_order(wrong.values()))


@dataclass(frozen=True, slots=True)
class _Reading:
    """How the lines of one type are read; ``nodes`` are those that its ends name."""

    type: EntityType
    nodes: EndNodes
    patches: bool

    def lines(self, lines: list[bytes], ordinals: Numbers, problems: LineErrors) -> pa.Table | None:
        """The columns of lines whose type is known, or None if some of them have problems."""
        table = self._bulk(lines)
        if table is not None:
            return table
        # Mostly one line is wrong: the chunks without it are quick to read again.
        parts = []
        for start in range(0, len(lines), CHUNK):
            some = lines[start : start + CHUNK]
            part = self._bulk(some) if len(lines) > CHUNK else None
            if part is None:
                part = read_exact(
                    self.type,
                    some,
                    ordinals[start : start + CHUNK].tolist(),
                    problems,
                    patches=self.patches,
                    nodes=self.nodes,
                )
            if part is not None:
                parts.append(part)
        return None if problems.total else pa.concat_tables(parts)

    def _bulk(self, lines: list[bytes]) -> pa.Table | None:
        table = None
        if not are_spelled_out(self.nodes):
            table = read_bulk(self.type, lines, patches=self.patches)
        if table is None and self.nodes and (texts := with_text_ends(lines, self.nodes)):
            table = read_bulk(self.type, texts, patches=self.patches)
        return table

    def again(self, lines: Lines, ordinals: Numbers) -> pa.Table | None:
        """The columns of lines without problems; None if there are no lines."""
        if not len(ordinals):
            return None
        told = LineErrors(lines.where(), EVERY)
        table = self.lines(lines.select(ordinals), ordinals, told)
        if table is None:
            raise AssertionError("a line without problems has one when it is read again")
        return table


def _are_utf8(sources: Sequence[NdjsonSource]) -> bool:
    """Whether all of the text is right by itself, so that no line need be looked at for it."""
    return all(map(_is_utf8, sources))


def _is_utf8(source: NdjsonSource) -> bool:
    if source.data.isascii():
        return True
    try:
        source.data.decode()
    except UnicodeDecodeError:
        return False
    return True


def sift_frames(
    frames: Mapping[str, object], catalog: Catalog, *, strict: bool, patches: bool = False
) -> CheckedRows:
    """The rows of frames that can be read, one batch for each type by its key.

    With ``strict`` one ValidationError is raised for all that is wrong.
    """
    sifted, wrong = CheckedRows(), Violations()
    for name, type_, table, is_pandas in read_tables(frames, catalog):
        told = wrong if strict else None
        nodes = end_nodes(type_, catalog)
        found = sift_table(
            name, type_, table, nodes=nodes, is_pandas=is_pandas, told=told, patches=patches
        )
        sifted.batches.extend(found.batches)
        sifted.violations.extend(found.violations)
    wrong.raise_if_any()
    return sifted


def sift_table(
    name: str,
    type_: EntityType,
    table: pa.Table,
    *,
    numbers: Numbers | None = None,
    is_pandas: bool = False,
    told: Violations | None = None,
    patches: bool = False,
    nodes: EndNodes | None = None,
) -> CheckedRows:
    """The rows of a table that can be read; what is wrong with all of them is raised.

    ``numbers`` are what the rows are known by, counted from 0, if not by their position. With
    ``told`` nothing is left out: everything that is wrong is added to it.
    """
    rows = np.arange(table.num_rows, dtype=np.int64)
    known = rows if numbers is None else numbers
    violations: list[Violation] = []
    # What can be told of a row depends on its other columns, so it takes more than one look.
    while True:
        found = Violations(EVERY) if told is None else told
        places = NumberedPlaces(name, known[rows])
        some = table if len(rows) == table.num_rows else without_views(table).take(pa.array(rows))
        columns = read_frame(
            type_, name, some, found, places, is_pandas=is_pandas, patches=patches, nodes=nodes
        )
        if columns is not None:
            batch = finish(type_, columns, places)
            return CheckedRows([SiftedBatch(batch, known[rows] + 1)], in_order(violations))
        if told is not None:
            return CheckedRows()
        raise_unplaced(found.kept)
        wrong = _first_of_each_row(found.kept)
        violations += wrong.values()
        rows = np.delete(rows, list(wrong))
        if not len(rows):
            # Not as if there had been none: a table without rows says something, this does not.
            return CheckedRows([], in_order(violations))


def sift_values(sifted: CheckedRows, embedder: Embedder) -> CheckedRows:
    """Fill vectors, then leave out the rows whose values break a rule."""
    batches: list[SiftedBatch] = []
    violations = list(sifted.violations)
    for one in sifted.batches:
        batch = replace(one.batch, rows=fill_vectors(one.batch.rows, one.batch.type, embedder))
        found = Violations(EVERY)
        check_required(batch.type, batch.rows, found, batch.places)
        check_values(batch.type, batch.rows, found, batch.places)
        if not found:
            batches.append(SiftedBatch(batch, one.lines))
            continue
        wrong = _first_of_each_row(found.kept)
        violations += wrong.values()
        kept = np.delete(np.arange(batch.rows.num_rows, dtype=np.int64), list(wrong))
        if len(kept):
            batches.append(SiftedBatch(chosen(batch, kept), one.lines[kept]))
    return CheckedRows(batches, in_order(violations))


def chosen(batch: TypeBatch, rows: Numbers) -> TypeBatch:
    """Some rows of a batch, in order."""
    if len(rows) == batch.rows.num_rows:
        return batch
    at = pa.array(rows)
    fresh = None if batch.fresh is None else batch.fresh.take(at)
    places = ChosenPlaces(batch.places, rows)
    given = None if batch.given is None else batch.given.take(at)
    return TypeBatch(batch.type, batch.rows.take(at), fresh, places, given)


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
