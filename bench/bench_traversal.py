"""How fast the read engine is beside peers that hold the same graph, warm and cold.

Owns the sizes, the order of measuring and the limits. `OMNIGRAPH_BENCH_BIG=1` asks for
ten times the graph and the memory of one query on it. A peer that is not installed is
left out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.ratio import Ratio
from bench.traversal.cold import cold_ratio, show_memory
from bench.traversal.data import People, people
from bench.traversal.questions import QUESTIONS, Question
from bench.traversal.systems import OURS, PEERS, Rows, is_installed
from bench.traversal.tables import Line, Times, agree, table
from bench.traversal.workers import Worker

BIG = "OMNIGRAPH_BENCH_BIG"


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    people: int
    edges: int
    runs: int = 50
    rounds: int = 3
    cold_runs: int = 5
    with_memory: bool = False


NORMAL = Size(100_000, 1_000_000)
LARGE = Size(1_000_000, 10_000_000, with_memory=True)


def run() -> list[Ratio]:
    """Print the tables; the ratios carry the limits."""
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
        graph = people(size.people, size.edges)
        graph.write(directory)
        with ExitStack() as stack:
            workers = [
                stack.enter_context(Worker(system, directory / system)) for system in (OURS, *peers)
            ]
            load(workers, directory)
            lines = [
                asked_line(question, graph, workers, size.runs, size.rounds)
                for question in QUESTIONS
            ]
        print(table(lines, peers))
        ratios = [ratio for line in lines if (ratio := line.ratio()) is not None]
        ratios.append(cold_ratio(directory / OURS, graph, size.cold_runs))
        if size.with_memory:
            show_memory(directory, graph, peers)
    print(f"load average {os.getloadavg()[0]:.1f}")
    return ratios


def load(workers: Sequence[Worker], files: Path) -> None:
    """Have every system store the same files."""
    for worker in workers:
        seconds = worker.tell("load", files=str(files))["seconds"]
        megabytes = worker.tell("memory")["bytes"] / 2**20
        print(f"{worker.name:<10} loaded in {seconds:6.1f} s, at most {megabytes:6.0f} MB")


def asked_line(
    question: Question, graph: People, workers: Sequence[Worker], runs: int, rounds: int
) -> Line:
    """Every system in turns, several rounds; of each single time the fastest counts.

    What others do on this machine only ever adds to a time.
    """
    params = list(question.params(graph, runs))
    workers = [worker for worker in workers if question.may_ask(worker.name)]
    times: dict[str, list[list[float]]] = {worker.name: [] for worker in workers}
    answers: dict[str, list[Rows]] = {}
    # The first round fills the caches.
    for turn in range(1 + rounds):
        for worker in workers:
            reply = worker.tell("ask", question=question.name, params=params)
            answers[worker.name] = reply["answers"]
            if turn:
                times[worker.name].append(reply["seconds"])
    for worker in workers:
        for ours, theirs, asked in zip(answers[OURS], answers[worker.name], params, strict=True):
            if not agree(question, ours, theirs):
                found = f"{worker.name} says {theirs[:3]}, {OURS} says {ours[:3]}"
                raise RuntimeError(f"{question.name} for {asked}: {found}")
    fastest = {
        name: Times(tuple(map(min, zip(*found, strict=True)))) for name, found in times.items()
    }
    return Line(question, fastest)
