"""A network: nodes and edges of one snapshot as columns, edges by the places of their ends.

Owns reading the tables and finding the ends, by the column. Rows are ordered by id, so that the
same graph is always the same network. Knows no other library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.networks.choice import Choice
from omnigraph.rows.references import are_of, nodes_of

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Nodes:
    """The nodes of a type: their ids, and the properties that were wanted."""

    type: NodeType
    ids: pa.Array
    columns: pa.Table

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Edges:
    """The edges of a type between the nodes of two; ends are places among these nodes."""

    type: EdgeType
    source: str
    target: str
    ids: pa.Array
    sources: Places
    targets: Places
    columns: pa.Table

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Network:
    """Nodes by type and edges by type, of one commit."""

    commit_id: str
    nodes: tuple[Nodes, ...]
    edges: tuple[Edges, ...]

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Where the nodes of each type begin, where all are numbered through."""
        found, start = {}, 0
        for one in self.nodes:
            found[one.type.name] = start
            start += len(one)
        return found

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return sum(map(len, self.nodes))

    def ends(self, edges: Edges) -> tuple[Places, Places]:
        """The ends of edges where all nodes are numbered through."""
        return (
            edges.sources + self.offsets[edges.source],
            edges.targets + self.offsets[edges.target],
        )


def read_network(shown: Snapshot, catalog: Catalog, choice: Choice) -> Network:
    """The nodes and edges that were chosen; an edge without one of its ends is none."""
    nodes = {one.name: _nodes(shown, one, choice.properties_of(one)) for one in choice.nodes}
    edges = tuple(
        part
        for one in choice.edges
        for part in _edges(shown, catalog, one, choice.properties_of(one), nodes)
    )
    return Network(shown.commit_id, tuple(nodes.values()), edges)


def _nodes(shown: Snapshot, type_: NodeType, properties: Sequence[str]) -> Nodes:
    rows = _rows(shown, type_, [ID, *properties])
    return Nodes(type_, rows.column(ID).combine_chunks(), rows.select(properties))


def _edges(
    shown: Snapshot,
    catalog: Catalog,
    type_: EdgeType,
    properties: Sequence[str],
    nodes: dict[str, Nodes],
) -> Iterator[Edges]:
    """A part for each two types that edges lead between."""
    rows = _rows(shown, type_, [ID, SRC, DST, *properties])
    sources, targets = (
        [
            (one.name, _places(rows.column(end), nodes[one.name], is_shared=end in type_.shared))
            for one in catalog.nodes_at(type_, end)
            if one.name in nodes
        ]
        for end in (SRC, DST)
    )
    for source, starts in sources:
        for target, stops in targets:
            is_here = (starts >= 0) & (stops >= 0)
            part = rows if is_here.all() else rows.filter(pa.array(is_here))
            ends = starts[is_here], stops[is_here]
            is_only = len(sources) == len(targets) == 1
            if is_only or part.num_rows:
                ids, columns = part.column(ID).combine_chunks(), part.select(properties)
                yield Edges(type_, source, target, ids, *ends, columns)


def _rows(shown: Snapshot, type_: NodeType | EdgeType, columns: Sequence[str]) -> pa.Table:
    table = shown.table(type_.kind, type_.name).pinned
    stored = set(table.schema.names)
    rows = table.scan([name for name in columns if name in stored])
    rows = rows.take(pc.sort_indices(rows.column(ID)))
    for name in columns:
        if name not in stored:
            rows = rows.append_column(name, pa.nulls(rows.num_rows))
    return rows


def _places(references: pa.ChunkedArray, nodes: Nodes, *, is_shared: bool) -> Places:
    """Where the nodes are that edges name; -1 for one that is not among them."""
    whole = references.combine_chunks()
    ids = nodes_of(whole) if is_shared else whole
    found = pc.fill_null(pc.index_in(ids, value_set=nodes.ids), -1)
    places: Places = found.to_numpy(zero_copy_only=False).astype(np.int64)
    if is_shared:
        places[~are_of(whole, nodes.type.type_id)] = -1
    return places


def listed(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column as Python has them."""
    found: list[Any] = column.to_pylist()
    return found
