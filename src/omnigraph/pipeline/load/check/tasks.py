"""Probes: what one task finds out about some fragments by asking directories.

Owns one question per class. Each looks at whole columns, keeps what it found in the staging
area and answers with a few words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.structural import ID, SRC
from omnigraph.pipeline.load.check.key_index import KeyIndex, KeySource, open_part
from omnigraph.pipeline.load.check.violations import RuleViolations, SetRule, by_fragment, verdict
from omnigraph.storage.tables.row_address import fragments_of
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.write.change.change_set import EntityType
from omnigraph.write.rules.edges import cardinality_text, endpoint_text, miscounted, missing_ends
from omnigraph.write.rules.key_finder import HeldKeys
from omnigraph.write.rules.uniqueness import Constraint, key_text


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a probe found: a verdict, or a table of rows by the probe's own name for it."""

    verdict: RuleViolations | None = None
    table: str | None = None
    count: int = 0


class CheckTask(Protocol):
    """One question about some fragments."""

    def ask(self) -> CheckResult:
        """Find out."""


def ask(probe: CheckTask) -> CheckResult:
    """What a task does."""
    return probe.ask()


@dataclass(frozen=True, slots=True)
class MissingEnds:
    """Edges whose end is in none of the directories of nodes."""

    rule: SetRule
    type: EdgeType
    edges: KeySource
    column: str
    end: str
    nodes: tuple[KeyIndex, ...]
    shown: int
    strays: bool = False
    """The edges are stored ones, and no staged row is to blame."""

    def ask(self) -> CheckResult:
        """Look every end up."""
        found = []
        area = self.nodes[0].area
        for rows in self.edges.read((self.column,)):
            lost = missing_ends(rows.column(self.column).combine_chunks(), self.nodes)
            if lost.any():
                found.append(rows.filter(pa.array(lost)))
        if not found:
            return CheckResult()
        missing = pa.concat_tables(found)
        shown = missing.slice(0, self.shown)
        texts = shown.column(self.column).to_pylist()
        messages = [endpoint_text(self.type, self.column, text, self.end) for text in texts]
        ids = rows_at(self.edges, shown.column(ROW_ADDRESS).to_numpy(), (ID,)).column(ID)
        table = _table(missing, messages, ids)
        return CheckResult(verdict(area, self.rule, table, self.shown, strays=self.strays))


def _table(rows: pa.Table, messages: Sequence[str], entities: pa.ChunkedArray) -> pa.Table:
    """Verdict rows: the messages of the first ones are enough, the others are only counted."""
    count = rows.num_rows
    rest = pa.nulls(count - len(messages), pa.string())
    padded = pa.chunked_array([pa.array(messages, pa.string()), rest])
    named = pa.chunked_array([*entities.chunks, rest])
    return pa.table({"address": rows.column(ROW_ADDRESS), "message": padded, "entity": named})


@dataclass(frozen=True, slots=True)
class StoredMatches:
    """Stored rows whose id is one of the staged ones: where they lie, and which row has it."""

    stored: KeySource
    ids: KeyIndex

    def ask(self) -> CheckResult:
        """Look every stored id up."""
        found = []
        for rows in self.stored.read((ID,)):
            hits = self.ids.find(rows.column(ID).combine_chunks())
            if hits.num_rows:
                own = rows.take(hits.column("at"))
                found.append(own.append_column("staged", hits.column("address")))
        if not found:
            return CheckResult()
        matches = pa.concat_tables(found)
        name = self.ids.area.write_table("matches", matches)
        return CheckResult(table=name, count=matches.num_rows)


