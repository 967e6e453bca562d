"""A process that loads once and is measured: `python -m bench.scale.worker '{"case": …}'`.

Owns the graphs of the cases and their input. Prints one line of JSON. Time of making the input
and the graph is nobody's.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph as og
from bench.scale.here import at_once, large_csv
from bench.scale.processes import forget_peak, measured_runner, memory
from bench.scale.store import on_store
from omnigraph.pipeline.load.check import round_rows
from omnigraph.pipeline.load.entry import catalog_for, load_given
from omnigraph.pipeline.load.stage.frames import given
from omnigraph.write.load.operation import LoadOptions
from omnigraph.write.recovery.intents import STAGING

SCHEMA = """
node Person { name: String @key
 age: I32? }
edge Knows: Person -> Person
edge Boss: Person -> Person @card(0..4)
"""
AT_ONCE = 1_000_000
CHECKS = ("cut keys", "check", "find rows", "leave out")


def people(place: Path, count: int, first: int = 0) -> Path:
    """Persons, by number."""
    return _written(place, count, lambda rows: {"name": _names(rows + first), "age": rows % 90})


def edges(place: Path, count: int, people: int, *, missing: int = 0) -> Path:
    """Edges between persons in no order; ``missing`` of them lead to nobody."""
    random = np.random.default_rng(7)

    def columns(rows: np.ndarray) -> dict[str, Any]:
        ends = [random.integers(0, people, len(rows)) for _ in range(2)]
        lost = rows < missing
        return {"from": _names(ends[0]), "to": _names(np.where(lost, people + rows, ends[1]))}

    return _written(place, count, columns)


def graph_files(directory: Path, count: int, people_count: int) -> dict[str, Path]:
    """Persons, and edges between them."""
    return {
        "Person": people(directory / "people.parquet", people_count),
        "Knows": edges(directory / "edges.parquet", count, people_count),
    }


def bounded(place: Path, count: int, people: int) -> Path:
    """Edges of which no source has many."""
    return _written(
        place,
        count,
        lambda rows: {"from": _names(rows % people), "to": _names(rows * 31 % people)},
    )


def _names(numbers: np.ndarray) -> pa.Array:
    import pyarrow.compute as pc

    texts = pa.array(numbers, pa.int64()).cast(pa.string())
    return pc.binary_join_element_wise("person", texts, "-")


def _written(place: Path, count: int, columns: Callable[[np.ndarray], dict[str, Any]]) -> Path:
    writer = None
    for first in range(0, count, AT_ONCE):
        rows = pa.table(columns(np.arange(first, min(first + AT_ONCE, count))))
        writer = writer or pq.ParquetWriter(place, rows.schema)
        writer.write_table(rows, row_group_size=122_880)
    if writer is not None:
        writer.close()
    return place


@contextmanager
def temporary_bytes(graph: og.Graph) -> Iterator[dict[str, int]]:
    """The most that lay in the staging area during the block."""
    found, done = {"bytes": 0}, Event()
    root = Path(graph.location.path) / STAGING

    def watch() -> None:
        while not done.wait(0.05):
            total = 0
            for file in root.rglob("*"):
                try:
                    total += file.stat().st_size
                except FileNotFoundError:
                    continue
            found["bytes"] = max(found["bytes"], total)

    thread = Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def load(graph: og.Graph, data: Mapping[str, Path], mode: str, **options: Any) -> dict[str, Any]:
    """Load once, and say what it took."""
    target = graph._access.target("main")  # noqa: SLF001 - the runner is no public choice
    found = given({name: str(path) for name, path in data.items()}, catalog_for(target))
    with measured_runner() as runner, temporary_bytes(graph) as temporary:
        forget_peak()
        before, begun, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
        result = load_given(found, LoadOptions.of(mode, **options), target, runner)
        seconds = time.perf_counter() - begun
        own = time.process_time() - cpu
        peak = memory("VmHWM")
    booked = runner.cpu
    return {
        "checks": sum(booked.get(title, 0.0) for title in CHECKS),
        "cpu": {title: round(took, 2) for title, took in booked.items()},
        "driver_cpu": own,
        "seconds": seconds,
        "stages": {title: round(took, 2) for title, took in runner.seconds.items()},
        "worker": max(runner.peak.get(title, 0) for title in CHECKS),
        "workers": dict(runner.peak),
        "driver": peak - before,
        "temporary": temporary["bytes"],
        "rows": sum(result.nodes.values()) + sum(result.edges.values()),
        "rejected": result.rejected,
    }


def measure(asked: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """The case that is asked for."""
    count, ranges = asked["rows"], asked.get("ranges")
    if ranges is not None:
        round_rows.ranges_for = partial(_fixed, ranges)
    match asked["case"]:
        case "at once":
            return at_once(directory, count)
        case "large csv":
            return large_csv(directory, count)
    few = max(count // 6, 1)
    if asked["case"] == "store":
        return on_store(directory, SCHEMA, graph_files(directory, count - few, few))
    graph = og.init(directory / "graph", SCHEMA)
    match asked["case"]:
        case "graph":
            return load(graph, graph_files(directory, count - few, few), "append")
        case "nodes":
            return load(graph, {"Person": people(directory / "people.parquet", count)}, "append")
        case "small":
            load(graph, {"Person": people(directory / "people.parquet", count)}, "append")
            files = {
                "Person": people(directory / "more.parquet", 1_000, count),
                "Knows": edges(directory / "edges.parquet", 10_000, count),
            }
            return load(graph, files, "append")
        case "bounded":
            files = {
                "Person": people(directory / "people.parquet", few),
                "Boss": bounded(directory / "edges.parquet", count, few),
            }
            return load(graph, files, "append", on_error="skip")
        case "replaced":
            file = people(directory / "people.parquet", count)
            load(graph, {"Person": file}, "append")
            return load(graph, {"Person": file}, "merge")
        case "rejected":
            files = {
                "Person": people(directory / "people.parquet", few),
                "Knows": edges(directory / "edges.parquet", count, few, missing=count),
            }
            return load(graph, files, "append", on_error="skip")
    raise ValueError(f"no such case: {asked['case']}")


def _fixed(ranges: int, size: int) -> int:  # noqa: ARG001 - takes the place of another
    return ranges


def main(asked: str) -> None:
    """Measure one case in a directory of its own."""
    with TemporaryDirectory(prefix="omnigraph-scale-") as name:
        print(json.dumps(measure(json.loads(asked), Path(name))))


if __name__ == "__main__":
    main(sys.argv[1])
