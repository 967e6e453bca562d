"""How fast the language is: what analysts ask beside DuckDB on the same rows, ways beside ladybug.

Owns the sizes, the order of measuring and the limits. `OMNIGRAPH_BENCH_BIG=1` asks for ten times
the graph. A peer that is not installed is left out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.bench_traversal import BIG, asked_line, load
from bench.language.data import write
from bench.language.questions import QUESTIONS
from bench.language.systems import PEER
from bench.ratio import Ratio
from bench.traversal.data import People, people
from bench.traversal.questions import WAYS, Question
from bench.traversal.systems import OURS, is_installed
from bench.traversal.tables import Line, table
from bench.traversal.workers import PROGRAM, Worker

HERE = "bench.language.worker"
WAY_PEERS = ("ladybug", "kuzu")


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    people: int
    edges: int
    runs: int = 3
    rounds: int = 5
    ways: int = 50
    way_rounds: int = 3


NORMAL = Size(100_000, 1_000_000)
LARGE = Size(1_000_000, 10_000_000)


def run() -> list[Ratio]:
    """Print the tables; the ratios carry the limits."""
    return measure(LARGE if os.environ.get(BIG, "0") not in ("", "0") else NORMAL)


def measure(size: Size) -> list[Ratio]:
    """All lines for a graph of one size."""
    print(f"{size.people:,} persons, {size.edges:,} edges; load average {os.getloadavg()[0]:.1f}")
    graph = people(size.people, size.edges)
    with TemporaryDirectory() as name:
        write(graph, Path(name))
        peers = _installed([PEER])
        asked = _lines(QUESTIONS, graph, peers, Path(name), (HERE, size.runs, size.rounds))
        print(table(asked, peers))
    with TemporaryDirectory() as name:
        graph.write(Path(name))
        peers = _installed(WAY_PEERS)
        ways = _lines(WAYS, graph, peers, Path(name), (PROGRAM, size.ways, size.way_rounds))
        print(table(ways, peers))
    print(f"load average {os.getloadavg()[0]:.1f}")
    return [ratio for line in (*asked, *ways) if (ratio := line.ratio()) is not None]


def _installed(peers: Sequence[str]) -> list[str]:
    for name in peers:
        if not is_installed(name):
            print(f"{name} is not installed and left out")
    return [name for name in peers if is_installed(name)]


def _lines(
    questions: Sequence[Question],
    graph: People,
    peers: Sequence[str],
    directory: Path,
    how: tuple[str, int, int],
) -> list[Line]:
    """Ours and the peers in turns, on the files of a directory."""
    program, runs, rounds = how
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Worker(system, directory / system, program=program))
            for system in (OURS, *peers)
        ]
        load(workers, directory)
        return [asked_line(question, graph, workers, runs, rounds) for question in questions]
