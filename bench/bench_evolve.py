"""What a schema change costs: names and rules as little as in a small graph, columns their writing.

Owns the sizes, the order of measuring and the limits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count, cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import omnigraph as og
from bench.ratio import Ratio, interleaved

SMALL, LARGE = 1_000, 1_000_000
RUNS = 9
GROWTH_LIMIT, COLUMN_LIMIT = 1.3, 1.5
_LAID_OUT: dict[str, Any] = {"max_rows_per_file": 250_000, "data_storage_version": "2.2"}
SCHEMA = "node Person {{ name: String @key  {0}: I32?  note: String? }}"


def run() -> list[Ratio]:
    """A rename in a small and a large table, and a column beside writing it with Lance alone."""
    print(f"load average {os.getloadavg()[0]:.1f}")
    with TemporaryDirectory() as name:
        directory = Path(name)
        small, large = (_graph(directory / f"g{rows}", rows) for rows in (SMALL, LARGE))
        return [_renames(small, large), *_columns(large, directory)]


def _graph(path: Path, rows: int) -> og.Graph:
    graph = og.init(path, SCHEMA.format("age"))
    names = pa.array([f"p{number:07d}" for number in range(rows)])
    ages = pa.array(np.arange(rows, dtype=np.int32))
    people = pa.table({"name": names, "age": ages, "note": names})
    graph.load({"Person": people}, mode="append", engine="inline")
    return graph


def _renames(small: og.Graph, large: og.Graph) -> Ratio:
    seconds = interleaved(_rename(large), _rename(small), runs=2 * RUNS)
    return Ratio("rename a property: 1M rows / 1k rows", *seconds, GROWTH_LIMIT)


def _rename(graph: og.Graph) -> Callable[[], object]:
    """Each call gives the property its other name."""
    turns = cycle([("age", "years"), ("years", "age")])

    def rename() -> None:
        former, name = next(turns)
        text = SCHEMA.format(name).replace("I32?", f'I32? @rename_from("{former}")')
        graph.apply_schema(text)

    return rename


def _columns(graph: og.Graph, directory: Path) -> list[Ratio]:
    """Beside Lance adding the column to a table of its own, and beside a table of it alone."""
    numbers = count()
    names = pa.array([f"p{number:07d}" for number in range(LARGE)])
    rows = pa.table({"name": names, "age": np.arange(LARGE, dtype=np.int32), "note": names})
    raw = pa.table({"score": pa.array(np.full(LARGE, 0.5))})
    path = directory / "lance"
    lance.write_dataset(rows, path, **_LAID_OUT)

    def add() -> None:
        column = f"s{next(numbers)}: F64 @default(0.5)  note:"
        graph.apply_schema(graph.schema.replace("note:", column))

    def let_lance_add() -> None:
        lance.dataset(path).add_columns({f"s{next(numbers)}": "cast(0.5 as double)"})

    def write() -> None:
        lance.write_dataset(raw, directory / f"raw{next(numbers)}", **_LAID_OUT)

    named = "add a column with a default to 1M rows"
    return [
        Ratio(
            f"{named} / Lance adds it", *interleaved(add, let_lance_add, runs=RUNS), COLUMN_LIMIT
        ),
        Ratio(f"{named} / a table of it", *interleaved(add, write, runs=RUNS), COLUMN_LIMIT),
    ]
