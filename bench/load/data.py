"""The files of the load benchmark: one graph of people, written in every shape that is loaded.

Owns their names, columns and row groups. All systems read the same Parquet files; only ours
knows lines of JSON, and edges with ids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.traversal.data import EDGES_FILE, PEOPLE_FILE, SEED, People, people

NAMED_EDGES_FILE, DELTA_FILE = "named-edges.parquet", "delta.parquet"
PEOPLE_LINES, EDGES_LINES = "people.jsonl", "edges.jsonl"
# What common writers make of a table.
GROUP_ROWS = 122_880
LINES_AT_ONCE = 262_144
DELTA_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class LoadFiles:
    """Where the files of one graph lie, and how much is in them."""

    directory: Path
    people: int
    edges: int

    @property
    def rows(self) -> int:
        """All entities."""
        return self.people + self.edges

    @property
    def delta(self) -> int:
        """The edges of the delta; every other one is new."""
        return int(self.edges * DELTA_SHARE)

    @property
    def edges_after_delta(self) -> int:
        """How many edges there are when the delta has been merged."""
        return self.edges + self.delta // 2

    @classmethod
    def write(cls, directory: Path, count: int, edges: int) -> LoadFiles:
        """Make the graph of a size and write it in every shape."""
        directory.mkdir(parents=True, exist_ok=True)
        graph = people(count, edges)
        files = cls(directory, count, edges)
        nodes, pairs = graph.node_table(), graph.edge_table().select(["from", "to"])
        _write_table(directory / PEOPLE_FILE, nodes)
        _write_table(directory / EDGES_FILE, pairs)
        named = pairs.add_column(0, "id", _ids(np.arange(edges)))
        _write_table(directory / NAMED_EDGES_FILE, named)
        _write_table(directory / DELTA_FILE, _delta(graph, files.delta))
        _write_lines(directory / PEOPLE_LINES, nodes, _node_lines)
        _write_lines(directory / EDGES_LINES, pairs, _edge_lines)
        return files


def _ids(numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise("edge", pa.array(numbers).cast(pa.string()), "-")


def _delta(graph: People, count: int) -> pa.Table:
    """Edges between other people: half of them have ids that are there, half are new."""
    random = np.random.default_rng(SEED + 3)
    stored = len(graph.sources)
    known = random.choice(stored, count - count // 2, replace=False)
    names = graph.names
    ends = [names.take(pa.array(random.integers(0, graph.count, count))) for _ in range(2)]
    ids = np.concatenate([known, np.arange(stored, stored + count // 2)])
    return pa.table({"id": _ids(random.permutation(ids)), "from": ends[0], "to": ends[1]})


def _write_table(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, row_group_size=GROUP_ROWS)


# -- lines of JSON -------------------------------------------------------------------
# Names and cities have no character that JSON would escape.


def _node_lines(rows: pa.Table) -> pa.Array:
    return pc.binary_join_element_wise(
        '{"type":"Person","data":{"name":"',
        rows.column("name").combine_chunks(),
        '","age":',
        rows.column("age").combine_chunks().cast(pa.string()),
        ',"city":"',
        rows.column("city").combine_chunks(),
        '"}}\n',
        "",
    )


def _edge_lines(rows: pa.Table) -> pa.Array:
    return pc.binary_join_element_wise(
        '{"edge":"Knows","from":"',
        rows.column("from").combine_chunks(),
        '","to":"',
        rows.column("to").combine_chunks(),
        '"}\n',
        "",
    )


def _write_lines(path: Path, table: pa.Table, lines: Callable[[pa.Table], pa.Array]) -> None:
    with path.open("wb") as file:
        for start in range(0, table.num_rows, LINES_AT_ONCE):
            texts = lines(table.slice(start, LINES_AT_ONCE)).to_pylist()
            file.write("".join(texts).encode())
