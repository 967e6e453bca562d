"""What the first query costs a process that has just opened the graph: time and memory.

Owns the processes that are started for it. Their imports are not measured; files are in
the page cache of the machine for both sides.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.ratio import Ratio
from bench.traversal.data import People
from bench.traversal.questions import QUESTIONS
from bench.traversal.systems import OURS
from bench.traversal.workers import ROOT, Worker

COLD_LIMIT = 4.0
COLD_QUESTION = "within 2 hops"
SMALL_ANSWER = "2 hops, filtered, top 10"

_SCAN = """
import sys, time
import lance
import pyarrow.parquet
import omnigraph.graph as og
graph = og.open(sys.argv[1])
pinned = graph.table("Knows")
uri, version = pinned.uri, pinned.version
start = time.perf_counter()
lance.dataset(uri, version=version, session=lance.Session()).to_table(columns=["@src", "@dst"])
print(time.perf_counter() - start)
"""
_QUERY = """
import sys, time
import lance
import pyarrow.compute
import omnigraph.graph as og
from bench.traversal.questions import QUESTIONS
(text,) = [question.ours for question in QUESTIONS if question.name == sys.argv[2]]
start = time.perf_counter()
og.open(sys.argv[1]).query(text, params={"n": sys.argv[3]}).rows
print(time.perf_counter() - start)
"""


def cold_ratio(directory: Path, graph: People, runs: int) -> Ratio:
    """Opening and one query of two hops, beside a raw scan of both ends of all edges."""
    path = str(directory / "graph.omni")
    queries, scans = [], []
    for name in graph.starts(runs):
        queries.append(_seconds(_QUERY, path, COLD_QUESTION, name))
        scans.append(_seconds(_SCAN, path))
    took, scan = statistics.median(queries), statistics.median(scans)
    return Ratio("open and first 2 hops / raw scan of edges", took, scan, COLD_LIMIT)


def show_memory(directory: Path, graph: People, peers: Sequence[str]) -> None:
    """Print the peak memory of a process that answers one query with ten rows."""
    question = next(found for found in QUESTIONS if found.name == SMALL_ANSWER)
    params = list(question.params(graph, 1))
    print("peak memory of a process that opens the graph and answers ten rows, MB")
    for system in (OURS, *peers):
        with Worker(system, directory / system) as worker:
            worker.tell("open")
            worker.tell("ask", question=question.name, params=params)
            print(f"{system:<10}{worker.tell('memory')['bytes'] / 2**20:>10.0f}")


def _seconds(script: str, *arguments: str) -> float:
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return float(done.stdout)
