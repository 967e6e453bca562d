"""Segments: the parts that indexes are made of, built first and committed later.

Owns building a segment in files that no version refers to, committing several to a version,
also to a later one than they were built on, and the numbers of vector indexes, all of them
measured: which sort serves how many vectors, how many partitions, how many of them a search
looks at. Must never let an index claim rows that it has not read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from math import isqrt
from typing import TYPE_CHECKING, Any, Literal, get_args

from omnigraph.errors import StorageError
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.handles import open_alone
from omnigraph.storage.tables.table import Stamp, Table, TablePin, commit_detached
from omnigraph.storage.tables.version_diff import fragment_delta

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.dataset import Index

VectorKind = Literal["IVF_FLAT", "IVF_SQ", "IVF_RQ"]
VECTOR_KINDS: tuple[VectorKind, ...] = ("IVF_FLAT", "IVF_SQ", "IVF_RQ")

EXACT_BELOW = 20_000
"""Below so many vectors, comparing all of them is exact and takes some tens of milliseconds."""
QUANTISED_FROM = 1_000_000
"""From so many on, an index keeps a few bits per number; the best are compared again exactly."""

REFINE = 4
"""So many times the wanted number are compared again, where an index keeps a few bits."""

_ROWS_PER_PARTITION = 500
_FEWEST_PROBES = 20
_PARTITIONS_PER_PROBE = 15
_BITS = 3
_DEEPER = 0.7
"""How fast more partitions are looked at, the more than ten of the nearest are wanted."""

ScalarKind = Literal["BTREE", "NGRAM"]
IndexKind = ScalarKind | Literal["INVERTED"] | VectorKind
SCALAR_KINDS: tuple[ScalarKind, ...] = get_args(ScalarKind)
Metric = Literal["l2", "cosine", "dot"]

ANALYZER: Mapping[str, Any] = {
    "base_tokenizer": "simple",
    "language": "English",
    "max_token_length": 40,
    "lower_case": True,
    "stem": True,
    "remove_stop_words": True,
    "ascii_folding": True,
}
"""How a text becomes words. Spelled out: what Lance takes by default may change, and with it
what a search finds."""


def vector_kind(count: int, dimension: int) -> VectorKind | None:
    """The index that so many vectors want; None where an exact search does."""
    if count < EXACT_BELOW:
        return None
    if count < QUANTISED_FROM:
        return "IVF_FLAT"
    # Lance rotates vectors in groups of eight numbers before it rounds them.
    return "IVF_SQ" if dimension % 8 else "IVF_RQ"


def build_options(kind: VectorKind) -> Mapping[str, int]:
    """What is said about an index when it is built, besides its partitions and the distance."""
    return {"num_bits": _BITS} if kind == "IVF_RQ" else {}


def partitions(count: int) -> int:
    """How many partitions so many vectors are divided into."""
    return max(1, min(count // _ROWS_PER_PARTITION, 2 * isqrt(count)))


def probes(row_count: int, depth: int = 10) -> int:
    """How many partitions of the vector index of so many rows a search looks at.

    ``depth`` says how many of the nearest of all rows are to be found, hardly one missed.
    """
    every = partitions(row_count)
    share: float = max(depth / 10, 1.0) ** _DEEPER / _PARTITIONS_PER_PROBE
    return max(_FEWEST_PROBES, min(every, round(every * share)))


@dataclasses.dataclass(frozen=True, slots=True)
class BuiltIndex:
    """A segment that no version refers to yet, built on one version of a table.

    ``beside`` says that it joins the segments that its index has; otherwise it is the whole
    index, and takes the place of every index named in ``instead_of``.
    """

    column: str
    kind: IndexKind
    built_on: TablePin
    segment: Index
    beside: bool = False
    instead_of: tuple[str, ...] = ()
    replaced: frozenset[str] = frozenset()
    """The segments that its index had when this one was built."""

    @property
    def name(self) -> str:
        """The name of the index."""
        return self.segment.name

    @property
    def files(self) -> tuple[str, ...]:
        """Its files, below the table's directory."""
        found = self.segment.files or []
        return tuple(f"_indices/{self.segment.uuid}/{file.path}" for file in found)