@dataclass(frozen=True, slots=True)
class StoredClashes:
    """Stored rows that hold a staged tuple and stay as they are: the staged rows are to blame."""

    rule: SetRule
    constraint: Constraint
    stored: KeySource
    tuples: KeyIndex
    written: KeyIndex | None
    staged: KeySource
    shown: int

    def ask(self) -> CheckResult:
        """Look every stored tuple up."""
        members = self.constraint.members
        found = []
        for rows in self.stored.read(tuple(dict.fromkeys((ID, *members)))):
            keys = self.constraint.keys(rows)
            rows = rows.filter(keys.is_valid())  # noqa: PLW2901 - only these have a tuple
            hits = self.tuples.find(keys.drop_null())
            own = rows.take(hits.column("at"))
            ids = own.column(ID).combine_chunks()
            staged = hits.column("address")
            left = ~self.staged.leaves_out(staged)
            if self.written is not None:
                left &= ~self.written.has(ids)
            if left.any():
                clash = {ROW_ADDRESS: staged, "holder": own.column(ID)}
                found.append(pa.table(clash).filter(pa.array(left)))
        if not found:
            return CheckResult()
        clashes = pa.concat_tables(found).sort_by(ROW_ADDRESS)
        shown = clashes.slice(0, self.shown)
        rows = rows_at(self.staged, shown.column(ROW_ADDRESS).to_numpy(), (ID, *members))
        holders = shown.column("holder").to_pylist()
        messages = self.constraint.texts(rows, holders)
        table = _table(clashes, messages, rows.column(ID))
        return CheckResult(verdict(self.tuples.area, self.rule, table, self.shown))


@dataclass(frozen=True, slots=True)
class DuplicateKeys:
    """Staged rows that repeat the tuple of an earlier one."""

    rule: SetRule
    constraint: Constraint
    tuples: KeyIndex
    staged: KeySource
    shown: int

    def ask(self) -> CheckResult:
        """Tell each of them with the id of the first."""
        repeats = self.tuples.repeats().sort_by("address")
        shown = repeats.slice(0, self.shown)
        columns = tuple(dict.fromkeys((ID, *self.constraint.members)))
        rows = rows_at(self.staged, shown.column("address").to_numpy(), columns)
        first = rows_at(self.staged, shown.column("kept").to_numpy(), (ID,))
        messages = self.constraint.texts(rows, first.column(ID).to_pylist())
        named = repeats.rename_columns([ROW_ADDRESS, "kept"])
        table = _table(named, messages, rows.column(ID))
        return CheckResult(verdict(self.tuples.area, self.rule, table, self.shown))


@dataclass(frozen=True, slots=True)
class IdClashes:
    """Staged rows whose ids a strict load may not meet; they are known by address."""

    rule: SetRule
    type: EntityType
    problem: str
    ids: KeyIndex
    staged: KeySource
    addresses: str
    shown: int

    def ask(self) -> CheckResult:
        """Tell each of them."""
        area = self.ids.area
        clashing = area.read_table(self.addresses).sort_by(ROW_ADDRESS)
        shown = clashing.slice(0, self.shown)
        rows = rows_at(self.staged, shown.column(ROW_ADDRESS).to_numpy(), (ID,))
        ids = rows.column(ID)
        messages = [key_text(id_, self.problem, self.type.name) for id_ in ids.to_pylist()]
        return CheckResult(verdict(area, self.rule, _table(clashing, messages, ids), self.shown))


@dataclass(frozen=True, slots=True)
class StoredDegrees:
    """How many stored edges leave each of the staged sources, but for those written anew."""

    edges: KeySource
    sources: KeyIndex
    rewritten: KeyIndex | None

    def ask(self) -> CheckResult:
        """Count by source."""
        counted = []
        for rows in self.edges.read((ID, SRC)):
            if self.rewritten is not None:
                left = ~self.rewritten.has(rows.column(ID).combine_chunks())
                rows = rows.filter(pa.array(left))  # noqa: PLW2901 - the others are replaced
            hits = self.sources.find(rows.column(SRC).combine_chunks())
            counted.append(hits.group_by("text").aggregate([([], "count_all")]))
        if not counted:
            return CheckResult()
        table = pa.concat_tables(counted)
        return CheckResult(
            table=self.sources.area.write_table("degrees", table), count=table.num_rows
        )


