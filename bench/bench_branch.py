"""What branches cost: making one, the first write on it, diffs and merges of any size.

Owns the sizes, the order of measuring and the limits. `OMNIGRAPH_BENCH_MERGED` and
`OMNIGRAPH_BENCH_TABLES` ask for other sizes, as numbers with commas between. A peer that is
not installed is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import lance
import pyarrow as pa

import omnigraph as og
from bench.branch.data import People
from bench.branch.rounds import Step, run_round
from bench.branch.systems import PEER, Omnigraph
from bench.branch.tables import Rounds, growth_table, merge_table
from bench.branch.workers import PeerWorker
from bench.cost import Cost, costs, line
from bench.load.tables import Goal, goal_table
from bench.ratio import Ratio
from bench.traversal.systems import is_installed

MERGED, TABLES = "OMNIGRAPH_BENCH_MERGED", "OMNIGRAPH_BENCH_TABLES"
CREATE_LIMIT, GROWTH_LIMIT, NUMBER_LIMIT = 1.2, 2.0, 1.3
AHEAD_OF_PEER = 1.0
INSERT = "query q($n: String) { insert Person { name: $n, age: 3 } }"


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows merges have, and the tables that the smallest merge goes into.

    The merges beside the peer go into the largest table.
    """

    merged: tuple[int, ...] = (1_000, 100_000)
    tables: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    rounds: int = 3
    runs: int = 15
    branches: tuple[int, int] = (10, 1_000)
    """Few and many: what one of them costs is to be the same."""


def run() -> list[Ratio]:
    """Print the tables; the ratios against ourselves and Lance carry the limits."""
    return measure(Size(_numbers(MERGED, Size().merged), _numbers(TABLES, Size().tables)))


def _numbers(variable: str, otherwise: tuple[int, ...]) -> tuple[int, ...]:
    text = os.environ.get(variable, "")
    return tuple(int(word) for word in text.split(",")) if text.strip() else otherwise


def measure(size: Size) -> list[Ratio]:
    """All lines for one choice of sizes."""
    print(f"merges into {max(size.tables):,} rows; load average {os.getloadavg()[0]:.1f}")
    has_peer = is_installed(PEER)
    if not has_peer:
        print(f"{PEER} is not installed and left out: pip install omnigraph[bench]")
    with TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        peer = None
        if has_peer:
            worker = PeerWorker(PEER, directory / PEER, max(size.tables))
            peer = stack.enter_context(worker)
            peer.load()
        # Each part has tables of its own: what one leaves behind, the next would have to read.
        ratios = _one_branch(_Subject.make(directory / "one", min(size.tables)), peer, size.runs)
        ratios += _many_branches(directory / "many", size)
        subjects = [_Subject.make(directory / f"t{rows}", rows) for rows in size.tables]
        growth, growth_goals = _growth(subjects, min(size.merged), size.rounds)
        subject = _Subject.make(directory / "merges", max(size.tables))
        merges, merge_goals = _merges(subject, peer, size)
    print(goal_table([*growth_goals, *merge_goals]))
    print(f"load average {os.getloadavg()[0]:.1f}")
    return [*ratios, *growth, *merges]


@dataclass(slots=True)
class _Subject:
    """A graph of ours, and the rows that it has."""

    system: Omnigraph
    people: People

    @classmethod
    def make(cls, directory: Path, rows: int) -> _Subject:
        directory.mkdir()
        subject = cls(Omnigraph(directory), People(rows))
        subject.system.load(subject.people.table())
        return subject

    def round(self, step: Step, into: Rounds) -> None:
        into.done.append(run_round(self.system, self.people, step))


# -- one branch --------------------------------------------------------------------------


