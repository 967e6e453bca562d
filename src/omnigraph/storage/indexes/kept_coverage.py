"""Indexes of rows that were written again: what they still cover, and what they cover no more.

Owns committing such rows to a table that has indexes. A BTREE knows rows by their addresses: it
loses those that have moved. The others know them by row ids, which stay: where a segment covered
all fragments that went, it covers those that came in their place. Must never let an index claim
a fragment that it has not read, nor one go on that would count rows whose deletion is forgotten.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from omnigraph.storage.indexes.build import segments_of
from omnigraph.storage.indexes.table_indexes import indexes_of
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.fragments import layout_of
from omnigraph.storage.tables.rewrite import Rewritten, commit_rewritten, still_there
from omnigraph.storage.tables.table import Stamp, Table, TablePin, commit_detached

if TYPE_CHECKING:
    from lance.dataset import Index

RESERVED = 1024
"""So many numbers of fragments are left to those who write meanwhile.

What is built on the new fragments knows them by their numbers, and so these had better not be
taken by others.
"""


def numbered(table: Table, written: Sequence[Rewritten]) -> list[Rewritten]:
    """The groups with numbers for their new fragments that no fragment has or ever had.

    As they come they have none until they are committed, and an index would note that as the
    number 0. Numbers that were given before, and are free on this version, stay.
    """
    free = _free_number(table, written)
    given = [json.loads(text)["id"] for group in written for text in group.fragments]
    if all(number >= free for number in given):
        return list(written)
    free += RESERVED
    result: list[Rewritten] = []
    for group in written:
        fragments = [json.loads(text) for text in group.fragments]
        for number, fragment in enumerate(fragments, free):
            fragment["id"] = number
        free += len(fragments)
        texts = tuple(json.dumps(fragment) for fragment in fragments)
        result.append(dataclasses.replace(group, fragments=texts))
    return result


def commit_with_indexes(
    table: Table, written: Sequence[Rewritten], stamp: Stamp | None = None
) -> TablePin:
    """Put rows where they were written again, and let the indexes cover what they still know.

    What is not there any more as it was read is left out; without any, the pin is the same.
    Indexes of words and vectors that cover some of the rows that are put together, or rows that
    were deleted, are gone afterwards: they have to be built again.
    """
    from lance import LanceOperation

    groups = still_there(table, written)
    if not groups:
        return table.pin
    groups = numbered(table, groups)
    kept, lost = _affected(table, groups)
    bare = table
    if kept or lost:
        # As they are, Lance would refuse groups that they cover in part.
        gone = LanceOperation.CreateIndex([], [*kept, *lost])
        bare = table.at(commit_detached(table, gone, _again(stamp)))
    pin = commit_rewritten(bare, groups, _again(stamp))
    if not kept:
        return pin
    back = LanceOperation.CreateIndex([_covering(one, groups) for one in kept], [])
    return commit_detached(table.at(pin), back, _again(stamp))


def coverage_of(table: Table, kinds: Iterable[str]) -> dict[int, frozenset[str]]:
    """The segments of indexes of some kinds that cover each fragment, by its number."""
    wanted = [index.name for index in indexes_of(table) if index.kind in frozenset(kinds)]
    covering: dict[int, set[str]] = {part.number: set() for part in layout_of(table).parts}
    with storage_errors(f"reading the indexes of {table.location}"):
        for name in wanted:
            for segment in segments_of(table.dataset(), name):
                for number in covering.keys() & set(segment.fragment_ids):
                    covering[number].add(segment.uuid)
    return {number: frozenset(found) for number, found in covering.items()}


def _free_number(table: Table, written: Sequence[Rewritten]) -> int:
    """The number that the next fragment of a version would get, which a trial tells."""
    from lance import LanceOperation

    names = [index.name for index in indexes_of(table)]
    with storage_errors(f"reading the indexes of {table.location}"):
        segments = [one for name in names for one in segments_of(table.dataset(), name)]
    bare = table
    if segments:
        bare = table.at(commit_detached(table, LanceOperation.CreateIndex([], segments), None))
    unnumbered = [
        dataclasses.replace(
            group,
            fragments=tuple(json.dumps(json.loads(text) | {"id": 0}) for text in group.fragments),
        )
        for group in written[:1]
    ]
    trial = bare.at(commit_rewritten(bare, unnumbered, None))
    new = {name for group in unnumbered for name in group.new_files}
    return min(part.number for part in layout_of(trial).parts if part.file in new)


def _affected(table: Table, groups: Sequence[Rewritten]) -> tuple[list[Index], list[Index]]:
    """Segments that are to cover other fragments now, and those that cannot go on."""
    kept: list[Index] = []
    lost: list[Index] = []
    with storage_errors(f"reading the indexes of {table.location}"):
        described = {found.name: found.type_url for found in table.dataset().describe_indices()}
        for index in indexes_of(table):
            segments = segments_of(table.dataset(), index.name)
            if index.kind == "NGRAM":
                # Lance tells what an index is by a name, and for this kind by nothing else.
                details = (described[index.name], b"")
                kept += [
                    dataclasses.replace(one, index_details=details)
                    for one in segments
                    if any(_covers(one, group) for group in groups)
                ]
            elif index.kind != "BTREE" and any(
                _is_spoilt(one, group) for one in segments for group in groups
            ):
                lost += segments
    return kept, lost


def _covers(segment: Index, group: Rewritten) -> bool:
    return not group.numbers.isdisjoint(segment.fragment_ids)


def _is_spoilt(segment: Index, group: Rewritten) -> bool:
    """Whether an index of words or vectors would be wrong about rows of a group.

    It does not check what it finds: rows whose deletion is forgotten would take the places of
    better ones, and rows that were updated would be found by what they were.
    """
    if not _covers(segment, group):
        return False
    has_deleted = any(old.part.deletions for old in group.old)
    return has_deleted or not group.numbers <= frozenset(segment.fragment_ids)


def _covering(segment: Index, groups: Sequence[Rewritten]) -> Index:
    """A segment that covers the new fragments of every group whose old ones it covered."""
    before = frozenset(segment.fragment_ids)
    covered = set(before)
    for group in groups:
        covered -= group.numbers
        if group.numbers <= before:
            covered |= {json.loads(text)["id"] for text in group.fragments}
    return dataclasses.replace(
        segment,
        fragment_ids=covered,  # type: ignore[arg-type] # the stub has only Lance's own bitmap
    )


def _again(stamp: Stamp | None) -> Stamp | None:
    """The same words for another transaction: each has an id of its own."""
    return None if stamp is None else Stamp(properties=stamp.properties)
