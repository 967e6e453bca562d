"""The systems that load: ours on Spark and in its process, its peers, and Lance alone.

Owns how each loads the same files into something empty, and counts the edges it then has.
Every system runs in a process of its own, and is asked again and again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.load.data import (
    DELTA_FILE,
    EDGES_LINES,
    NAMED_EDGES_FILE,
    PEOPLE_LINES,
)
from bench.traversal.data import EDGES_FILE, PEOPLE_FILE
from bench.traversal.systems import OURS, SCHEMA, Cypher

LANCE = "lance"
HERE = "omnigraph in process"
PEERS = ("ladybug", "kuzu")
DRIVER_MEMORY = "1g"


@dataclass(frozen=True, slots=True)
class Loaded:
    """One load: how long it took, where the time went, and the edges that are there now."""

    seconds: float
    edges: int
    stages: dict[str, float] = field(default_factory=dict)


class Loader(Protocol):
    """What a process does on behalf of the benchmark."""

    def start(self, *, warm_up: bool) -> dict[str, float]:
        """Get ready; the seconds of each step."""

    def load(self, shape: str, files: Path, into: Path) -> Loaded:
        """Load one shape of the files."""


def loader(name: str) -> Loader:
    """A system by its name."""
    match name:
        case "omnigraph":
            return Omnigraph()
        case "omnigraph in process":
            return Here()
        case "lance":
            return Lance()
    return Peer(name)


class Omnigraph:
    """Ours, always on Spark."""

    def start(self, *, warm_up: bool) -> dict[str, float]:
        """A session, and one job that starts the workers."""
        from omnigraph.pipeline.spark.session import spark_session
        from omnigraph.pipeline.spark.tasks import run_tasks

        begun = time.perf_counter()
        with spark_session(_settings()) as engine:
            started = time.perf_counter()
            seconds = {"session": started - begun}
            if warm_up:
                run_tasks(engine, abs, range(engine.cores))
                seconds["first job"] = time.perf_counter() - started
        return seconds

    def load(self, shape: str, files: Path, into: Path) -> Loaded:
        """As one commit, checked; a delta goes into the graph that is there."""
        import omnigraph.graph as og

        is_delta = shape == "delta"
        graph = og.open(into) if is_delta else og.init(into, SCHEMA)
        data = _data(shape, files)
        begun = time.perf_counter()
        done = graph.load(
            data, mode="merge" if is_delta else "append", engine="spark", spark=_settings()
        )
        seconds = time.perf_counter() - begun
        stages = {} if done.work is None else dict(done.work.seconds)
        return Loaded(seconds, graph.table("Knows").count_rows(), stages)


class Here:
    """Ours as it chooses for itself: files of these sizes are loaded in its process."""

    def start(self, *, warm_up: bool) -> dict[str, float]:  # noqa: ARG002 - the protocol
        """Nothing has to be started."""
        return {}

    def load(self, shape: str, files: Path, into: Path) -> Loaded:
        """As one commit, checked."""
        import omnigraph.graph as og

        graph = og.init(into, SCHEMA)
        data = _data(shape, files)
        begun = time.perf_counter()
        done = graph.load(data, mode="append")
        seconds = time.perf_counter() - begun
        if done.engine != "inline":
            raise RuntimeError(f"it has chosen {done.engine}")
        stages = {} if done.work is None else dict(done.work.seconds)
        return Loaded(seconds, graph.table("Knows").count_rows(), stages)


def _settings() -> Any:
    from omnigraph.pipeline.spark.settings import SparkSettings

    return SparkSettings(conf={"spark.driver.memory": DRIVER_MEMORY})


def _data(shape: str, files: Path) -> object:
    match shape:
        case "jsonl":
            return [files / PEOPLE_LINES, files / EDGES_LINES]
        case "parquet":
            return {"Person": files / PEOPLE_FILE, "Knows": files / EDGES_FILE}
        case "named":
            return {"Person": files / PEOPLE_FILE, "Knows": files / NAMED_EDGES_FILE}
        case "delta":
            return {"Knows": files / DELTA_FILE}
    raise ValueError(f"there is no shape {shape}")


class Peer:
    """Kuzu and its successor: one database for each load."""

    def __init__(self, name: str) -> None:
        self.name = name

    def start(self, *, warm_up: bool) -> dict[str, float]:  # noqa: ARG002 - the protocol
        """Nothing has to be started."""
        return {}

    def load(self, shape: str, files: Path, into: Path) -> Loaded:
        """COPY, people first, with their names as the primary key."""
        if shape != "parquet":
            raise ValueError(f"{self.name} loads Parquet, not {shape}")
        into.mkdir(parents=True)
        system = Cypher(self.name, into)
        begun = time.perf_counter()
        system.load(files)
        seconds = time.perf_counter() - begun
        rows = system.connection.execute("MATCH ()-[k:Knows]->() RETURN count(k)").get_all()
        system.connection.close()
        system.database.close()
        return Loaded(seconds, int(next(iter(rows))[0]))


class Lance:
    """The same columns written as two tables that nobody checks: the floor."""

    def start(self, *, warm_up: bool) -> dict[str, float]:  # noqa: ARG002 - the protocol
        """Nothing has to be started."""
        return {}

    def load(self, shape: str, files: Path, into: Path) -> Loaded:  # noqa: ARG002 - the protocol
        """Batch by batch from Parquet."""
        import lance
        import pyarrow.parquet as pq

        begun = time.perf_counter()
        for name in (PEOPLE_FILE, EDGES_FILE):
            opened = pq.ParquetFile(files / name)
            lance.write_dataset(opened.iter_batches(), str(into / name), schema=opened.schema_arrow)
        seconds = time.perf_counter() - begun
        return Loaded(seconds, lance.dataset(str(into / EDGES_FILE)).count_rows())


__all__ = ["HERE", "LANCE", "OURS", "PEERS", "Loaded", "Loader", "loader"]