@dataclass(frozen=True, slots=True)
class EdgesOf:
    """All staged edges of the sources that a table lists, each with what is said of its source."""

    rule: SetRule
    edges: KeySource
    sources: KeyIndex
    listed: str
    shown: int

    def ask(self) -> CheckResult:
        """Compare every source."""
        area = self.sources.area
        listed = area.read_table(self.listed)
        wanted = listed.column("entity").combine_chunks()
        found = []
        for rows in self.edges.read((ID, SRC)):
            at = pc.index_in(rows.column(SRC), value_set=wanted)
            hit = at.is_valid()
            found.append(
                rows.filter(hit).append_column(
                    "message", listed.column("message").take(at.filter(hit).combine_chunks())
                )
            )
        table = pa.concat_tables(found)
        shown = pa.table(
            {
                "address": table.column(ROW_ADDRESS),
                "message": table.column("message"),
                "entity": table.column(SRC),
            }
        )
        return CheckResult(verdict(area, self.rule, shown, self.shown))


def rows_at(source: KeySource, addresses: np.ndarray, columns: tuple[str, ...]) -> pa.Table:
    """Columns of the rows at these addresses, in the order of the addresses."""
    wanted = by_fragment(np.unique(addresses.astype(np.uint64)))
    parts = tuple(part for part in source.parts if part.number in wanted)
    read = [
        rows.filter(pa.array(np.isin(rows.column(ROW_ADDRESS).to_numpy(), addresses)))
        for rows in KeySource(source.table, parts).read(columns)
    ]
    if not read:
        return source.table.schema.empty_table().select(list(columns))
    table = pa.concat_tables(read)
    own = table.column(ROW_ADDRESS).to_numpy()
    order = np.argsort(own)
    return table.take(pa.array(order[np.searchsorted(own[order], addresses)]))


def wrong_degrees(
    edge: EdgeType,
    sources: KeyIndex,
    stored: Sequence[str],
    nodes: Sequence[KeyIndex] | None,
    staged: Collection[int],
) -> pa.Table:
    """The sources whose edges, staged and stored together, break the bounds of a type.

    They come in the shape of verdicts; ``is_stray`` those that no edge in the fragments ``staged``
    names. ``nodes`` are asked which sources will be there at all, where not all will.
    """
    more = _counted(sources, stored)
    wrong = [_NOBODY]
    for part in sources.parts:
        one = KeyIndex(sources.area, (part,))
        # Its keys are one piece: that is how they were written.
        texts = open_part(sources.area, part).keys.column("text").combine_chunks()
        found = miscounted(edge, texts, [one, more])
        names = found.column(SRC).combine_chunks()
        found = found.append_column("address", one.find(names).column("address"))
        if nodes is not None:
            found = found.filter(pa.array(~missing_ends(names, nodes)))
        wrong.append(found)
    every = pa.concat_tables(wrong)
    names, counts = every.column(SRC).to_pylist(), every.column("edges").to_pylist()
    fragments = fragments_of(every.column("address").to_numpy())
    return pa.table(
        {
            "address": every.column("address"),
            "message": pa.array(map(cardinality_text, repeat(edge), names, counts), pa.string()),
            "entity": pa.array(names, pa.string()),
            "is_stray": ~np.isin(fragments, list(staged)),
        }
    )


_NOBODY = pa.schema(
    [(SRC, pa.large_string()), ("edges", pa.int64()), ("address", pa.uint64())]
).empty_table()


def _counted(sources: KeyIndex, stored: Sequence[str]) -> HeldKeys:
    """What tasks have counted of the stored edges, put together."""
    tables = [sources.area.read_table(name) for name in stored]
    columns = pa.schema([("text", pa.large_string()), ("count_all", pa.int64())])
    counted = pa.concat_tables([columns.empty_table(), *tables])
    return HeldKeys(
        counted.column("text").combine_chunks(), weights=counted.column("count_all").to_numpy()
    )
