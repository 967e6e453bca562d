"""Staged types: what the tasks have written of each type, as a version that can be read.

Owns what the driver and the tasks of a load tell each other, as plain data, and putting the
fragments of all tasks together in the order of the input. The version is detached and names
rows by address; nobody else ever sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.pipeline.input.splits import Split
from omnigraph.pipeline.load.check.key_source import KeySource, grouped
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.tables.fragments import FragmentPart, layout_of
from omnigraph.storage.tables.reachable_files import files_of_version
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.write_rows import WrittenRows, insert_fragments
from omnigraph.write.change.change_set import EntityType, find_type
from omnigraph.write.load.rejects import Reject
from omnigraph.write.publish.base import Base


@dataclass(frozen=True, slots=True)
class StageJob:
    """What every staging task needs to know: the schema, and the tables to write for."""

    catalog: Catalog
    tables: Mapping[str, Table]
    area: StagingArea
    embedding: EmbedderConfig
    patches: bool = False
    """Rows are what is said of them, and for the rest what ``tables`` have."""


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Rows of one type that came from one split: from the ``first`` accepted one on."""

    split: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class StagedRows:
    """One data file of a type, and where its rows came from, in their order."""

    type_key: str
    written: WrittenRows
    runs: tuple[RowOrigin, ...]
    size: int
    has_given_ids: bool


@dataclass(frozen=True, slots=True)
class StagedSplit:
    """What became of one split; the rejects count lines from the beginning of the split."""

    number: int
    lines: int
    accepted: Mapping[str, int]
    codes: Mapping[str, int]
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True, slots=True)
class StagedTask:
    """What one staging task has done, in the order of the input."""

    splits: tuple[StagedSplit, ...]
    rows: tuple[StagedRows, ...]
    embedding: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SplitGroup:
    """The splits of one task."""

    job: StageJob
    splits: tuple[Split, ...]
    shown: int = field(default=100)
    """How many rejects of a split are told; all of them are counted."""


@dataclass(frozen=True, slots=True)
class StagedType:
    """The staged rows of one type; ``rows`` and ``parts`` go together, in input order."""

    type: EntityType
    type_key: str
    table: Table
    parts: tuple[FragmentPart, ...]
    rows: tuple[StagedRows, ...]
    share: int = 1

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(part.rows for part in self.parts)

    @property
    def has_given_ids(self) -> bool:
        """Whether any row may have an id that others have."""
        return any(rows.has_given_ids for rows in self.rows)

    @property
    def files(self) -> tuple[str, ...]:
        """The data files, below the directory of the table."""
        return tuple(name for rows in self.rows for name in rows.written.files)

    @property
    def groups(self) -> tuple[KeySource, ...]:
        """The rows in groups of fragments, as tasks take them."""
        return grouped(self.table, self.parts, self.share)


def staged_types(tasks: Iterable[StagedTask], base: Base, share: int = 1) -> dict[str, StagedType]:
    """The staged rows by type key, for tasks that share a memory."""
    by_key: dict[str, list[StagedRows]] = {}
    for task in tasks:
        for rows in task.rows:
            by_key.setdefault(rows.type_key, []).append(rows)
    return {key: _staged(key, rows, base, share) for key, rows in sorted(by_key.items())}


def _staged(key: str, rows: Sequence[StagedRows], base: Base, share: int) -> StagedType:
    table = base.table(key).table
    before = {part.number for part in layout_of(table).parts}
    fragments = [text for one in rows for text in one.written.fragments]
    if len(fragments) != len(rows):
        raise AssertionError("every staged file is one fragment")
    staged = table.at(insert_fragments(table, fragments))
    parts = tuple(part for part in layout_of(staged).parts if part.number not in before)
    return StagedType(find_type(base.catalog, key), key, staged, parts, tuple(rows), share)


def forget(types: Iterable[StagedType]) -> None:
    """Delete the versions by which staged rows were read; their data files stay."""
    for staged in types:
        objects = ControlObjects(staged.table.location)
        objects.delete_all(sorted(files_of_version(staged.table)))


def joined(written: Iterable[WrittenRows]) -> WrittenRows:
    """The rows of several files as those of one write."""
    every = list(written)
    fragments = tuple(text for one in every for text in one.fragments)
    return WrittenRows(fragments, (), sum(one.count for one in every))
