"""What years cost: writes, reads and disk by depth, branches and types by number, many writers.

Owns the sizes, the order of measuring and the limits. `OMNIGRAPH_BENCH_GROWTH=full` asks for
14,000 writes, 1,000 branches and 300 types; without it everything is smaller by ten.
`OMNIGRAPH_BENCH_CHART` (or `--chart FILE`) names a file for the chart of the growth.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import omnigraph as og
from bench.__main__ import CHART
from bench.cost import Cost, costs, line
from bench.growth.chart import Line, chart
from bench.growth.writer import INSERT, READ
from bench.growth.writers import write_together
from bench.ratio import Ratio

GROWTH = "OMNIGRAPH_BENCH_GROWTH"
SCHEMA = "node Person { name: String @key  age: I32? }"
LOOKUP = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age as age } }"
MB = 2**20
NOW = timedelta(0)


@dataclass(frozen=True, slots=True)
class Size:
    """How deep, how many, how long."""

    depths: tuple[int, ...] = (10, 100, 1_000)
    branches: tuple[int, int] = (10, 100)
    types: tuple[int, int] = (3, 30)
    runs: int = 25
    writers: int = 4
    seconds: float = 2.0
    increments: int = 5


FULL = Size((10, 1_000, 10_000, 14_000), (10, 1_000), (3, 300), 51, 4, 10.0, 25)


def run() -> list[Ratio]:
    """Print the tables, and draw the chart where one is asked for."""
    return measure(FULL if os.environ.get(GROWTH) == "full" else Size())


def measure(size: Size) -> list[Ratio]:
    """All lines for one choice of sizes."""
    print(f"load average {os.getloadavg()[0]:.1f}")
    with TemporaryDirectory() as name:
        directory = Path(name)
        ratios, lines = _depths(directory / "deep", size)
        ratios += _branches(directory, size)
        ratios += _types(directory, size)
        ratios += _writers(directory / "writers", size)
    place = os.environ.get(CHART)
    if place:
        Path(place).write_text(chart("Growth, beside the first point", "one-row writes", lines))
    return ratios


# -- depth -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Point:
    """What was found at one depth: each step on a graph that was just made, and on the deep one."""

    depth: int
    write: list[Cost]
    read: list[Cost]
    opened: list[Cost]
    memory: float
    disk: float


@dataclass(slots=True)
class _Deep:
    """A graph that only ever grows, one row at a time."""

    place: Path
    graph: og.Graph
    written: int = 0
    asked: int = 0
    row_mb: float = 0.0
    """What one row takes as a file of its own."""

    @classmethod
    def make(cls, place: Path, depth: int) -> _Deep:
        made = cls(place, og.init(place, SCHEMA))
        made.write()
        made.row_mb = sum(file.stat().st_size for file in place.glob("nodes/*/data/*")) / MB
        made.grow(depth)
        return made

    def grow(self, depth: int) -> None:
        while self.written < depth:
            self.write()

    def write(self) -> None:
        self.graph.mutate(INSERT, params={"n": f"p{self.written}"})
        self.written += 1

    def read(self) -> None:
        """Another row each time, as far as there are others."""
        self.asked += 1
        self.graph.query(LOOKUP, params={"n": f"p{self.asked * 7919 % self.written}"})

    def open(self) -> None:
        og.open(self.place)

    def point(self, depth: int, young: _Deep, runs: int) -> _Point:
        """Measure in turns, so that whatever else the machine does hits both alike."""
        self.grow(depth)
        disk = _disk(self.place)
        pair = (young, self)
        opened = costs([one.open for one in pair], runs=runs)
        write = costs([one.write for one in pair], runs=runs)
        # Last, when the young graph has as many rows as are asked for, too.
        read = costs([one.read for one in pair], runs=runs)
        return _Point(depth, write, read, opened, _memory(), disk)


def _depths(place: Path, size: Size) -> tuple[list[Ratio], list[Line]]:
    first, last = size.depths[0], size.depths[-1]
    deep = _Deep.make(place / "deep", first)
    points: list[_Point] = []
    print(line("depth", ["write", "read", "open", "memory", "disk"]))
    for depth in size.depths:
        points.append(deep.point(depth, _Deep.make(place / f"{depth}", first), size.runs))
        one = points[-1]
        cells = (one.write, one.read, one.opened)
        for place_of, label in enumerate((f"{first:,} beside", f"{depth:,}")):
            beside = [cell[place_of] for cell in cells]
            whole = [f"{one.memory:.0f} MB", f"{one.disk:.1f} MB"] if place_of else []
            print(line(label, [*beside, *whole]))
    data = deep.row_mb * deep.written
    before = _disk(deep.place)
    deep.graph.cleanup(keep=1, grace=NOW)
    after = _disk(deep.place)
    end, beside_it = points[-1], f"depth {last:,} / {first}"
    found = [
        Ratio(f"{name}, {beside_it}", cost[1].seconds, cost[0].seconds, limit)
        for name, cost, limit in (
            ("write", end.write, 1.2),
            ("read", end.read, 1.3),
            ("open", end.opened, 1.3),
        )
    ]
    wrote = end.write
    found += [
        Ratio(
            f"requests of a write, {beside_it}", wrote[1].requests, wrote[0].requests, 1.0, "req"
        ),
        Ratio(f"memory, {beside_it}", end.memory, points[0].memory, 1.3, "MB"),
        Ratio("disk before cleanup / 60 x data", before, 60 * data, 1.0, "MB"),
        Ratio("disk after cleanup / (10 x data + 64 MB)", after, 10 * data + 64, 1.0, "MB"),
    ]
    return found, [
        *(
            Line(name, tuple((one.depth, _growth(pick(one))) for one in points))
            for name, pick in (
                ("write", attrgetter("write")),
                ("read", attrgetter("read")),
                ("open", attrgetter("opened")),
            )
        ),
        Line("memory", tuple((one.depth, one.memory) for one in points)),
    ]


def _growth(pair: list[Cost]) -> float:
    """How many times as long a step takes on the deep graph."""
    return pair[1].seconds / pair[0].seconds


def _disk(place: Path) -> float:
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / MB


def _memory() -> float:
    """What this process holds now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MB


