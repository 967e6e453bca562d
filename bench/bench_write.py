"""What a write costs: one-row writes beside the floor that storage sets, commits per second, loads.

Owns the graphs, the steps and their limits. The floor of a one-row write is one raw
detached commit to the same table and one raw commit that replaces the head of a table
like the manifest, measured in turns with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import lance
import pyarrow as pa
from lance import LanceOperation
from lance.dataset import LanceDataset, Transaction
from lance.fragment import write_fragments

import omnigraph.graph as og
from bench.ratio import Ratio, interleaved
from omnigraph.graph import Graph
from omnigraph.lang.structural import ID
from omnigraph.storage.logs.head_log import HeadLog
from omnigraph.storage.objects.location import Location

SCHEMA = """
node Person { name: String @key  age: I32?  city: String?  joined: Date?  score: F64? }
edge Knows: Person -> Person { since: Date?  note: String? }
"""
SIZES = (1_000, 1_000_000)
RUNS = 25
LOADED = 100_000
INSERT_LIMIT, GROWTH_LIMIT = 2.5, 3.0
# Rows per second of a load over those of `json.loads`: at least 0.3, so at most this many times.
LOAD_LIMIT = 1 / 0.3

INSERT = "query q($n: String) { insert Person { name: $n, age: 3 } }"
UPDATE = "query q($n: String) { update Person set { age: 4 } where name = $n }"
DELETE = "query q($n: String) { delete Person where name = $n }"
CONNECT = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b } }"

_CHILD = """
import sys
import omnigraph.graph as og
graph = og.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    graph.mutate(sys.argv[4], params={"n": f"{sys.argv[2]}-{number}"})
"""


@dataclass(slots=True)
class Subject:
    """A graph of one size, and the floor beside it."""

    graph: Graph
    size: int
    head: HeadLog
    numbers: Iterator[int] = field(default_factory=count)

    def insert(self) -> None:
        """A new node with a key."""
        self.graph.mutate(INSERT, params={"n": f"new{next(self.numbers)}"})

    def update(self) -> None:
        """One node, by its key."""
        self.graph.mutate(UPDATE, params={"n": f"p{next(self.numbers) * 7 % self.size}"})

    def delete(self) -> None:
        """One node that has no edges, by its key."""
        self.graph.mutate(DELETE, params={"n": f"lone{next(self.numbers)}"})

    def connect(self) -> None:
        """An edge between two nodes."""
        number = next(self.numbers)
        ends = {"a": f"p{number * 7 % self.size}", "b": f"p{number * 13 % self.size}"}
        self.graph.mutate(CONNECT, params=ends)

    def floor(self) -> None:
        """One raw commit to the same table, and one raw commit of a head."""
        dataset = self.graph.table("Person")
        row = pa.table(
            {
                ID: [f"raw{next(self.numbers)}"],
                "age": pa.array([3], pa.int32()),
                "city": pa.nulls(1, pa.string()),
                "joined": pa.nulls(1, pa.date32()),
                "name": ["raw"],
                "score": pa.nulls(1, pa.float64()),
            }
        )
        fragments = write_fragments(row, dataset, mode="append", data_storage_version="2.2")
        transaction = Transaction(dataset.version, LanceOperation.Append(fragments))
        LanceDataset.commit(dataset, transaction, detached=True)
        self.head = self.head.replace_head(self.head.head())


def run() -> list[Ratio]:
    """Print the tables; the ratios carry the limits."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        subjects = [_subject(directory / f"n{size}", size) for size in SIZES]
        return [*_one_row(subjects), *_commits_per_second(subjects[0]), *_loads(directory)]


def _subject(directory: Path, size: int) -> Subject:
    graph = og.init(directory / "graph.omni", SCHEMA)
    names = pa.array([f"p{number}" for number in range(size)])
    lone = pa.array([f"lone{number}" for number in range(10 * RUNS)])
    people = pa.concat_arrays([names, lone])
    ages = pa.array([number % 90 for number in range(len(people))], pa.int32())
    ends = pa.array([f"p{number * 31 % size}" for number in range(size)])
    graph.load(
        {
            "Person": pa.table({"name": people, "age": ages}),
            "Knows": pa.table({"from": names, "to": ends}),
        },
        mode="append",
    )
    state = graph.manifest.view().log.head()
    head = HeadLog.create(Location.parse(str(directory / "head")), state)
    return Subject(graph, size, head)


