"""The indexes that a table has, and compaction as one detached commit.

Owns telling what they cover. An index that is missing or partial changes
speed and never results; compaction may drop coverage, so extend indexes after it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from omnigraph.storage.indexes.build import SCALAR_KINDS, VECTOR_KINDS, segments_of
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.fragments import layout_of
from omnigraph.storage.tables.table import Stamp, Table, TablePin, commit_detached

if TYPE_CHECKING:
    from lance import LanceOperation
    from lance.optimize import RewriteResult


@dataclasses.dataclass(frozen=True, slots=True)
class TableIndex:
    """An index of a pinned version, and the fragments it covers or not.

    ``column`` is None when nothing is read from it any more, ``stored`` is what the table calls
    it. ``with_position`` says that a text index answers phrases, ``metric`` is the distance of a
    vector index, in lower case.
    """

    name: str
    column: str | None
    kind: str
    uncovered: frozenset[int]
    covered: frozenset[int] = frozenset()
    segments: int = 1
    size: int = 0
    metric: str | None = None
    with_position: bool = False
    stored: str = ""


def indexes_of(table: Table) -> list[TableIndex]:
    """The indexes of a table, by name."""
    return list(_indexes_of(table))


@lru_cache(maxsize=1024)
def _indexes_of(table: Table) -> tuple[TableIndex, ...]:
    if not table.is_whole:
        return ()  # they know rows that are not shown
    dataset = table.dataset()
    found: list[TableIndex] = []
    with storage_errors(f"reading the indexes of {table.location}"):
        fragments = frozenset(fragment.fragment_id for fragment in dataset.get_fragments())
        for index in dataset.describe_indices():
            covered = fragments.intersection(
                number for segment in index.segments for number in segment.fragment_ids
            )
            stored = ".".join(index.field_names)
            details: dict[str, Any] = index.details or {}
            metric = details.get("metric_type")
            found.append(
                TableIndex(
                    name=index.name,
                    column=table.columns.name_of(stored),
                    # Lance spells it `BTree` in some places and `BTREE` in others.
                    kind=index.index_type.upper(),
                    uncovered=fragments - covered,
                    covered=covered,
                    segments=len(index.segments),
                    size=index.total_size_bytes or 0,
                    metric=None if metric is None else str(metric).lower(),
                    with_position=bool(details.get("with_position", False)),
                    stored=stored,
                )
            )
    return tuple(sorted(found, key=lambda index: index.name))


def covered_fragments(table: Table) -> frozenset[int]:
    """The fragments of a version that any index covers, by number."""
    return frozenset().union(*(index.covered for index in _indexes_of(table)))


def is_indexed(table: Table, column: str) -> bool:
    """Whether an index of a pinned version answers what a column equals."""
    return any(found.column == column and found.kind == "BTREE" for found in _indexes_of(table))


def text_index(table: Table, column: str) -> TableIndex | None:
    """The index of the words of a column, if there is one."""
    return _index_on(table, column, ("INVERTED",))


def vector_index(table: Table, column: str) -> TableIndex | None:
    """The index of the vectors of a column, if there is one."""
    return _index_on(table, column, VECTOR_KINDS)


def _index_on(table: Table, column: str, kinds: Collection[str]) -> TableIndex | None:
    return next(
        (found for found in _indexes_of(table) if found.column == column and found.kind in kinds),
        None,
    )


def fragment_rows(table: Table, fragments: Collection[int]) -> int:
    """How many rows some fragments hold."""
    return sum(part.rows for part in layout_of(table).parts if part.number in fragments)


def drop_indexes(table: Table, names: Collection[str], stamp: Stamp | None = None) -> TablePin:
    """Drop indexes; without any of these names there is nothing to do."""
    from lance import LanceOperation

    dataset = table.dataset()
    with storage_errors(f"dropping indexes of {table.location}"):
        existing = [
            segment for name in sorted(set(names)) for segment in segments_of(dataset, name)
        ]
    if not existing:
        return table.pin
    return commit_detached(table, LanceOperation.CreateIndex([], existing), stamp)


def compact(
    table: Table,
    *,
    target_rows: int = 250_000,
    without_indexes: bool = False,
    stamp: Stamp | None = None,
) -> TablePin:
    """Merge small fragments and drop deleted rows; nothing to gain gives the same pin.

    Rows keep their ids and change their addresses. Lance merges only fragments
    that the same segments of every index cover; ``without_indexes`` gives the
    indexes up, merges everything, and leaves it to the caller to create them again.
    Where deleted rows are dropped, indexes of words and vectors go in any case.
    """
    from lance import LanceOperation
    from lance.optimize import Compaction

    base = table
    if without_indexes:
        base = table.at(drop_indexes(table, [index.name for index in _indexes_of(table)]))
    dataset = base.dataset()
    with storage_errors(f"compacting {table.location}"):
        plan = Compaction.plan(dataset, {"target_rows_per_fragment": target_rows})
        done = [task.execute(dataset) for task in plan.tasks]
    if not done:
        return table.pin
    groups = [_group(result) for result in done]
    base = base.at(drop_indexes(base, _spoilt(base, groups)))
    names = [index.name for index in _indexes_of(base)]
    if names:
        groups = _numbered(base.at(drop_indexes(base, names)), groups)
    return commit_detached(base, LanceOperation.Rewrite(groups, []), stamp)


def _group(result: RewriteResult) -> LanceOperation.RewriteGroup:
    from lance import LanceOperation

    return LanceOperation.RewriteGroup(
        result.original_fragments,  # type: ignore[attr-defined] # the stub calls it old_fragments
        result.new_fragments,
    )


def _spoilt(table: Table, groups: list[LanceOperation.RewriteGroup]) -> list[str]:
    """The indexes that would go on counting rows whose deletion is forgotten.

    Others check what they find. These would let such rows take the places of better ones, or
    find updated rows by what they were.
    """
    thinned = {
        fragment.id
        for group in groups
        for fragment in group.old_fragments
        if fragment.deletion_file is not None
    }
    return [
        index.name
        for index in _indexes_of(table)
        if index.kind not in SCALAR_KINDS and index.covered & thinned
    ]


def _numbered(
    bare: Table, groups: list[LanceOperation.RewriteGroup]
) -> list[LanceOperation.RewriteGroup]:
    """The groups with the numbers that their new fragments will have.

    As they come, all are number 0 until they are committed, and an index would note that
    as covered: two of its segments would both claim it, or it would claim another fragment
    of that number. A commit to a version without indexes, which nobody needs, tells them.
    """
    from lance import LanceOperation

    trial = bare.at(commit_detached(bare, LanceOperation.Rewrite(groups, []), None))
    with storage_errors(f"compacting {bare.location}"):
        numbers = {
            fragment.metadata.files[0].path: fragment.fragment_id
            for fragment in trial.dataset().get_fragments()
        }
    return [
        LanceOperation.RewriteGroup(
            group.old_fragments,
            [
                dataclasses.replace(fragment, id=numbers[fragment.files[0].path])
                for fragment in group.new_fragments
            ],
        )
        for group in groups
    ]