# -- branches and types ------------------------------------------------------------------


@dataclass(slots=True)
class _Branches:
    """A small graph with so many branches, of which every tenth has a commit of its own."""

    graph: og.Graph
    numbers: Iterator[int]
    made: list[str]

    @classmethod
    def make(cls, place: Path, number: int) -> _Branches:
        graph = og.init(place, SCHEMA)
        made = cls(graph, count(), [])
        for one in range(number):
            made.create()
            if one % 10 == 0:
                made.write()
        return made

    def create(self) -> None:
        self.made.append(self.graph.branches.create(f"b{next(self.numbers)}"))

    def write(self) -> None:
        params = {"n": f"p{next(self.numbers)}"}
        self.graph.mutate(INSERT, params=params, branch=self.made[-1])

    def delete(self) -> None:
        self.graph.branches.delete(self.made.pop())


def _branches(directory: Path, size: Size) -> list[Ratio]:
    few, many = (_Branches.make(directory / f"b{number}", number) for number in size.branches)
    steps = ("create", "write", "delete")
    print(line("branches", [*steps, "cleanup"]))
    found = {
        step: costs([getattr(few, step), getattr(many, step)], runs=size.runs) for step in steps
    }
    start = time.perf_counter()
    many.graph.cleanup(keep=1, grace=NOW)
    cleaned = time.perf_counter() - start
    for place, number in enumerate(size.branches):
        cells: list[object] = [found[step][place] for step in steps]
        print(line(f"{number:,}", [*cells, *([f"{cleaned:.2f} s"] if place else [])]))
    fewer, more = size.branches
    ratios = [
        Ratio(f"{step}, {more:,} branches / {fewer}", found[1].seconds, found[0].seconds, 1.3)
        for step, found in found.items()
    ]
    return [*ratios, Ratio(f"cleanup, {more:,} branches / 4 s", cleaned, 4.0, 1.0)]


def _types(directory: Path, size: Size) -> list[Ratio]:
    graphs: list[og.Graph] = []
    made = 0.0
    for number in size.types:
        edges = number // 3
        lines = [f"node N{one} {{ name: String @key  age: I32? }}" for one in range(number - edges)]
        lines += [f"edge E{one}: N{one} -> N{one + 1}" for one in range(edges)]
        start = time.perf_counter()
        graphs.append(og.init(directory / f"t{number}", "\n".join(lines)))
        made = time.perf_counter() - start
    numbers = count()

    def write(graph: og.Graph) -> None:
        insert = "query q($n: String) { insert N0 { name: $n, age: 3 } }"
        graph.mutate(insert, params={"n": f"p{next(numbers)}"})

    few, many = costs([lambda: write(graphs[0]), lambda: write(graphs[1])], runs=size.runs)
    fewer, more = size.types
    print(line("types", ["write", "init"]))
    print(line(f"{fewer}", [few]))
    print(line(f"{more}", [many, f"{made:.2f} s"]))
    return [
        Ratio(f"init, {more} types / 1.5 s", made, 1.5, 1.0),
        Ratio(f"write, {more} types / {fewer}", many.seconds, few.seconds, 2.0),
    ]


# -- writers -----------------------------------------------------------------------------


def _writers(place: Path, size: Size) -> list[Ratio]:
    graph = og.init(place, SCHEMA)
    graph.mutate('query q() { insert Person { name: "counter", age: 0 } }')
    alone = write_together(place, ["alone"], size.seconds, 0)
    names = [f"w{number}" for number in range(size.writers)]
    both = write_together(place, names, size.seconds, size.increments)
    print(line("writers", ["commits/s", "slowest", "fastest"]))
    for found in (alone, both):
        cells = (found.together, min(found.rates), max(found.rates))
        print(line(f"{len(found.rates)}", [f"{cell:.1f}" for cell in cells]))
    counted = graph.query(READ).rows[0]["age"]
    expected = size.writers * size.increments
    if counted != expected:
        raise AssertionError(f"{expected} increments were acknowledged, and {counted} are there")
    return [
        Ratio(
            f"commits/s, 1 writer / {size.writers}", alone.together, both.together, 1.25, "per s"
        ),
        Ratio(
            "commits/s, fastest writer / slowest", max(both.rates), min(both.rates), 3.0, "per s"
        ),
    ]