def _one_row(subjects: list[Subject]) -> list[Ratio]:
    small, large = subjects
    print(f"{'one row, ms':<14}{'floor':>9}" + "".join(f"{step:>9}" for step in _STEPS))
    ratios: list[Ratio] = []
    times: dict[tuple[str, int], float] = {}
    for subject in subjects:
        shown: list[float] = []
        floors: list[float] = []
        for step, act in _STEPS.items():
            took, floor = interleaved(lambda: act(subject), subject.floor, runs=RUNS)  # noqa: B023 - called at once
            times[step, subject.size] = took
            shown.append(took)
            floors.append(floor)
            limit = INSERT_LIMIT if step == "insert" else float("inf")
            ratios.append(Ratio(f"{step}, {subject.size:,} rows / floor", took, floor, limit))
        cells = [min(floors), *shown]
        print(f"{subject.size:<14,}" + "".join(f"{1e3 * cell:>9.1f}" for cell in cells))
    for step in ("update", "delete"):
        growth = (times[step, large.size], times[step, small.size])
        ratios.append(Ratio(f"{step}, 1M rows / 1k rows", *growth, GROWTH_LIMIT))
    return ratios


_STEPS: dict[str, Callable[[Subject], None]] = {
    "insert": Subject.insert,
    "update": Subject.update,
    "delete": Subject.delete,
    "connect": Subject.connect,
}


def _commits_per_second(subject: Subject) -> list[Ratio]:
    each = 40
    alone = _threads(subject.graph, 1, each * 4)
    together = _threads(subject.graph, 8, each)
    processes = _processes(subject.graph, 4, each)
    print("commits per second on one branch, inserts of one row")
    for label, rate in (
        ("1 thread", alone),
        ("8 threads", together),
        ("4 processes", processes),
    ):
        print(f"{label:<14}{rate:>9.0f}")
    return []


def _threads(graph: Graph, number: int, each: int) -> float:
    def write(name: str) -> None:
        for turn in range(each):
            graph.mutate(INSERT, params={"n": f"{name}-{turn}"})

    threads = [
        threading.Thread(target=write, args=(f"t{number}-{worker}",)) for worker in range(number)
    ]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return number * each / (time.perf_counter() - start)


def _processes(graph: Graph, number: int, each: int) -> float:
    command = [sys.executable, "-c", _CHILD, graph.location.uri]
    children = [
        subprocess.Popen(
            [*command, f"c{worker}", str(each), INSERT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for worker in range(number)
    ]
    pipes = [(child.stdin, child.stdout) for child in children]
    for _, output in pipes:
        if output is not None:
            output.readline()
    start = time.perf_counter()
    for command_line, _ in pipes:
        if command_line is not None:
            command_line.write("go\n")
            command_line.flush()
    if any(child.wait() for child in children):
        raise RuntimeError("a writer failed")
    return number * each / (time.perf_counter() - start)


def _loads(directory: Path) -> list[Ratio]:
    """A load of NDJSON beside decoding the same lines, and beside writing them raw."""
    lines = [
        json.dumps(
            {
                "type": "Person",
                "data": {
                    "name": f"person-{number}",
                    "age": number % 90,
                    "city": "Utrecht",
                    "joined": "2020-01-02",
                    "score": number / 7,
                },
            }
        )
        for number in range(LOADED)
    ]
    text = "\n".join(lines)
    rows = pa.table({"name": [f"person-{number}" for number in range(LOADED)]})
    numbers = count()

    def load() -> None:
        graph = og.init(directory / f"load{next(numbers)}.omni", SCHEMA)
        graph.load(text, mode="append")

    def decode() -> None:
        for line in lines:
            json.loads(line)

    def write() -> None:
        lance.write_dataset(rows, str(directory / f"raw{next(numbers)}.lance"))

    took, decoding = interleaved(load, decode, runs=5, pick=min)
    _, raw = interleaved(decode, write, runs=3, pick=min)
    print(f"load of {LOADED:,} NDJSON rows, rows per second")
    for label, seconds in (("load", took), ("json.loads", decoding), ("raw Lance write", raw)):
        print(f"{label:<16}{LOADED / seconds:>12,.0f}")
    return [Ratio(f"load of {LOADED:,} rows / json.loads", took, decoding, LOAD_LIMIT)]