def index_name(table: Table, column: str, kind: IndexKind) -> str:
    """The name of our index of a kind on a column: one of each at most, and renames keep it."""
    field = table.dataset().lance_schema.field(table.columns.of(column))
    if field is None:
        raise StorageError(f"{table.location} has no column {column!r}", kind="not_found")
    return f"{kind.lower()}_{field.id()}"


def build_index(
    table: Table,
    column: str,
    kind: IndexKind,
    fragments: Iterable[int],
    *,
    partitions: int = 1,
    metric: Metric = "cosine",
    with_position: bool = True,
    beside: bool = False,
    instead_of: Sequence[str] = (),
) -> BuiltIndex:
    """Index the rows that some fragments of a table hold; nobody sees it yet.

    ``partitions`` and ``metric`` are for vectors, of which there has to be one at least;
    ``with_position`` (phrase search) is for text.
    """
    name = index_name(table, column, kind)
    # A handle of its own: while Lance builds an index, nobody else can use the handle.
    dataset = open_alone(table.location, table.pin.version)
    options: dict[str, Any] = {}
    if kind in VECTOR_KINDS:
        options = {"metric": metric, "num_partitions": partitions, **build_options(kind)}
    elif kind == "INVERTED":
        options = {**ANALYZER, "with_position": with_position}
    with storage_errors(f"indexing {column!r} of {table.location}"):
        segment = dataset.create_index_uncommitted(
            # "replace" only lets the name be used again: the commit says what goes.
            table.columns.of(column),
            kind,
            name=name,
            replace=True,
            fragment_ids=sorted(fragments),
            **options,
        )
        if kind == "INVERTED":
            # As it comes, the segment is not finished: committed so, every search would fail.
            segment = dataset.merge_existing_index_segments([segment])
        known = frozenset(old.uuid for old in segments_of(dataset, name))
    return BuiltIndex(
        column,
        kind,
        table.pin,
        dataclasses.replace(segment, name=name),
        beside,
        (name, *instead_of),
        known,
    )


def commit_indexes(
    table: Table,
    built: Sequence[BuiltIndex],
    stamp: Stamp | None = None,
    *,
    dropped: Iterable[str] = (),
) -> TablePin:
    """Commit segments, and drop the indexes of these names, all in one version.

    The segments may have been built on an older version of the table. Then they count for the
    fragments that are still the same, as if the newer rows had been written after them; what
    somebody else has indexed better meanwhile is left out.
    """
    from lance import LanceOperation

    dataset = table.dataset()
    added: list[Index] = []
    gone: dict[str, Index] = {}
    with storage_errors(f"indexing {table.location}"):
        for one in built:
            segment = _fitted(table, dataset, one)
            if segment is None:
                continue
            added.append(segment)
            if not one.beside:
                for name in one.instead_of:
                    gone |= {old.uuid: old for old in segments_of(dataset, name)}
        for name in dropped:
            gone |= {old.uuid: old for old in segments_of(dataset, name)}
    if not added and not gone:
        return table.pin
    operation = LanceOperation.CreateIndex(added, list(gone.values()))
    return commit_detached(table, operation, stamp)


def _fitted(table: Table, dataset: LanceDataset, built: BuiltIndex) -> Index | None:
    """A segment as this version wants it: without fragments that are others by now.

    Rows that were updated since have left for other fragments, and those it does not claim.
    """
    if built.built_on.version == table.pin.version:
        return built.segment
    fragments = frozenset(built.segment.fragment_ids)
    fragments -= fragment_delta(table.at(built.built_on), table).gone
    known = segments_of(dataset, built.name)
    covered = frozenset(number for old in known for number in old.fragment_ids)
    if not fragments:
        return None
    if built.beside:
        is_better = not known or bool(fragments & covered)
    else:
        is_better = frozenset(old.uuid for old in known) != built.replaced and fragments <= covered
    if is_better:
        return None
    return dataclasses.replace(
        built.segment,
        fragment_ids=fragments,  # type: ignore[arg-type] # the stub has only Lance's own bitmap
    )


def is_committed(table: Table, built: BuiltIndex) -> bool:
    """Whether a version refers to a segment."""
    return any(old.uuid == built.segment.uuid for old in segments_of(table.dataset(), built.name))


def segments_of(dataset: LanceDataset, name: str) -> list[Index]:
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
