"""What checking a load costs as the load grows: CPU by ranges and by rows, memory, temporary files.

Owns the sizes and the limits. Every case is a process of its own; its tasks run in two workers
that are measured one task at a time, but for the loads of one process, which are measured whole.
`OMNIGRAPH_BENCH_BIG=1` asks for the sizes that the limits were made for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.bench_traversal import BIG
from bench.ratio import Ratio

CPU_OF_RANGES = 1.5
CPU_OF_ROWS = 1.2
WORKER_BYTES = 600 * 10**6
DRIVER_BYTES = 50 * 10**6
SMALL_SECONDS = 5.0
SMALL_BYTES = 50 * 10**6
AT_ONCE_ROWS = 100_000
AT_ONCE_SECONDS = 1.0
CSV_BYTES = 700 * 10**6
READ_OF_STAGED = 2.0
TIMEOUT = 1_800
MB = 10**6


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows each case has."""

    graph: int
    nodes: int
    stored: int
    bounded: int
    replaced: int
    rejected: int
    csv: int
    store: int


NORMAL = Size(1_500_000, 500_000, 1_000_000, 200_000, 100_000, 200_000, 2_000_000, 200_000)
LARGE = Size(
    12_000_000, 6_000_000, 24_000_000, 3_000_000, 1_200_000, 2_600_000, 10_000_000, 1_200_000
)
RANGES = (1, 16, 64)


def run() -> list[Ratio]:
    """Print what every case took; the ratios have the limits."""
    return measure(LARGE if os.environ.get(BIG, "0") not in ("", "0") else NORMAL)


def measure(size: Size) -> list[Ratio]:
    """All cases of a size."""
    return [*_here(size), *_on_store(size), *_checked(size)]


def _here(size: Size) -> list[Ratio]:
    """Loads of one process, without Spark."""
    few, much = _asked("at once", AT_ONCE_ROWS), _asked("large csv", size.csv)
    if few["spark"] or much["spark"]:
        raise AssertionError("pyspark was imported")
    print(
        f"{AT_ONCE_ROWS:,} rows in one process: CSV {few['csv']:.2f} s, "
        f"Parquet {few['parquet']:.2f} s; CSV of {much['bytes'] / MB:,.0f} MB: "
        f"{much['seconds']:.1f} s, {much['rows'] / much['seconds']:,.0f} rows/s, "
        f"peak {much['peak'] / MB:.0f} MB"
    )
    return [
        Ratio("100k rows of CSV at once", few["csv"], AT_ONCE_SECONDS, 1.0),
        Ratio("100k rows of Parquet at once", few["parquet"], AT_ONCE_SECONDS, 1.0),
        Ratio("peak of a large CSV", much["peak"] / MB, CSV_BYTES / MB, 1.0, "MB"),
    ]


def _on_store(size: Size) -> list[Ratio]:
    """Bytes that are read of an object store, however the keys are cut."""
    ratios = []
    for ranges in RANGES:
        found = _asked("store", size.store, ranges=ranges)
        staged, read = found["staged"] / MB, found["read"] / MB
        print(
            f"store, {found['rows']:,} rows, {ranges} ranges: staged {staged:.1f} MB, "
            f"read {read:.1f} MB"
        )
        name = f"read of S3 / staged, {ranges} ranges"
        ratios.append(Ratio(name, read, staged, READ_OF_STAGED, "MB"))
    return ratios


def _checked(size: Size) -> list[Ratio]:
    graphs = {ranges: case("graph", size.graph, ranges) for ranges in RANGES}
    few, many = case("nodes", size.nodes), case("nodes", 4 * size.nodes)
    small = case("small", size.stored)
    driver = {
        name: case(name, rows)
        for name, rows in (
            ("bounded", size.bounded),
            ("replaced", size.replaced),
            ("rejected", size.rejected),
        )
    }
    ratios = [
        Ratio(
            f"cut and check, {ranges} ranges / 1",
            graphs[ranges]["checks"],
            graphs[1]["checks"],
            CPU_OF_RANGES,
        )
        for ranges in RANGES[1:]
    ]
    ratios.append(
        Ratio(
            "cut and check a node, four times the nodes",
            many["checks"] / many["rows"] * 1e6,
            few["checks"] / few["rows"] * 1e6,
            CPU_OF_ROWS,
            "us",
        )
    )
    # One range of everything is what nobody has who does not ask for it.
    measured = [graphs[RANGES[-1]], few, many, small, *driver.values()]
    worker = max(one["worker"] for one in measured)
    ratios.append(Ratio("worker that checks", worker / MB, WORKER_BYTES / MB, 1.0, "MB"))
    ratios += [
        Ratio(f"driver, {name} rows", one["driver"] / MB, DRIVER_BYTES / MB, 1.0, "MB")
        for name, one in driver.items()
    ]
    return [
        *ratios,
        Ratio("11k rows beside many", small["seconds"], SMALL_SECONDS, 1.0),
        Ratio("their temporary files", small["temporary"] / MB, SMALL_BYTES / MB, 1.0, "MB"),
    ]


def case(name: str, rows: int, ranges: int | None = None) -> Mapping[str, Any]:
    """One load in a process of its own."""
    found = _asked(name, rows, **({} if ranges is None else {"ranges": ranges}))
    cut = "" if ranges is None else f", {ranges} ranges"
    stages = ", ".join(f"{title} {took:.1f}" for title, took in found["cpu"].items() if took >= 0.1)
    print(
        f"{name}, {rows:,} rows{cut}: CPU s: {stages}; {found['seconds']:.1f} s in all; "
        f"worker {found['worker'] / MB:.0f} MB, driver {found['driver'] / MB:+.0f} MB, "
        f"temporary {found['temporary'] / MB:.1f} MB"
    )
    return found


def _asked(name: str, rows: int, **more: int) -> dict[str, Any]:
    asked = {"case": name, "rows": rows, **more}
    command = [sys.executable, "-m", "bench.scale.worker", json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