def _one_branch(subject: _Subject, peer: PeerWorker | None, runs: int) -> list[Ratio]:
    """Making a branch beside a small dataset, and writing to it beside writing to main."""
    graph, numbers = subject.system.graph, count()
    head = graph.manifest.view().log.head()
    rows = pa.concat_tables([head] * (60 // head.num_rows + 1)).slice(0, 60)
    create, floor = costs(
        [
            lambda: graph.branches.create(f"made-{next(numbers)}"),
            lambda: lance.write_dataset(
                rows, graph.location.join(f"raw-{next(numbers)}.lance").uri
            ),
        ],
        runs=runs,
    )
    first, on_main = _first_writes(subject, runs)
    cells: list[Cost] = [create, floor, first, on_main]
    print(line("", ["create a branch", "write 60 rows", "first insert there", "insert on main"]))
    print(line("ours", cells))
    if peer is not None:
        seconds = min(peer.branch(f"made-{number}") for number in range(runs))
        print(line(PEER, [f"{1e3 * seconds:.1f} ms"]))
    return [
        Ratio(
            "create a branch / write_dataset of 60 rows",
            create.seconds,
            floor.seconds,
            CREATE_LIMIT,
        ),
        Ratio("first insert on a branch / on main", first.seconds, on_main.seconds, float("inf")),
    ]


def _many_branches(directory: Path, size: Size) -> list[Ratio]:
    """What one branch costs beside few others and beside many."""
    directory.mkdir()
    subjects = [_Branches.make(directory / f"b{number}", number) for number in size.branches]
    steps = ("create", "open", "write", "delete")
    print(line("", [*steps]))
    found: dict[str, list[Cost]] = {}
    for step in steps:
        found[step] = costs([getattr(one, step) for one in subjects], runs=size.runs)
    for place, number in enumerate(size.branches):
        print(line(f"ours  {number:,} branches", [found[step][place] for step in steps]))
    few_of, many_of = size.branches
    return [
        Ratio(f"{step}, {many_of:,} branches / {few_of}", many.seconds, few.seconds, NUMBER_LIMIT)
        for step, (few, many) in found.items()
    ]


@dataclass(slots=True)
class _Branches:
    """A small graph with so many branches."""

    graph: og.Graph
    numbers: Iterator[int]
    made: list[str]

    @classmethod
    def make(cls, place: Path, number: int) -> _Branches:
        graph = og.init(place, "node Person { name: String @key  age: I32? }")
        names = [graph.branches.create(f"b{one}") for one in range(number)]
        return cls(graph, count(), names)

    def create(self) -> None:
        self.made.append(self.graph.branches.create(f"new-{next(self.numbers)}"))

    def open(self) -> None:
        og.open(str(self.graph.location), read_only=True).snapshot(self.made[0])

    def write(self) -> None:
        name = f"p{next(self.numbers)}"
        self.graph.mutate(INSERT, params={"n": name}, branch=self.made[0])

    def delete(self) -> None:
        self.graph.branches.delete(self.made.pop())


def _first_writes(subject: _Subject, runs: int) -> list[Cost]:
    """One row on a branch that has no commit yet, and one row on main."""
    graph, numbers = subject.system.graph, count()
    fresh: list[str] = []

    def fork() -> None:
        fresh.append(graph.branches.create(f"fresh-{next(numbers)}"))

    def insert(branch: str) -> None:
        graph.mutate(INSERT, params={"n": f"lone-{next(numbers)}"}, branch=branch)

    return costs([lambda: insert(fresh[-1]), lambda: insert("main")], runs=runs, before=fork)


# -- merges ------------------------------------------------------------------------------


def _growth(
    subjects: Sequence[_Subject], changed: int, rounds: int
) -> tuple[list[Ratio], list[Goal]]:
    """The same merge into ever larger tables, in turns."""
    step = Step(changed)
    found = {subject.people.size: Rounds(step) for subject in subjects}
    for _ in range(rounds):
        for subject in subjects:
            subject.round(step, found[subject.people.size])
    print(f"merge of {step.name}, by the size of the table")
    print(growth_table(found))
    small, large = found[subjects[0].people.size], found[subjects[-1].people.size]
    sizes = f"{subjects[-1].people.size:,} rows / {subjects[0].people.size:,}"
    ratio = Ratio(f"merge into {sizes}", large.merge, small.merge, GROWTH_LIMIT)
    requests = Goal(f"requests of a merge, {sizes}", large.requests, small.requests, GROWTH_LIMIT)
    return [ratio], [requests]


def _merges(
    subject: _Subject, peer: PeerWorker | None, size: Size
) -> tuple[list[Ratio], list[Goal]]:
    """Merges and fast-forwards beside the peer's, in turns."""
    steps = [
        Step(changed, fast_forward=forward) for changed in size.merged for forward in (False, True)
    ]
    ours, theirs = [[Rounds(step) for step in steps] for _ in range(2)]
    for _ in range(size.rounds):
        for number, step in enumerate(steps):
            subject.round(step, ours[number])
            if peer is not None:
                theirs[number].done.append(peer.round(step))
    print(merge_table(ours, theirs if peer is not None else [], PEER))
    goals = [
        Goal(f"merge of {mine.step.name} / {PEER}", mine.merge, other.merge, AHEAD_OF_PEER)
        for mine, other in zip(ours, theirs, strict=True)
        if peer is not None and not mine.step.fast_forward
    ]
    return [goal.ratio() for goal in goals], goals
