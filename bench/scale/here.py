"""Loads of this process: a few rows at once, and a CSV that is larger than what they may hold.

Owns the input of both, and what is measured: seconds once everything is imported, and the peak of
the whole process.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

import omnigraph as og
from bench.scale.processes import forget_peak, memory

SCHEMA = """
node Person { name: String @key
 age: I32?
 note: String? }
"""
WORDS = "somewhat longer than a name, as a line of a text that somebody has written may be"
AT_ONCE = 250_000


def _people(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "name": [f"person-{number}" for number in numbers],
            "age": pa.array([number % 90 for number in numbers], pa.int32()),
            "note": [f"{number} {WORDS}" for number in numbers],
        }
    )


def write_csv(place: Path, count: int) -> Path:
    """So many persons, a hundred bytes each."""
    writer = None
    for first in range(0, count, AT_ONCE):
        rows = _people(first, min(AT_ONCE, count - first))
        writer = writer or pv.CSVWriter(place, rows.schema)
        writer.write_table(rows)
    if writer is not None:
        writer.close()
    return place


def at_once(directory: Path, count: int) -> dict[str, Any]:
    """Seconds of so many rows as CSV and as Parquet, the fastest of a few."""
    csv = write_csv(directory / "people.csv", count)
    parquet = directory / "people.parquet"
    pq.write_table(_people(0, count), parquet)
    found: dict[str, Any] = {}
    for name, file in (("csv", csv), ("parquet", parquet)):
        seconds = []
        for attempt in range(4):
            # The first imports what is needed.
            graph = og.init(directory / f"{name}{attempt}", SCHEMA)
            begun = time.perf_counter()
            graph.load({"Person": str(file)}, mode="append")
            seconds.append(time.perf_counter() - begun)
        found[name] = min(seconds[1:])
    return found | {"spark": "pyspark" in sys.modules}


def large_csv(directory: Path, count: int) -> dict[str, Any]:
    """The peak of a process that loads so many rows of CSV, and how large the file was."""
    file = write_csv(directory / "people.csv", count)
    graph = og.init(directory / "graph", SCHEMA)
    forget_peak()
    begun = time.perf_counter()
    done = graph.load({"Person": str(file)}, mode="append", engine="inline")
    seconds = time.perf_counter() - begun
    return {
        "bytes": file.stat().st_size,
        "seconds": seconds,
        "peak": memory("VmHWM"),
        "rows": done.total,
        "spark": "pyspark" in sys.modules,
    }
