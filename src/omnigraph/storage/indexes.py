"""Indexes and compaction, each as one detached commit.

Owns what makes reading faster. An index that is missing or partial changes
speed and never results; compaction drops coverage, so extend indexes after it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.errors import StorageError
from omnigraph.storage.commits import Stamp, commit_detached
from omnigraph.storage.failures import storage_errors
from omnigraph.storage.session import open_alone
from omnigraph.storage.table import Table, TablePin

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.dataset import Index

IndexKind = Literal["BTREE", "INVERTED", "IVF_FLAT"]
Metric = Literal["l2", "cosine", "dot"]


@dataclasses.dataclass(frozen=True, slots=True)
class TableIndex:
    """An index of a pinned version, and the fragments it does not cover."""

    name: str
    column: str
    kind: str
    uncovered: frozenset[int]


def index_name(table: Table, column: str, kind: IndexKind) -> str:
    """The name of our index of a kind on a column: one of each at most, and renames keep it."""
    field = table.dataset().lance_schema.field(column)
    if field is None:
        raise StorageError(f"{table.location} has no column {column!r}", kind="not_found")
    return f"{kind.lower()}_{field.id()}"


def indexes_of(table: Table) -> list[TableIndex]:
    """The indexes of a table, by name."""
    dataset = table.dataset()
    with storage_errors(f"reading the indexes of {table.location}"):
        fragments = frozenset(fragment.fragment_id for fragment in dataset.get_fragments())
        return sorted(
            (
                TableIndex(
                    name=found.name,
                    column=".".join(found.field_names),
                    kind=found.index_type,
                    uncovered=fragments.difference(
                        *(segment.fragment_ids for segment in found.segments)
                    ),
                )
                for found in dataset.describe_indices()
            ),
            key=lambda index: index.name,
        )


@lru_cache(maxsize=1024)
def is_indexed(table: Table, column: str) -> bool:
    """Whether an index of a pinned version answers what a column equals."""
    return any(found.column == column and found.kind == "BTREE" for found in indexes_of(table))


def create_index(
    table: Table,
    column: str,
    kind: IndexKind,
    *,
    metric: Metric = "cosine",
    with_position: bool = True,
    stamp: Stamp | None = None,
) -> TablePin:
    """Index all rows of a column, in place of an index of the same kind on it.

    A table without rows gets no index: there is nothing to cover yet.
    ``metric`` is for vectors, ``with_position`` (phrase search) for text.
    """
    dataset = table.dataset()
    fragments = {fragment.fragment_id for fragment in dataset.get_fragments()}
    options = _options(kind, metric, with_position)
    return _index(table, column, kind, fragments, options=options, stamp=stamp)


def extend_index(
    table: Table,
    column: str,
    kind: IndexKind,
    *,
    metric: Metric = "cosine",
    with_position: bool = True,
    stamp: Stamp | None = None,
) -> TablePin:
    """Index the rows that an index does not cover yet, beside what it has; without one, all.

    A text index is built again instead: with the new rows in a segment of their
    own, it would also answer with the old text of rows that were updated.
    """
    name = index_name(table, column, kind)
    known = [index for index in indexes_of(table) if index.name == name]
    if known and not known[0].uncovered:
        return table.pin
    if not known or kind == "INVERTED":
        return create_index(
            table, column, kind, metric=metric, with_position=with_position, stamp=stamp
        )
    uncovered = set(known[0].uncovered)
    options = _options(kind, metric, with_position)
    return _index(table, column, kind, uncovered, options=options, stamp=stamp, replace=False)


def drop_indexes(table: Table, names: Collection[str], stamp: Stamp | None = None) -> TablePin:
    """Drop indexes; without any of these names there is nothing to do."""
    from lance import LanceOperation

    dataset = table.dataset()
    with storage_errors(f"dropping indexes of {table.location}"):
        existing = [segment for name in sorted(set(names)) for segment in _segments(dataset, name)]
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
    """
    from lance import LanceOperation
    from lance.optimize import Compaction

    base = table
    if without_indexes:
        base = table.at(drop_indexes(table, [index.name for index in indexes_of(table)]))
    dataset = base.dataset()
    with storage_errors(f"compacting {table.location}"):
        plan = Compaction.plan(dataset, {"target_rows_per_fragment": target_rows})
        done = [task.execute(dataset) for task in plan.tasks]
    if not done:
        return table.pin
    groups = [
        LanceOperation.RewriteGroup(
            result.original_fragments,  # type: ignore[attr-defined] # the stub calls it old_fragments
            result.new_fragments,
        )
        for result in done
    ]
    return commit_detached(base, LanceOperation.Rewrite(groups, []), stamp)


def _index(
    table: Table,
    column: str,
    kind: IndexKind,
    fragments: set[int],
    *,
    options: dict[str, Any],
    stamp: Stamp | None,
    replace: bool = True,
) -> TablePin:
    from lance import LanceOperation

    name = index_name(table, column, kind)
    if not fragments:
        return table.pin
    # A handle of its own: while Lance builds an index, nobody else can use the handle.
    dataset = open_alone(table.location, table.pin.version)
    with storage_errors(f"indexing {column!r} of {table.location}"):
        segment = dataset.create_index_uncommitted(
            # "replace" only lets the name be used again: the commit says what goes.
            column,
            kind,
            name=name,
            replace=True,
            fragment_ids=sorted(fragments),
            **options,
        )
        if kind == "INVERTED":
            # As it comes, the segment is not finished: committed so, every search would fail.
            segment = dataset.merge_existing_index_segments([segment])
        segment = dataclasses.replace(segment, name=name)
        obsolete = _segments(dataset, name) if replace else []
    return commit_detached(table, LanceOperation.CreateIndex([segment], obsolete), stamp)


def _options(kind: IndexKind, metric: Metric, with_position: bool) -> dict[str, Any]:  # noqa: FBT001 - private
    match kind:
        case "INVERTED":
            return {"with_position": with_position}
        case "IVF_FLAT":
            return {"metric": metric}
    return {}


def _segments(dataset: LanceDataset, name: str) -> list[Index]:
    """The segments of an index, as a commit that removes them wants to see them."""
    from lance.dataset import Index

    return [
        Index(
            uuid=str(segment.uuid),
            name=found.name,
            fields=list(found.fields),
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
        )
        for found in dataset.describe_indices()
        if found.name == name
        for segment in found.segments
    ]
