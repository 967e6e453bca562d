"""How fast a validated load is, on Spark and in one process, beside peers that load the same files.

Owns the sizes, the order of measuring and the goals. `OMNIGRAPH_BENCH_BIG=1` asks for ten
times the graph. A peer that is not installed is left out.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.bench_traversal import BIG
from bench.load.data import LoadFiles
from bench.load.systems import HERE, LANCE, OURS, PEERS, Loaded
from bench.load.tables import Goal, Line, goal_table, load_table
from bench.load.workers import LoadWorker
from bench.ratio import Ratio
from bench.traversal.systems import is_installed

BEHIND_SLOWER_PEER = 3.0
AHEAD_OF_PEERS = 1.0
HERE_OVER_SLOWER_PEER = 1.0
HERE_OVER_FASTER_PEER = 0.8
JSONL_OVER_PARQUET = 2.0
MERGE_OVER_LOAD = 0.4
MEMORY_OF_TENFOLD = 1.5


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything; a large load is to be ahead of every peer."""

    people: int
    edges: int
    rounds: int = 3
    is_large: bool = False


NORMAL = Size(100_000, 1_000_000)
LARGE = Size(1_000_000, 10_000_000, rounds=2, is_large=True)


@dataclass(frozen=True, slots=True)
class Fresh:
    """One load in a process that had loaded nothing before: its time, and the driver's memory."""

    loaded: Loaded
    memory: int


def run() -> list[Ratio]:
    """Print the tables; the ratios have goals and no limits."""
    return measure(LARGE if os.environ.get(BIG, "0") not in ("", "0") else NORMAL)


def measure(size: Size) -> list[Ratio]:
    """All lines for a graph of one size."""
    peers = [name for name in PEERS if is_installed(name)]
    print(f"{size.people:,} persons, {size.edges:,} edges; load average {os.getloadavg()[0]:.1f}")
    for name in PEERS:
        if name not in peers:
            print(f"{name} is not installed and left out")
    with TemporaryDirectory() as name:
        directory = Path(name)
        files = LoadFiles.write(directory / "files", size.people, size.edges)
        tenth = LoadFiles.write(directory / "tenth", size.people // 10, size.edges // 10)
        lines = _lines(files, peers, size.rounds, directory)
        little = _fresh(tenth, directory / "little")
        much = _fresh(files, directory / "much")
    lines["first"] = Line("ours, Parquet, first load of a session", much.loaded, files.rows)
    print(load_table(list(lines.values())))
    goals = _goals(lines, peers, size)
    memory = Goal(
        "driver memory, ten times the input", much.memory, little.memory, MEMORY_OF_TENFOLD
    )
    shown = [f"{found.memory / 2**20:.0f} MB" for found in (little, much)]
    print(
        f"peak memory of the driver: {shown[0]} for {tenth.rows:,} rows, "
        f"{shown[1]} for {files.rows:,}"
    )
    print(goal_table([*goals, memory]))
    print(f"load average {os.getloadavg()[0]:.1f}")
    return [goal.ratio() for goal in goals]


def _lines(files: LoadFiles, peers: list[str], rounds: int, directory: Path) -> dict[str, Line]:
    """Every system in turns, several rounds, so that noise hits all alike."""
    found: dict[str, list[Loaded]] = {}
    with ExitStack() as stack:
        ours, here, *others = (
            stack.enter_context(LoadWorker(name, directory / name))
            for name in (OURS, HERE, LANCE, *peers)
        )
        started = ", ".join(f"{step} {took:.1f} s" for step, took in ours.start().items())
        print(f"started before the loads: {started}")
        for _ in range(rounds):
            for worker in others:
                found.setdefault(worker.name, []).append(worker.load("parquet", files))
            for shape in ("parquet", "jsonl"):
                found.setdefault(f"here {shape}", []).append(here.load(shape, files))
                found.setdefault(shape, []).append(ours.load(shape, files))
            full, merged = ours.load_and_merge(files)
            found.setdefault("named", []).append(full)
            found.setdefault("delta", []).append(merged)
    names = {
        LANCE: "raw Lance, nothing checked",
        **{peer: f"{peer}, COPY from Parquet" for peer in peers},
        "here parquet": "ours in its process, Parquet",
        "here jsonl": "ours in its process, JSONL",
        "parquet": "ours, Parquet",
        "jsonl": "ours, JSONL",
        "named": "ours, Parquet, edges with ids",
        "delta": "ours, merge of a 10 % delta",
    }
    rows = {"delta": files.delta}
    return {
        key: Line.fastest(name, found[key], rows.get(key, files.rows))
        for key, name in names.items()
    }


def _fresh(files: LoadFiles, directory: Path) -> Fresh:
    """A process of its own: what it needs at most is what this load needed."""
    with LoadWorker(OURS, directory) as worker:
        worker.start(warm_up=False)
        return Fresh(worker.load("parquet", files), worker.peak_memory())


def _goals(lines: dict[str, Line], peers: list[str], size: Size) -> list[Goal]:
    parquet, here = lines["parquet"].seconds, lines["here parquet"].seconds
    goals = [
        Goal("in process, JSONL / Parquet", lines["here jsonl"].seconds, here, JSONL_OVER_PARQUET)
    ]
    if peers:
        theirs = [lines[peer].seconds for peer in peers]
        goals.append(
            Goal("in process, Parquet / fastest peer", here, min(theirs), HERE_OVER_FASTER_PEER)
            if size.is_large
            else Goal(
                "in process, Parquet / slowest peer", here, max(theirs), HERE_OVER_SLOWER_PEER
            )
        )
        goals.append(
            Goal("Parquet load / fastest peer", parquet, min(theirs), AHEAD_OF_PEERS)
            if size.is_large
            else Goal("Parquet load / slowest peer", parquet, max(theirs), BEHIND_SLOWER_PEER)
        )
    full, merge = lines["named"].seconds, lines["delta"].seconds
    return [
        *goals,
        Goal("JSONL load / Parquet load", lines["jsonl"].seconds, parquet, JSONL_OVER_PARQUET),
        Goal("merge of a 10 % delta / full load", merge, full, MERGE_OVER_LOAD),
    ]
